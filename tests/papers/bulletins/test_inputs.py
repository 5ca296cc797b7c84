"""Inputs of the pages on banks: stored scores are read, missing ones are made once."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from tests.helpers.banks_of_pages import BANK, paired_scores_of_the_toy
from uetrust.core.registry import Entry
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank
from uetrust.papers.bulletins import inputs
from uetrust.scoring import generators


def test_stored_scores_are_read_and_not_made(toy_bank):
    found = inputs.method_scores("smoke", BANK)
    assert found.names == ["msp", "mte", "md"]
    assert inputs.lacking(found).values.tolist() == [["p_true", "own"]]
    assert inputs.lacking(inputs.quality_scores("smoke", BANK), "; ")["lacks"].tolist() == [
        "a model; a reference"
    ]


def test_missing_scores_are_made_once(toy_bank, monkeypatch):
    folder, _ = toy_bank
    stored, made = inputs.method_scores("smoke", BANK), []
    (folder / "scores" / f"{BANK}.parquet").unlink()
    monkeypatch.setattr(inputs, "score_methods", lambda plan: made.append(plan) or stored)
    for _ in range(2):
        pd.testing.assert_frame_equal(inputs.method_scores("smoke", BANK).table, stored.table)
    assert len(made) == 1


@pytest.fixture
def lead_bank(tmp_path, monkeypatch):
    "Twelve bulletins, summarized by their first sentence and twice otherwise; `write(end)` writes them anew"
    samples = load_samples("bulletin:test:12")
    known = inputs.bank_plan("smoke", BANK)
    alone = replace(known.generator, passes=(), compare=(), p_true="", elicit="", verbal_1s="", verbal_2s="")
    plan = replace(known, generator=alone, data="bulletin:test:12", metric_models=())

    def write(end=""):
        def rows(part):
            texts = [(row.id, row.source.split(". ")) for row in part.itertuples()]
            greedy = [bank_row(name, "greedy", 0, sentences[0] + end) for name, sentences in texts]
            drawn = [(name, k, sentences[k]) for name, sentences in texts for k in (0, 1)]
            return greedy + [bank_row(name, "sample", k, text) for name, k, text in drawn]

        about = bank_provenance("bulletin", "tiny-bart", "", "", {}, dict(greedy=1, sample=2))
        shutil.rmtree(plan.folder, ignore_errors=True)
        fill_bank(plan.folder / "texts", samples, about, rows, progress=False)

    for module in (inputs, generators):
        monkeypatch.setattr(module, "out_dir", lambda profile: tmp_path)
    monkeypatch.setattr(inputs, "bank_plan", lambda profile, bank: plan)
    monkeypatch.setattr(inputs, "run_pipeline", lambda *given, **options: write())
    monkeypatch.setattr(inputs, "profile_settings", lambda name: SimpleNamespace(metric_models=()))
    return write


def letters(greedy_text: str) -> float:
    "Number of letters."
    return len(greedy_text)


def test_a_method_that_is_registered_later_joins_the_methods_under_metrics(lead_bank, monkeypatch):
    before = inputs.cross_scores("smoke", BANK)
    assert "letters" not in before.uncertainty and len(before.uncertainty) == 12
    monkeypatch.setitem(inputs.reg, "letters", Entry(letters, "ue", "letters", "test"))
    after = inputs.cross_scores("smoke", BANK)
    assert set(after.uncertainty) == {*before.uncertainty, "letters"}
    tables = inputs.cross_tables("smoke", BANK)
    assert "letters" in set(tables["prr"]["method"])

    def fewer_letters(greedy_text: str) -> float:
        return -len(greedy_text)

    monkeypatch.setitem(inputs.reg, "letters", Entry(fewer_letters, "ue", "letters", "test"))
    turned = inputs.cross_scores("smoke", BANK).uncertainty["letters"]
    assert (turned == -after.uncertainty["letters"]).all(), "another function, whatever its name"
    monkeypatch.delitem(inputs.reg, "letters")
    assert "letters" not in set(inputs.cross_tables("smoke", BANK)["prr"]["method"])


def test_scores_follow_the_texts_of_a_bank_and_are_else_made_once(lead_bank, monkeypatch):
    made, real = [], inputs.score_methods
    monkeypatch.setattr(inputs, "score_methods", lambda plan: made.append(1) or real(plan))
    first, again = (inputs.method_scores("smoke", BANK).wide for _ in range(2))
    assert first.equals(again) and len(made) == 1
    lead_bank(end=". It rained")
    longer = inputs.method_scores("smoke", BANK).wide["output_length"]
    assert (longer > first["output_length"]).all() and len(made) == 2
    quality = inputs.quality_scores("smoke", BANK)
    assert quality.missing["mnli_doc"] == ["a model for 'mnli' or 'nli'"]
    with_nli = inputs.quality_scores("smoke", BANK, models_named="nli=data/models/tiny-nli")
    assert {"mnli_doc"} <= set(with_nli.names) - set(quality.names)


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
    unknown = paired_scores_of_the_toy()
    assert not unknown.has_truth and list(unknown.quality) == list(scores.dims)


def test_a_step_that_settings_name_later_starts_the_pipeline(lead_bank, monkeypatch):
    "Scores on file are no proof that the bank has all that its plan names"
    inputs.method_scores("smoke", BANK)
    plan, ran = inputs.bank_plan("smoke", BANK), []
    monkeypatch.setattr(inputs, "run_pipeline", lambda *given, **options: ran.append(given))
    inputs.prepared_bank("smoke", BANK)
    assert not ran
    named = replace(plan, generator=replace(plan.generator, passes=("conditional",)))
    monkeypatch.setattr(inputs, "bank_plan", lambda profile, bank: named)
    inputs.prepared_bank("smoke", BANK)
    assert ran == [("smoke", BANK)]


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    "A clone without runs, in which no bank may be filled"
    for module in (inputs, generators):
        monkeypatch.setattr(module, "out_dir", lambda profile: tmp_path)
    monkeypatch.setattr(inputs, "run_pipeline", lambda *given, **options: pytest.fail("a bank is filled"))
    return tmp_path


def test_a_fresh_clone_reads_the_texts_and_scores_of_the_demo(fresh):
    plan = inputs.readable_bank("demo", BANK)
    assert plan.shipped == plan.folder and len(inputs.truth_of(plan)) == 200
    scores = inputs.cross_scores("demo", BANK)
    assert scores.has_truth and {"msp", "mcse"} <= set(scores.uncertainty) and "rouge_l" in scores.dims
    assert inputs.bank_tokens(plan).at["greedy", "texts"] == 200
    assert inputs.text_likeness(plan)["share"].between(0, 1).all()


@pytest.mark.parametrize("key", ["banks", "perturbed_banks"])
def test_the_repository_ships_the_texts_of_every_bank_of_the_demo(fresh, key):
    "`make stored` renews them."
    for bank in inputs.named_banks("demo", key):
        assert inputs.readable_bank("demo", bank).shipped.name == bank


def test_other_settings_fill_the_bank_and_say_so(fresh, monkeypatch, capsys):
    filled, plan = [], inputs.bank_plan("demo", BANK)
    monkeypatch.setattr(inputs, "run_pipeline", lambda *names, **options: filled.append(names))
    monkeypatch.setattr(inputs, "bank_plan", lambda *names: replace(plan, data="bulletin:test:199"))
    assert inputs.readable_bank("demo", BANK).shipped is None and filled == [("demo", BANK)]
    assert f"data/stored has no texts of {BANK} by this code and these settings" in capsys.readouterr().err


def test_a_method_of_ones_own_fills_the_bank_of_the_demo(fresh, monkeypatch):
    "Its scores are not shipped, and the statistics of the bank are not at hand."
    monkeypatch.setitem(inputs.reg, "letters", Entry(letters, "ue", "letters", "test"))
    full = replace(inputs.bank_plan("demo", BANK), profile="filled")
    monkeypatch.setattr(inputs, "prepared_bank", lambda *names: full)
    monkeypatch.setattr(inputs, "score_methods", lambda plan: pytest.fail(plan.profile))
    monkeypatch.setattr(inputs, "bank_about", lambda *given: dict(scores=dict(letters="letters")))
    with pytest.raises(pytest.fail.Exception, match="filled"):
        inputs.method_scores("demo", BANK)


def test_a_filled_bank_is_read_live(lead_bank, monkeypatch):
    asked = []
    monkeypatch.setattr(inputs, "shipped_scores", lambda name, *given: asked.append((name, given[-1])))
    lead_bank()
    inputs.of_bank(inputs.readable_bank("smoke", BANK), "methods", letters)
    assert asked == [("methods", True)]
