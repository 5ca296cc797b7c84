"""Regret of choices by people, pages on translations, FaithBench: known answers, real data, the command."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tests.helpers.regret import DOCUMENTS, NOISY, QUALITY, RNG, TRUTH
from uetrust.evaluation.cells import PRRCells
from uetrust.evaluation.prr import prr
from uetrust.papers.people.regret import (
    _document_halves,
    _judge_halves,
    people_choice_regret,
    pooled_regret,
    ranking_agreement,
)
from uetrust.papers.people.tables import STUDY_SIZES


def test_regret_has_the_known_answers(made):
    "The truth turned round chooses the worst method always; with all texts people lose nothing."
    rows = made.table.set_index(["n", "metric"])
    prr = PRRCells(TRUTH[:, None], NOISY.to_numpy()).value[:, 0]
    assert rows.loc[(600, "people"), "value"] == 0 and not rows.loc[(600, "people"), "held_out"]
    assert rows.loc[(600, "turned"), ["pick", "value"]].tolist() == ["m4", pytest.approx(prr[0] - prr[2])]
    assert rows.loc[(600, "random"), "value"] == pytest.approx(prr[0] - prr.mean())
    assert (
        rows.loc[(50, "people"), "value"]
        < rows.loc[(50, "random"), "value"]
        < rows.loc[(50, "turned"), "value"]
    )


def test_a_metric_that_ranks_nothing_chooses_nothing(made):
    rows = made.table[made.table["metric"] == "constant"]
    assert rows["value"].isna().all() and (rows["studies"] == 0).all()


def test_the_same_seed_gives_the_same_regret(made):
    again = people_choice_regret(QUALITY, NOISY, DOCUMENTS, "people", (50, None), draws=60, boots=80)
    pd.testing.assert_frame_equal(again.table, made.table)


def test_no_document_is_in_both_halves():
    ids = RNG.integers(7, size=200)
    halves = _document_halves(ids, 30, RNG)
    assert all(not set(ids[half]) & set(ids[~half]) for half in halves) and 0.2 < halves.mean() < 0.8


def test_intervals_of_regret_cover_and_pooling_widens(made):
    "Ninety-five per cent intervals of the regret of a fixed choice, for forty worlds with a known answer."
    pooled = pooled_regret(dict(a=made, b=made), draws=300)
    np.testing.assert_allclose(pooled["value"], made.table["value"])
    inside = []
    for k in range(40):
        rng = np.random.default_rng(k)
        truth = rng.normal(size=400)
        methods = pd.DataFrame(
            dict(good=-truth + rng.normal(size=400), bad=-truth + 2 * rng.normal(size=400))
        )
        quality = pd.DataFrame(dict(people=truth, turned=-truth))
        rows = people_choice_regret(quality, methods, pd.Series(range(400)), "people", (), 5, 100, k).table
        row = rows[rows["metric"] == "turned"].iloc[0]
        inside.append(row["lo"] <= KNOWN <= row["hi"])
    assert np.mean(inside) >= 0.85


def known_difference():
    "PRR of truth plus noise of SD 1 minus that of SD 2, in a world of 200,000 texts"
    rng = np.random.default_rng(99)
    truth = rng.normal(size=200_000)
    noise = rng.normal(size=(200_000, 2)) * [1, 2]
    value = PRRCells(truth[:, None], noise - truth[:, None]).value[:, 0]
    return value[0] - value[1]


KNOWN = known_difference()


def test_judges_of_one_mind_agree_and_random_ones_do_not():
    same = np.column_stack([TRUTH] * 4)
    noise = np.random.default_rng(0).normal(size=(600, 4))
    rho = [
        ranking_agreement(QUALITY[["people"]], NOISY, judges, (50,), 30).set_index(["n", "metric"])["value"]
        for judges in (same, noise)
    ]
    assert rho[0][600, "people_half"] == 1 and rho[1][50, "people_half"] < 0.5
    first, second = _judge_halves(np.column_stack([TRUTH, TRUTH, TRUTH + 3]), 20)
    assert first.shape == second.shape == (600, 20) and np.isclose(
        (first + 2 * second).mean(), TRUTH.mean() * 3 + 3
    )


def test_agreement_is_that_of_a_loop_over_the_divisions_of_the_judges():
    "With all texts: metrics and one half of the judges against the other half, in turn for each division."
    rng = np.random.default_rng(11)
    methods = pd.DataFrame(
        {f"m{k}": -TRUTH + 0.2 * k * rng.normal(size=600) + rng.normal(size=600) for k in range(7)}
    )
    judgements = TRUTH[:, None] + 2 * rng.normal(size=(600, 4))
    quality = pd.DataFrame(dict(close=TRUTH + rng.normal(size=600), far=rng.normal(size=600)))
    found = ranking_agreement(quality, methods, judgements, (), splits=3, seed=5).set_index("metric")

    def ranking(values):
        return [prr(values, methods[name]).value for name in methods]

    rho = {name: [] for name in ("close", "far", "people_half")}
    for first, second in zip(*(half.T for half in _judge_halves(judgements, 3, 5))):
        for name, values in dict(quality, people_half=first).items():
            rho[name].append(spearmanr(ranking(values), ranking(second)).statistic)
    assert len(set(rho["people_half"])) == 3
    for name, each in rho.items():
        assert found.loc[name, ["n", "studies"]].tolist() == [600, 3]
        assert found.loc[name, ["value", "sd"]].tolist() == pytest.approx([np.mean(each), np.std(each)])


def test_without_sizes_studies_are_as_large_as_those_of_the_pages():
    "All texts come last."
    rng = np.random.default_rng(12)
    truth = rng.normal(size=2100)
    quality = pd.DataFrame(dict(people=truth))
    methods = pd.DataFrame(rng.normal(size=(2100, 2)), columns=["a", "b"])
    regret = people_choice_regret(quality, methods, pd.Series(range(2100)), "people", draws=2, boots=2).table
    judgements = truth[:, None] + rng.normal(size=(2100, 2))
    agreement = ranking_agreement(quality, methods, judgements, draws=2, splits=2)
    for rows in (regret, agreement):
        assert rows["n"].drop_duplicates().tolist() == [*STUDY_SIZES, 2100]
