"""A noisy judge: its rates, what correction repairs where errors are noise, and what it breaks elsewhere."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from uetrust import auroc, prr, prr_from_labels
from uetrust.core.settings import root
from uetrust.evaluation.inference.noisy_judge import (
    NOISY_MEASURES,
    corrected_for_judge,
    judge_accuracy,
    judge_comparison,
    judge_error_test,
    judge_rates,
    mean_from_labels,
    wilson_interval,
)
from uetrust.papers.people.answers import judged_systems


def study(seed, n=1000, labels=200, follow=0.0, documents=None):
    "Uncertainty, a judge with sensitivity .9 and specificity .8, people's labels of some, and the truth"
    rng = np.random.default_rng(seed)
    shared = 0 if documents is None else rng.normal(size=documents)[np.arange(n) % documents]
    truth = (rng.random(n) < 0.7).astype(float)
    unsure = rng.normal(size=n) + shared - 0.8 * truth
    missed = np.clip(0.1 + follow * unsure, 0, 1)
    judge = np.where(truth == 1, rng.random(n) >= missed, rng.random(n) >= 0.8).astype(float)
    people = np.where(rng.permutation(n) < labels, truth, np.nan)
    return unsure, judge, people, truth


def measured(truth, unsure):
    return dict(mean=truth.mean(), auroc=auroc(truth, unsure), prr=prr(truth, unsure).value)


# Rates


@pytest.mark.parametrize("seed", range(5))
def test_rates_are_those_of_scikit_learn(seed):
    _, judge, _, people = study(seed, n=50)
    found = judge_accuracy(judge, people, draws=10).set_index("rate")["value"]
    (neither, extra), (missed, both) = confusion_matrix(people, judge)
    assert found["kappa"] == pytest.approx(cohen_kappa_score(people, judge), abs=1e-12)
    assert found["sensitivity"] == both / (both + missed) and found["specificity"] == neither / (
        neither + extra
    )
    assert found["agreement"] == (both + neither) / 50 and found["right_by_judge"] == (both + extra) / 50


def test_a_judge_that_always_says_right_agrees_often_and_has_a_kappa_of_0():
    rates = judge_rates([90, 0, 10, 0])
    assert rates["agreement"] == rates["agreement_by_chance"] == 0.9
    assert rates["kappa"] == rates["youden"] == 0


def test_unlabelled_texts_are_counted_and_not_guessed():
    found = judge_accuracy([1, 0, 1, np.nan, 1, 0], [1, 0, 0, 1, np.nan, np.nan], draws=10)
    assert set(found["n_labels"]) == {3} and set(found["n_texts"]) == {6}
    assert found.set_index("rate").loc[["sensitivity", "specificity"], "n"].tolist() == [1, 2]


def test_every_system_has_rows_of_its_own():
    _, judge, _, people = study(0, n=60)
    systems = np.repeat(["b", "a"], 30)
    found = judge_accuracy(judge, people, systems, draws=10)
    assert list(found["group"].unique()) == ["b", "a"]
    alone = judge_accuracy(judge[:30], people[:30], draws=10)
    pd.testing.assert_frame_equal(
        found[found["group"] == "b"].drop(columns="group"), alone.drop(columns="group")
    )


def test_a_score_is_cut_at_the_threshold_that_is_stated():
    people, grades = [1, 1, 0, 0], [5, 3, 4, np.nan]
    found = judge_accuracy(grades, people, tau=4, draws=10).set_index("rate")
    assert found.at["sensitivity", "value"] == 0.5 and found.at["specificity", "value"] == 0
    assert found.at["sensitivity", "n_labels"] == 3


@pytest.mark.parametrize("share, size, ends", [(0, 20, (0, 0.16113)), (0.27, 100, (0.19268, 0.36430))])
def test_wilson_interval_has_the_values_of_scipy(share, size, ends):
    from scipy.stats import binomtest

    known = binomtest(round(share * size), size).proportion_ci(method="wilson")
    assert wilson_interval(share, size) == pytest.approx((known.low, known.high), abs=1e-6)
    assert wilson_interval(share, size) == pytest.approx(ends, abs=1e-4)


def test_copies_of_a_text_add_nothing_when_the_document_is_named():
    _, judge, _, people = study(0, n=100)
    once = judge_accuracy(judge, people)
    copies = judge_accuracy(np.tile(judge, 4), np.tile(people, 4), document=np.tile(np.arange(100), 4))
    plain = judge_accuracy(np.tile(judge, 4), np.tile(people, 4))
    width = {
        name: (t["hi"] - t["lo"]).to_numpy()
        for name, t in dict(once=once, copies=copies, plain=plain).items()
    }
    assert width["copies"] == pytest.approx(width["once"], rel=0.03)
    assert (width["plain"] < 0.6 * width["once"]).all()


# Correction


def spread_evenly(seed):
    "At every level of uncertainty the judge misses 1 of 5 right texts and passes 1 of 4 wrong ones."
    rng, rows = np.random.default_rng(seed), []
    for level in range(6):
        right, wrong = rng.integers(1, 6, 2)
        rows += right * [(level, 1, 1)] * 4 + right * [(level, 1, 0)]
        rows += wrong * [(level, 0, 0)] * 3 + wrong * [(level, 0, 1)]
    return np.array(rows, float).T


@pytest.mark.parametrize("seed", range(3))
def test_the_correction_is_exact_where_errors_are_spread_evenly(seed):
    unsure, truth, judge = spread_evenly(seed)
    for measure, known in measured(truth, unsure).items():
        found = corrected_for_judge(unsure, judge, truth, measure, draws=5)
        assert found.value == pytest.approx(known, abs=1e-9)
        assert (found.sensitivity, found.specificity) == (0.8, 0.75)
        assert measure == "mean" or abs(found.by_judge - known) > 0.005


def test_a_perfect_judge_needs_no_correction():
    unsure, _, people, truth = study(0)
    for measure, known in measured(truth, unsure).items():
        found = corrected_for_judge(unsure, truth, people, measure, draws=5)
        assert found.value == pytest.approx(known, abs=1e-9) and found.by_judge == pytest.approx(
            known, abs=1e-9
        )


@pytest.mark.parametrize("measure", NOISY_MEASURES)
def test_where_errors_are_noise_the_correction_is_unbiased_and_its_interval_holds(measure):
    "60 studies: the mean lies within 3 standard errors, and at most 8 intervals miss (1 in 100 by chance)."
    found = []
    for seed in range(60):
        unsure, judge, people, _ = study(seed, n=400, labels=150)
        found.append(corrected_for_judge(unsure, judge, people, measure, draws=200, seed=seed))
    unsure, *_, truth = study(1000, n=200_000)
    goals = measured(truth, unsure)
    values = np.array([one.value for one in found])
    assert abs(values.mean() - goals[measure]) < 3 * values.std(ddof=1) / np.sqrt(60)
    uncorrected = abs(np.mean([one.by_judge for one in found]) - goals[measure])
    assert measure == "mean" or uncorrected > 5 * values.std(ddof=1) / np.sqrt(60)
    assert sum(not one.lo <= goals[measure] <= one.hi for one in found) <= 8


def test_where_errors_follow_the_uncertainty_the_correction_is_worse_than_none_and_says_so():
    unsure, judge, people, truth = study(0, n=4000, labels=1000, follow=0.15)
    known, found = prr(truth, unsure).value, corrected_for_judge(unsure, judge, people)
    assert found.value - known > 0.1 and found.lo > known
    assert found.value - known > 1.5 * abs(found.by_judge - known)
    assert found.p_errors < 0.01 and "the correction does not hold" in found.note


def test_where_errors_are_noise_nothing_is_reported():
    unsure, judge, people, _ = study(1, n=4000, labels=1000)
    assert corrected_for_judge(unsure, judge, people, draws=50).note == ""


def test_documents_widen_the_interval():
    unsure, judge, people, _ = study(3, n=300, labels=150)
    copies = [np.tile(values, 4) for values in (unsure, judge, people)]
    once = corrected_for_judge(unsure, judge, people, draws=400)
    plain = corrected_for_judge(*copies, draws=400)
    named = corrected_for_judge(*copies, document=np.tile(np.arange(300), 4), draws=400)
    assert named.value == pytest.approx(plain.value) and plain.value == pytest.approx(once.value, abs=0.02)
    assert named.hi - named.lo == pytest.approx(once.hi - once.lo, rel=0.15)
    assert plain.hi - plain.lo < 0.6 * (named.hi - named.lo)


@pytest.mark.parametrize(
    "judge, people, reason",
    [
        ([1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 1, np.nan], "this judge tells nothing"),
        ([1, 0, 1, 0, 1, 0], [1, 1, 1, 1, np.nan, np.nan], "people call no labelled text wrong"),
        ([1, 0, 1, 0, 1, 0], [0, 0, 0, 0, np.nan, np.nan], "people call no labelled text right"),
        ([1, 0, 1, 0, 1, 0], [1, 0, 1] + [np.nan] * 3, "3 labels: at least 4 are needed"),
        ([0, 0, 0, 0, 0, 0, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0, 1, 0, 0, 0], ""),
        ([0] * 20 + [1, 0, 1, 0], [np.nan] * 20 + [1, 1, 0, 0], "this judge tells nothing"),
        (
            [0] * 20 + [1, 1, 1, 0, 0],
            [np.nan] * 20 + [1, 1, 0, 0, 0],
            "the corrected share of right texts is",
        ),
    ],
)
def test_what_cannot_be_corrected_is_nan_with_a_reason(judge, people, reason):
    found = corrected_for_judge(np.arange(len(judge)), judge, people, draws=20)
    assert reason in found.note and np.isnan(found.value) == bool(reason)
    assert np.isnan([found.lo, found.hi]).all() or not reason


def test_a_judge_that_may_tell_nothing_has_a_value_without_interval():
    unsure, judge, people, _ = study(0, labels=12)
    noise = np.where(np.random.default_rng(0).random(1000) < 0.4, 1 - judge, judge)
    found = corrected_for_judge(unsure, noise, people, "auroc", draws=20)
    assert np.isfinite(found.value) and np.isnan([found.lo, found.hi]).all()
    assert "no interval: sensitivity + specificity - 1 may be 0 [-" in found.note


def test_texts_without_a_judgement_or_an_uncertainty_are_left_out_and_counted():
    unsure, judge, people, _ = study(0)
    judge[:3], unsure[2:5] = np.nan, np.nan
    found = corrected_for_judge(unsure, judge, people, draws=20)
    kept = corrected_for_judge(unsure[5:], judge[5:], people[5:], draws=20)
    assert found.n == 995 and found.value == kept.value
    assert "5 of 1000 texts lack a judgement or an uncertainty" in found.note


def test_series_are_joined_by_text():
    unsure, judge, people, _ = study(0)
    names = pd.Index([f"text {i}" for i in range(1000)])
    unsure, judge, people = (pd.Series(values, names) for values in (unsure, judge, people))
    mixed = corrected_for_judge(unsure, judge.sample(frac=1, random_state=0), people.dropna()[::-1], draws=20)
    assert mixed == corrected_for_judge(unsure.to_numpy(), judge.to_numpy(), people.to_numpy(), draws=20)


# Test of the assumption


def test_the_test_of_the_assumption_has_its_level_and_power():
    "100 studies each: 5 % of 100 false alarms within 3 standard deviations, and most of the real ones."
    p = {follow: [] for follow in (0.0, 0.15)}
    for seed in range(100):
        for follow in p:
            p[follow].append(judge_error_test(*study(seed, 400, 300, follow)[:3], draws=199).p)
    assert 0 <= np.sum(np.array(p[0.0]) < 0.05) <= 11 and np.mean(np.array(p[0.15]) < 0.05) > 0.8
    assert 0.3 < np.mean(p[0.0]) < 0.7


def test_documents_are_the_unit_of_the_test():
    "Each text four times: with the documents named p is that of single texts, without them it is too small."
    unsure, judge, people, _ = study(2, 300, 200, follow=0.05)
    copies = [np.tile(values, 4) for values in (unsure, judge, people)]
    once, plain = judge_error_test(unsure, judge, people), judge_error_test(*copies)
    named = judge_error_test(*copies, document=np.tile(np.arange(300), 4))
    assert named.p == pytest.approx(once.p, abs=0.03) and plain.p < named.p / 3
    assert named.among_right == pytest.approx(once.among_right)


def test_the_size_is_the_auroc_of_the_errors():
    found = judge_error_test([1, 2, 3, 4, 5, 6, 7], [1, 0, 1, 0, 1, 1, 0], [1, 1, 1, 1, 0, 0, 0])
    assert found.among_right == 0.75 and found.among_wrong == 0 and (found.errors, found.n) == (4, 7)
    assert np.isnan(judge_error_test([1, 2, 3], [1, 1, 0], [1, 1, 0]).p)
    assert judge_error_test([1, 1, 1], [1, 0, 0], [1, 1, 0]).note == "all uncertainties are equal"


# Side by side


def test_four_answers_on_the_same_labels():
    unsure, judge, people, _ = study(4, labels=100)
    table = judge_comparison(unsure, judge, people, draws=50)
    assert table["by"].tolist() == ["judge", "people", "corrected", "prediction-powered"] * 3
    assert set(table["n_labels"]) == {100} and set(table["n"]) == {1000}
    rows = table.set_index(["measure", "by"])
    labelled = ~np.isnan(people)
    known = prr(people[labelled], unsure[labelled])
    assert tuple(rows.loc[("prr", "people"), ["value", "lo", "hi"]]) == (known.value, known.lo, known.hi)
    assert rows.at[("auroc", "judge"), "value"] == pytest.approx(auroc(judge, unsure))
    fixed = corrected_for_judge(unsure, judge, people, "auroc", draws=50)
    assert tuple(rows.loc[("auroc", "corrected"), ["value", "lo", "hi"]]) == tuple(fixed[:3])
    width = rows["hi"] - rows["lo"]
    for measure in NOISY_MEASURES:
        assert width[measure, "prediction-powered"] <= 1.001 * width[measure, "people"]
        assert width[measure, "judge"] < width[measure, "people"]


def test_the_comparison_has_rows_of_every_system_and_says_what_fails():
    unsure, judge, people, _ = study(5, labels=400)
    system = np.where(np.arange(1000) < 500, "one", "two")
    judge[:500] = 1 - judge[:500]
    table = judge_comparison(unsure, judge, people, system, measures=["prr"], draws=20).set_index(
        ["group", "by"]
    )
    assert np.isnan(table.at[("one", "corrected"), "value"])
    assert "this judge tells nothing" in table.at[("one", "corrected"), "note"]
    assert np.isfinite(table.at[("two", "corrected"), "lo"])


def test_the_mean_from_labels_is_unbiased_and_shorter_with_a_judge():
    plain, powered, goals = [], [], []
    for seed in range(60):
        _, judge, people, truth = study(seed, n=400, labels=100)
        plain.append(mean_from_labels(people, None))
        powered.append(mean_from_labels(people, pd.DataFrame(dict(judge=judge))))
        goals.append(truth.mean())
    assert [one.value for one in plain] == pytest.approx(
        [np.nanmean(study(i, 400, 100)[2]) for i in range(60)]
    )
    errors = np.array([one.value for one in powered]) - goals
    assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(60)
    assert sum(not one.lo <= goal <= one.hi for one, goal in zip(powered, goals)) <= 8
    assert np.mean([one.hi - one.lo for one in powered]) < 0.9 * np.mean([one.hi - one.lo for one in plain])


# Errors


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(judge=[0.5, 1, 1, 0]), "judge holds 0.5, which is neither 0 nor 1: state tau"),
        (dict(people=[3, 1, 1, 0]), "people holds 3, which is neither 0 nor 1: `acceptable_labels`"),
        (dict(people=[1, 0]), "people has 2 values for 4"),
        (dict(people=[np.nan] * 4), "none of 4 texts has a label of the judge and one of people"),
        (dict(draws=0), "draws must be a whole number from 1"),
        (
            dict(judge=pd.Series([1, 0, 1, 0]), people=pd.Series([1], [9])),
            "people has texts that are not among",
        ),
        (
            dict(judge=pd.Series([1, 0]), people=pd.Series([1, 0], [1, 1])),
            "people has more than one value for 1",
        ),
    ],
)
def test_a_mistake_is_named_with_its_remedy(change, says):
    with pytest.raises(ValueError, match=says):
        judge_accuracy(**dict(judge=[1, 0, 1, 0], people=[1, 0, 1, 1]) | change)


def test_a_measure_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="measure must be one of"):
        corrected_for_judge([1, 2], [0, 1], [0, 1], "aurc")
    with pytest.raises(ValueError, match="none of 2 texts has both a judgement and an uncertainty"):
        corrected_for_judge([1, np.nan], [np.nan, 1], [0, 1])


# Real answers


def page_rows():
    "System and six numbers of every row of the page's table"
    page = root() / "nbs/04_evaluation/15_inference/08_noisy_judge.ipynb"
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    rows = re.findall(r"^\| (\w+)((?: \| -?\d\.\d\d){6}) \|$", text, re.M)
    return {name: [float(value) for value in values.split(" | ")[1:]] for name, values in rows}


def test_lexical_match_on_real_answers_is_corrected_too_far_as_the_page_says():
    off, rows = [], page_rows()
    judged = judged_systems("evouna-nq")
    assert list(rows) == list(judged)
    for system, printed in rows.items():
        one = judged[system]
        human, match = (one.quality[name] for name in ("human", "lexical_match"))
        unsure = one.uncertainty["other_systems_f1"]
        found = corrected_for_judge(unsure, match, human, document=one.questions, draws=20)
        kappa, people = cohen_kappa_score(human, match), prr(human, unsure).value
        numbers = [found.sensitivity, found.specificity, kappa, people, found.by_judge, found.value]
        assert numbers == pytest.approx(printed, abs=0.005)
        assert found.p_errors == 1 / 2000 and found.value > people > found.by_judge
        drawn = [human.sample(300, random_state=seed) for seed in range(20)]
        few = [[prr_from_labels(n, m, unsure).value for m in (match.to_frame(), None)] for n in drawn]
        errors = np.mean(np.abs(np.array(few) - people), 0)
        off.append([found.value - people, found.by_judge - people, *errors])
    assert np.mean(np.abs(off), 0) == pytest.approx([0.43, 0.08, 0.05, 0.07], abs=0.005)
