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
