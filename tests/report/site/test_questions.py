"""The four questions of the first page: each answer has its claim first, and its numbers from the tables."""

import re

import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from uetrust.papers.ledger.cells import cell_ledger
from uetrust.papers.people.overview import stored_overview
from uetrust.report.site.questions import (
    SITE_QUESTIONS,
    metric_sentences,
    paper_sentences,
    question_answers,
    size_sentences,
    trust_sentences,
)

REGRET = pd.DataFrame(
    dict(
        pair="pooled",
        metric="people",
        held_out=True,
        n=[100, 1000, 9000],
        value=[0.03, 0.007, 0.0],
        lo=0.0,
        hi=0.1,
    )
)
SETS = pd.DataFrame(dict(n=[300, 2000, 2000], methods=[77, 77, 72], in_set=[58, 8, 17]))
CLAIMS = pd.DataFrame(dict(verdict=["holds", "holds", "fails"], standing=["supported", "fragile", "fails"]))


def all_answers():
    "Of the repository without a run, and with the tables that only a run has"
    definitions = pd.DataFrame(dict(definition=["a", "b"], msp=[0.5, 0.6], eigv=[0.1, 0.8]))
    yield from question_answers(ROOT / "no run").values()
    yield trust_sentences(stored_overview(), definitions)
    yield size_sentences(REGRET, SETS)
    yield paper_sentences(CLAIMS, cell_ledger())


def test_the_first_sentence_is_a_claim_of_25_words_with_one_bracket_at_most():
    answers = [sentences for sentences in all_answers() if sentences]
    assert len(answers) == len(SITE_QUESTIONS) - 1 + 3
    for first, *_ in answers:
        assert len(first.split()) <= 25 and len(re.findall(r"[(\[]", first)) <= 1, first
        assert re.match("Not by itself|None fully|Hundreds|Less than it seems", first), first


def test_trust_names_the_system_whose_judges_differ_most():
    rows = [("A", "people", 0.1), ("A", "token F1", 0.2), ("B", "people", 0.0), ("B", "token F1", 0.7)]
    rows = pd.DataFrame(rows, columns=["label", "series", "value"]).assign(
        kind="answers", n=3000, lo=-0.1, hi=0.8
    )
    _, second = trust_sentences(rows)
    assert "by B has a PRR of 0.70 [-0.10, 0.80] by token F1 and of 0.00 [-0.10, 0.80] by people" in second
    assert "(3,000 questions)" in second
    definitions = pd.DataFrame(dict(definition=["a", "b"], msp=[0.5, 0.6], eigv=[0.1, 0.8]))
    last = trust_sentences(rows, definitions)[-1]
    assert "eigv has a PRR of 0.10 by one of 2 definitions and of 0.80 by another" in last


def test_metrics_are_better_than_chance_only_where_the_intervals_are_apart():
    rows = stored_overview()
    at = rows["label"].eq("automatic metrics") & rows["kind"].eq("translations")
    for hi, better in ((0.054, "is not clearly better"), (0.04, "is better")):
        rows.loc[at, "hi"] = hi
        first, second, _ = metric_sentences(rows)
        assert better in first and f", {hi:.3f}] when metrics do" in second


def test_sizes_speak_of_the_largest_sets_only_where_there_are_some():
    first, second = size_sentences(REGRET, SETS)
    assert "2,000 do not name the best" in first and "8 to 17 of 77 methods" in first
    assert "0.030 [0.000, 0.100]" in second and "0.007" in second
    assert size_sentences(REGRET)[1] == second


def test_papers_count_what_holds_and_what_is_equal():
    cells = pd.DataFrame(
        dict(
            paper=["ICE", "ICE", "He et al."],
            status=["recomputed, equal", "recomputed, different", "not at hand"],
            agrees=[True, False, ""],
        )
    )
    said = paper_sentences(CLAIMS, cells)
    assert "of 3 sentences of He et al. 2 hold on the printed numbers, 1 of them firmly" in said[0]
    assert "decide 2 of the 3 numbers" in said[1] and "1 are equal" in said[1] and "None of the" in said[2]
    assert len(paper_sentences(None, cells.assign(paper="He et al."))) == 1
    assert paper_sentences(None, None) == []


def test_tables_of_a_run_win_over_stored_numbers(tmp_path):
    (tmp_path / "tables").mkdir()
    stored = question_answers(tmp_path)["texts"]
    REGRET.assign(value=0.5).to_csv(tmp_path / "tables" / "people_regret.csv", index=False)
    assert "0.500" in question_answers(tmp_path)["texts"][1] != stored[1]
    REGRET.iloc[:1].to_csv(tmp_path / "tables" / "people_regret.csv", index=False)  # Too few sizes
    assert question_answers(tmp_path)["texts"] == stored


@pytest.mark.parametrize("key", SITE_QUESTIONS)
def test_every_page_of_a_question_has_a_notebook(key):
    from uetrust.report.site.pieces import notebook_of

    for page in SITE_QUESTIONS[key].pages:
        assert notebook_of(page), page
