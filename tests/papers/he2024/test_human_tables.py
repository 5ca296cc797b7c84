"""Tables and sentences about people's labels: what is undefined is counted, and what metrics are worth."""

import numpy as np
import pandas as pd
import pytest

from uetrust.papers.he2024 import human_tables as people


def test_an_undefined_prr_is_counted_and_no_perfect_method_is_promised():
    ends = pd.DataFrame(dict(no_prr=[0.19, 0.14, 0.12]), ["SOAF", "CO", "TME"])
    deviations = pd.DataFrame(dict(error=["EI"], null_sd=[0.25]))
    index = pd.MultiIndex.from_tuples([("power_sd", "EI"), ("power_sd", "CO")], names=["band", "error"])
    smallest = pd.DataFrame({100: [0.6, np.nan]}, index)
    said = people.undefined_sentence(ends, deviations, smallest)
    assert (
        said.startswith("In 19% of the draws of 100 summaries")
        and "no opinion is stated as fact" in said
        and "; for CO even a perfect method" in said
    )
    every = people.undefined_sentence(ends, deviations, smallest.fillna(0.9))
    assert every.endswith("±0.49 for extrinsic information (EI).")


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


@pytest.mark.parametrize("rho,says", [(0.25, "rho = 0.25, 15 metrics worth 3.3"), (-0.05, "worth 15.0")])
def test_the_sentence_on_signs_says_what_the_metrics_are_worth(rho, says):
    assert says.endswith(f"{worth(15, max(0, rho)):.1f}")
    signs = pd.DataFrame(
        dict(agree_as_written=1, agree_as_run=14, of=15, rho_of_others=rho, p_sign_independent=0.001)
        | dict(p_sign=0.1, p_mean=0.2, q_mean=0.3),
        ["EI"],
    )
    assert says in people.sign_sentence(signs, dict(sign=0.2, mean=0.1), 0.4)


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
    said = people.length_sentence(alone, 1777)
    assert "The interval is above 0 for EI; after Holm over 3 cells" in said
    assert said.endswith("words for EI (+0.31), sentences for EI (+0.12) differs from a random order.")
    none = people.length_sentence(alone.assign(lo=-0.1, q=0.05), 1777)
    assert "above 0 for none" in none and none.endswith("nothing differs from a random order.")
