"""A real language model: stored scores, drawn answers, and the tables of its answers and subjects."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from uetrust.data.bulletins import questions
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank
from uetrust.papers.bulletins import language_model as lm
from uetrust.papers.bulletins import world
from uetrust.papers.bulletins.inputs import CrossScores, bank_plan, known_truth, truth_of, truth_targets
from uetrust.papers.bulletins.tables import prr_facts


# Banks of questions
@pytest.fixture
def answered(tmp_path, monkeypatch):
    "Plan of a bank of eight answers, the first two wrong, the third without a person or date"
    plan = bank_plan("smollm2", lm.LANGUAGE_MODEL_BANKS["questions"])
    plan = replace(plan, data="questions:test:8")
    monkeypatch.setattr("uetrust.scoring.generators.out_dir", lambda profile: tmp_path)
    answers = (
        list(questions("test", 8)["source"][:2]) + ["nothing"] + list(questions("test", 8)["reference"][3:])
    )

    def rows(part):
        return [bank_row(name, "greedy", 0, text) for name, text in zip(part["id"], answers)]

    about = bank_provenance("questions", "smollm2", "", "", {}, dict(greedy=1))
    fill_bank(plan.folder / "texts", load_samples(plan.data), about, rows, progress=False)
    return plan


def test_the_truth_of_a_bank_of_questions_is_known(answered):
    assert known_truth(answered) and not known_truth(replace(answered, dataset="aeslc"))
    assert truth_of(answered).tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    targets = truth_targets(answered, truth_of(answered).index)
    assert list(targets) == ["truth", "wrong", "unread"] and targets["unread"].tolist() == [1, 1, 0] + [1] * 5


def test_banks_are_those_of_the_profile():
    plans = [bank_plan("smollm2", bank) for bank in lm.LANGUAGE_MODEL_BANKS.values()]
    assert {plan.generator.model for plan in plans} == {"smollm2"}
    assert [known_truth(plan) for plan in plans] == [True, False]
    assert {plan.generator.decoding.samples for plan in plans} == {5}


# Stored scores
TIDY = pd.DataFrame(
    [(f"s{i}", name, float(i * i % 7), "") for name in ("msp", "mte") for i in range(8)],
    columns=["sample", "name", "value", "note"],
)


@pytest.fixture
def stored(tmp_path, monkeypatch, answered):
    "Folder of the stored scores of two made banks, of which one has a truth"
    plans = dict(zip(lm.LANGUAGE_MODEL_BANKS.values(), (answered, replace(answered, dataset="aeslc"))))
    ids = list(questions("test", 8)["id"])
    for module in (world, lm):
        monkeypatch.setattr(module, "prepared_bank", lambda profile, bank: plans[bank])
    scores = SimpleNamespace(table=TIDY.assign(sample=TIDY["sample"].map(dict(zip(TIDY["sample"], ids * 2)))))
    monkeypatch.setattr(world, "method_scores", lambda profile, bank: scores)
    metrics = SimpleNamespace(table=scores.table.query("name=='msp'").assign(name="rouge_l"))
    monkeypatch.setattr(world, "quality_scores", lambda profile, bank: metrics)
    monkeypatch.setattr(world, "_model_hash", lambda model: f"hash of {model}")
    monkeypatch.setattr(lm, "language_model_dir", lambda: tmp_path / "stored")
    lm.store_language_model()
    return tmp_path / "stored"


def test_scores_and_truth_are_stored_with_what_made_them(stored):
    about = json.loads((stored / "about.json").read_text(encoding="utf-8"))
    assert about["command"] == "make smollm2-scores" and about["versions"]["torch"]
    assert about["answers"] == dict(truth=0.625, wrong=0.25, unread=0.125)
    assert {name: (one["texts"], one["scores"]) for name, one in about["generators"].items()} == dict(
        questions=(8, 4), subjects=(8, 3)
    )
    assert about["generators"]["questions"]["model"] == "hash of smollm2"
    assert lm.language_model_scores("questions").has_truth
    subjects = lm.language_model_scores("subjects")
    assert list(subjects.quality) == ["rouge_l"] and list(subjects.uncertainty) == ["msp", "mte"]
    assert lm.stored_names() == dict(questions=8, subjects=8) and lm.answer_shares() == about["answers"]


def test_a_missing_table_is_reported_with_the_command_that_stores_it(monkeypatch, tmp_path):
    monkeypatch.setattr(lm, "language_model_dir", lambda: tmp_path)
    for read in (lm.stored_names, lm.stored_answers, lambda: lm.language_model_scores("questions")):
        with pytest.raises(FileNotFoundError, match="run make smollm2-scores to store it"):
            read()


# What the page says
@pytest.fixture(scope="module")
def known():
    "Sixty answers; msp knows which are right, rouge_l sees it, the others are noise"
    rng = np.random.default_rng(3)
    right = rng.integers(0, 2, 60).astype(float)
    quality = pd.DataFrame(dict(truth=right, rouge_l=right + rng.normal(0, 0.2, 60), bleu=rng.random(60)))
    noise = dict(mte=rng.random(60), pmi=rng.random(60), output_length=rng.integers(1, 9, 60))
    uncertainty = dict(msp=-right, **noise)
    left_out = pd.DataFrame(columns=["kind", "name", "why"])
    dims = dict(rouge_l="relevance", bleu="relevance")
    return CrossScores(quality, pd.DataFrame(uncertainty), dims, left_out)


def test_baselines_are_shown_as_such_and_never_the_best(known):
    turned = known._replace(uncertainty=known.uncertainty.assign(output_length=-known.quality["truth"]))
    table = lm.target_prr(turned, "truth")
    assert sorted(lm.shown_methods(table)[1:3]) == ["mte", "pmi"] and len(lm.shown_methods(table)) == 4
    assert lm.shown_methods(table, 1) == ["msp", "output_length"]
    rows = lm.figure_rows(dict(a=table, b=lm.target_prr(turned, "rouge_l")), 1)
    assert rows["label"].tolist() == ["msp", "output_length (baseline)"] * 2
    facts = prr_facts(table)
    assert (facts.best, facts.baseline) == ("msp", "output_length") and facts.best_prr == facts.baseline_prr


def test_metrics_are_compared_with_the_truth_over_methods_without_baselines(known):
    rows = lm.metric_rows(known).set_index("metric")
    assert rows.at["rouge_l", "picks"] == "msp" and rows.at["rouge_l", "prr_by_truth"] == 1
    assert rows["rho"].between(-1, 1).all() and rows["rho"].is_monotonic_decreasing


def test_the_facts_have_counts_and_intervals(known):
    facts, row = prr_facts(table := lm.target_prr(known, "truth")), table.iloc[0]
    assert (facts.n, facts.methods, facts.beyond, facts.best) == (60, 3, 1, "msp")
    assert facts.best_prr == f"{row['value']:.2f} [{row['lo']:.2f}, {row['hi']:.2f}]"


# Temperatures
def test_stored_answers_are_checked(tmp_path, monkeypatch):
    sources = questions("test", 2)
    rows = [
        dict(temperature=t, sample=name, kind=kind, k=0, text=text if kind == "greedy" else "no")
        for t in (0.3, 1.0)
        for name, text in zip(sources["id"], sources["reference"])
        for kind in ("greedy", "sample")
    ]
    path = tmp_path / "temperatures.parquet"
    pd.DataFrame(rows).to_parquet(path)
    monkeypatch.setattr(lm, "temperatures_file", lambda: path)
    found = lm.stored_answers()
    assert len(found) == 8 and found.groupby("kind")["truth"].mean().to_dict() == dict(greedy=1, sample=0)
    assert found.groupby("temperature")["unread"].sum().to_dict() == {0.3: 2, 1.0: 2}


def test_the_stored_files_are_small_and_whole():
    folder = lm.language_model_dir()
    assert sum(path.stat().st_size for path in folder.glob("*")) < 1e6
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    for name, one in about["generators"].items():
        table = pd.read_parquet(folder / f"{name}.parquet")
        assert table.shape == (one["texts"], one["scores"])
    answers = lm.stored_answers()
    assert set(answers["temperature"]) == set(lm.TEMPERATURES) and lm.temperatures_file().stat().st_size < 2e5
    greedy = answers[answers["kind"] == "greedy"]
    assert greedy.groupby("sample")["text"].nunique().eq(1).all(), "greedy answers have no temperature"
