"""Sentences of the pages on He et al.: an own run in the names of the paper."""

# ruff: noqa: F811

import numpy as np
import pandas as pd

from tests.helpers.banks_of_pages import (
    paired_scores_of_the_toy,
    toy_bank,  # noqa: F401
)
from uetrust.papers.bulletins import inputs
from uetrust.papers.he2024 import own_tables, page_tables
from uetrust.papers.he2024 import sentences as paper_sentences


def test_an_own_run_is_laid_out_in_the_names_of_the_paper(toy_bank):
    bank = own_tables.bank_of_table(own_tables.STAND_IN_MODELS)["T7"]
    scores = paired_scores_of_the_toy()
    prr = inputs.cross_prr(scores)
    errors = pd.DataFrame(dict(EI=np.tile([0.0, 0.5], 6), MR=0.0), scores.quality.index)
    run = page_tables.own_run(
        own_tables.STAND_IN_MODELS,
        {bank: own_tables.BankResult(prr, {}, {})},
        {bank: (scores.quality, scores.uncertainty)},
        {bank: errors},
    )
    assert run.errors == {bank: ["EI"]} and "MR" in run.results[bank].left
    value = prr.set_index(["metric", "method"])["value"]
    assert run.tables["T7"].at["ROUGE-L", "MSP"] == value["rouge_l", "msp"]
    filled = paper_sentences.filled_sentences(
        run, own_tables.bank_of_table(own_tables.STAND_IN_MODELS), "smoke"
    )
    assert len(filled) == 1 and filled[0].startswith("tiny-bart fills T7, T8 with ")


def test_the_opening_of_a_page_names_the_table_as_the_paper_does():
    assert paper_sentences.table_opening("T7", (16, 9)) == (
        "printed numbers only; Table 7 of He et al. (2024), AESLC summaries by BART: 16 metrics, 9 methods, "
        "n = 1,906 texts"
    )


def test_the_sentences_that_hold_are_counted_apart_from_those_that_do_not():
    claims = pd.DataFrame(
        [
            ("holds", "supported", 4, 0.6),
            ("holds", "supported", 4, 0.2),
            ("holds", "fragile", 16, 0.9),
            ("holds", "fact", None, None),
            ("partly", "partly", 16, 0.9),
            ("fails", "fails", 4, 0.9),
        ],
        columns=["verdict", "standing", "n_obs", "shuffle_share"],
    )
    said = paper_sentences.standing_sentence(claims)
    assert said.startswith("Of the 4 sentences that hold, 2 are supported")
    assert "1 of the supported hold of more than half" in said and said.endswith(
        "1 are facts about the paper."
    )
    assert "4 methods is 0.0833. 3 sentences rest on 4 methods somewhere; 2 of them hold." in (
        paper_sentences.few_methods_sentence(claims)
    )
