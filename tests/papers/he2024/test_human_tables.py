"""Tables and facts about people's labels: what is undefined is counted, and what metrics are worth."""

import numpy as np
import pandas as pd
import pytest

from uetrust.papers.he2024 import human_tables as people


def test_errors_that_no_method_detects_are_named():
    rows = [("power", "EI"), ("power", "CO"), ("power_sd", "EI"), ("power_sd", "CO")]
    index = pd.MultiIndex.from_tuples(rows, names=["band", "error"])
    smallest = pd.DataFrame({100: [0.5, 0.9, 0.6, np.nan], 1777: [0.1, np.nan, 0.1, 0.4]}, index)
    assert people.undetectable_errors(smallest) == ["CO"]
    assert people.undetectable_errors(smallest, 1777) == []
    assert people.undetectable_errors(smallest, 1777, "power") == ["CO"]


def test_the_most_and_the_least_common_error_are_named_with_their_intervals():
    columns = dict(share=[0.2, 0.0169, 0.5], lo=[0.1, 0.01, 0.4], hi=[0.3, 0.03, 0.6])
    common = pd.DataFrame(dict(error=["EI", "CO", "MR"], design_effect=[1.5, 0.9, 1.2], n=1777) | columns)
    facts = people.prevalence_facts(common)
    assert facts[:5] == (1777, "MR", "50.0% [40.0%, 60.0%]", "CO", "1.7% [1.0%, 3.0%]")
    assert (facts.least_effect, facts.largest_effect) == (0.9, 1.5)


def worth(count, rho):
    "How many independent values have a mean that varies as much as that of so many correlated ones."
    correlations = np.full((count, count), rho)
    np.fill_diagonal(correlations, 1)
    return 1 / correlations.mean()


def test_correlated_metrics_are_worth_as_many_independent_ones_as_their_mean_varies_like():
    z = pd.Series([-1.2] * 14 + [0.3])
    pattern = people.sign_pattern(z, 0.3456)
    assert pattern["rho"].tolist() == [0, 0.1, 0.2, 0.3, 0.346, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert pattern["metrics_worth"].tolist() == pytest.approx([worth(15, rho) for rho in pattern["rho"]])
    assert (pattern[["p_sign_ei", "p_mean_ei"]].diff().iloc[1:] > 0).all(axis=None)


@pytest.mark.parametrize("rho", [0.25, -0.05])
def test_the_facts_about_signs_hold_what_the_metrics_are_worth(rho):
    signs = pd.DataFrame(
        dict(agree_as_written=[1, 8], agree_as_run=[14, 7], of=15, rho_of_others=[rho, 0.6])
        | dict(p_sign_independent=0.001, p_sign=0.1, p_mean=0.2, q_mean=0.3),
        ["EI", "CO"],
    )
    facts = people.column_sign_facts(signs)
    assert facts.rho == rho and facts.worth == pytest.approx(worth(15, max(0, rho)))
    assert (facts.metrics, facts.as_run, facts.as_written) == (15, 14, 1)
    assert (facts.every_as_run, facts.every_as_written, facts.cells) == (21, 9, 30)
    assert (facts.p_independent, facts.p_sign, facts.p_mean, facts.q_mean) == (0.001, 0.1, 0.2, 0.3)
    assert (facts.lowest_rho, facts.highest_rho, facts.alike) == (rho, 0.6, ["EI"])
    assert people.column_sign_facts(signs, "CO").as_run == 7


def test_true_effects_of_the_power_study_rise_from_a_random_order_to_a_perfect_one():
    assert people.EFFECTS[0] == 0 and people.EFFECTS[-1] == 1 and (np.diff(people.EFFECTS) > 0).all()


def test_lengths_are_named_when_they_differ_after_holm():
    alone = pd.DataFrame(
        dict(
            method=["words", "words", "sentences"],
            metric=["EI", "MR", "EI"],
            value=[0.31, -0.02, 0.12],
            lo=[0.2, -0.1, 0.05],
            hi=[0.4, 0.1, 0.2],
            q=[0.001, 0.9, 0.049],
        )
    )
    facts = people.word_count_facts(alone)
    assert (facts.strongest, facts.prr, facts.above, facts.cells) == ("EI", "0.31 [0.20, 0.40]", ["EI"], 3)
    assert facts.differing == ["words for EI (+0.31)", "sentences for EI (+0.12)"]
    none = people.word_count_facts(alone.assign(lo=-0.1, q=0.05))
    assert none.above == none.differing == []


def test_an_error_moves_within_a_summary_when_its_interval_excludes_zero():
    rows = [("first", "EI", 0.1, 0.2), ("last - first", "EI", -0.1, 0.2), ("last - first", "CO", -0.2, -0.1)]
    position = pd.DataFrame([*rows, ("last - first", "MR", 0.1, 0.2)], columns=["place", "error", "lo", "hi"])
    assert people.shifted_errors(position) == ["CO", "MR"]
