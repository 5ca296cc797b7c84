"""Inputs of the pages on banks: stored scores are read, missing ones are made once."""

import pandas as pd
import pytest

from tests.helpers.banks_of_pages import BANK
from uetrust.core.scores import wide_table
from uetrust.papers.bulletins import inputs


def test_stored_scores_are_read_and_not_made(toy_bank):
    found = inputs.method_scores("smoke", BANK)
    assert list(wide_table(found)) == ["msp", "mte", "md"]
    assert inputs.lacking(found).values.tolist() == [["p_true", "own"]]
    assert inputs.lacking(inputs.quality_scores("smoke", BANK), "; ")["lacks"].tolist() == [
        "a model; a reference"
    ]


def test_missing_scores_are_made_once(toy_bank, monkeypatch):
    folder, _ = toy_bank
    stored = inputs.method_scores("smoke", BANK)
    (folder / "scores" / f"{BANK}.parquet").unlink()
    made = []
    monkeypatch.setattr(inputs, "prepared_bank", lambda *names: made.append(names))
    monkeypatch.setattr(inputs, "score_methods", lambda plan: stored)
    for _ in range(2):
        pd.testing.assert_frame_equal(inputs.method_scores("smoke", BANK), stored)
    assert made == [("smoke", BANK)]


def test_tables_of_other_pages_are_made_once_and_then_read(toy_bank):
    folder, _ = toy_bank
    first = inputs.method_tables("smoke", BANK)
    path = folder / "tables" / f"methods--{BANK}_prr.csv"
    assert first["prr"].set_index("method")["value"].loc[["oracle", "msp"]].tolist() == pytest.approx([1, 1])
    path.write_text("method,value\nmine,0.5\n")
    assert inputs.method_tables("smoke", BANK)["prr"].values.tolist() == [["mine", 0.5]]


def test_the_cross_tables_name_what_orders_nothing_and_what_a_metric_picks(toy_bank):
    folder, _ = toy_bank
    found = inputs.cross_tables("smoke", BANK)
    assert found["left_out"].values.tolist() == [["method", "md", "the same for all texts"]]
    picks = found["picks"].set_index("metric")
    assert picks.at["rouge_l", "pick"] == "msp" and picks.at["rouge_l", "loss"] == 0
    assert set(found["designs"]["n"]) == {6} and "truth" in set(found["designs"]["metric"])
    times = {path: path.stat().st_mtime_ns for path in (folder / "tables").iterdir()}
    inputs.cross_tables("smoke", BANK)
    assert {path: path.stat().st_mtime_ns for path in (folder / "tables").iterdir()} == times and len(
        times
    ) == 4


def test_truth_stands_first_and_may_be_unknown(toy_bank):
    scores = inputs.cross_scores("smoke", BANK)
    assert scores.has_truth and list(scores.quality)[0] == "truth" and "truth" not in scores.dims
    unknown = inputs.paired_scores(inputs.method_scores("smoke", BANK), inputs.quality_scores("smoke", BANK))
    assert not unknown.has_truth and list(unknown.quality) == list(scores.dims)
