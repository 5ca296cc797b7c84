"""Planned power: the plan is that of `power_table`, and pilots are counted by a loop."""

import json

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.inference.power import power_table
from uetrust.papers.people import planned
from uetrust.papers.people.planned import (
    COMPARED,
    LARGEST_STUDY,
    PILOT,
    _pilot_table,
    _planned_row,
    _planned_table,
    annotator_savings,
    pilot_facts,
    planned_facts,
)
from uetrust.papers.people.promises import inference_dir, stored_inference


@pytest.fixture(scope="module")
def sets():
    rng = np.random.default_rng(6)
    quality = rng.normal(size=1500)
    noise = {
        name: sd * rng.normal(size=1500)
        for name, sd in dict(msp=2.0, perplexity=1.0, median_token=1.02).items()
    }
    return dict(mine=(quality, pd.DataFrame({name: -quality + some for name, some in noise.items()})))


def test_a_plan_is_that_of_the_table_and_its_power_near_80_percent(sets):
    quality, uncertainty = sets["mine"]
    scores = uncertainty[["perplexity", "msp"]]
    row = _planned_row(quality, scores, draws=150)
    plan = power_table(quality, scores).iloc[-1]
    assert (row["first"], row["second"], row["texts"]) == (plan["first"], plan["second"], plan["texts"])
    assert row["texts"] < LARGEST_STUDY and row["share"] == pytest.approx(0.8, abs=0.12)


def test_a_study_that_is_too_large_is_not_drawn(sets, monkeypatch):
    monkeypatch.setattr(planned, "LARGEST_STUDY", 10)
    monkeypatch.setattr(planned, "realised_power", None)
    table = _planned_table(sets, draws=3)
    assert len(table) == len(COMPARED) and table["share"].isna().all() and (table["population"] == 1500).all()
    facts = planned_facts(table.assign(share=table["share"].astype(float)))
    assert (facts.comparisons, facts.skipped) == (0, 3)


def test_plans_of_pilots_are_quantiles_of_a_loop(sets):
    quality, uncertainty = sets["mine"]
    row = _pilot_table(sets, pilots=6, seed=3).iloc[1]
    rng, scores = np.random.default_rng(3), uncertainty[list(COMPARED[1])]
    plans = []
    for _ in range(6):
        at = rng.choice(1500, PILOT, replace=False)
        plans.append(power_table(quality[at], scores.iloc[at]).iloc[-1]["texts"])
    assert row["texts"] == power_table(quality, scores).iloc[-1]["texts"] and row["pilots"] == 6
    assert row[["lo", "middle", "hi"]].tolist() == pytest.approx(np.quantile(plans, [0.1, 0.5, 0.9]).tolist())


def test_the_facts_count_the_stored_rows():
    power, pilots = stored_inference("power"), stored_inference("pilots")
    checked = power.dropna(subset=["share"])
    facts = planned_facts(power)
    assert (facts.comparisons, facts.sets) == (len(checked), power["set"].nunique())
    assert facts.skipped == len(power) - len(checked) and facts.lowest == checked["share"].min()
    assert facts.near == (abs(checked["share"] - 0.8) <= 1.96 * np.sqrt(0.16 / facts.studies)).sum()
    assert pilot_facts(pilots)[:2] == (len(pilots), 200)
    assert pilot_facts(pilots).covered == pilots["covered"].mean()
    people = stored_inference("annotators")
    first = people[people["set"] == people["set"].iloc[0]]
    saved = annotator_savings(people).iloc[0]
    assert (saved["one"], saved["texts"]) == (first["texts"].iloc[0], first["texts"].iloc[-1])


def test_without_a_number_of_studies_the_plans_are_made_as_the_stored_ones_were(monkeypatch):
    "The command that a stored table names takes the draws and the seed that the table names."
    stored, made = {}, []
    monkeypatch.setattr(planned, "TRANSLATION_PAIRS", ("ru-en",))
    monkeypatch.setattr(planned, "_judged_pair", lambda pair: pair)
    monkeypatch.setattr(planned, "_planned_table", lambda sets, draws, seed: made.append((draws, seed)))
    monkeypatch.setattr(planned, "_pilot_table", lambda sets, pilots, seed: made.append((pilots, seed)))
    monkeypatch.setattr(planned, "_annotators_of_pairs", lambda: None)
    monkeypatch.setattr(planned, "store_inference", lambda name, table, **about: stored.update({name: about}))
    planned.store_plans()
    assert sorted(stored) == ["annotators", "pilots", "power"]
    for name, about in stored.items():
        kept = json.loads((inference_dir() / f"{name}.json").read_text(encoding="utf-8"))
        assert about == {key: kept[key] for key in ("command", "draws", "seed")}
        assert made == [(kept["draws"], kept["seed"]), (200, kept["seed"])]
