"""Human error annotations: released counts, standard errors over dialogues, null distribution and power."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.settings import mirror, published_file
from uetrust.data.loaders import TOFU_ERRORS, tofueval, tofueval_ratios
from uetrust.evaluation.multiple import column_mean_p, mean_row_correlation, null_tests, same_sign_p
from uetrust.evaluation.prr import prr
from uetrust.papers.he2024 import human
from uetrust.papers.he2024.published import printed_tables, table_null_sd

TYPES = list(TOFU_ERRORS)
real = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")


@pytest.fixture(scope="module")
def sentences():
    return tofueval()


@pytest.fixture(scope="module")
def ratios(sentences):
    return tofueval_ratios(sentences)


def documents(ratios):
    return ratios.index.get_level_values("doc_id")


# Means and shares
def test_the_interval_widens_when_summaries_of_a_dialogue_are_equal():
    rng, docs = np.random.default_rng(0), np.repeat(np.arange(100), 5)
    same = pd.DataFrame({"x": np.repeat(rng.random(100) < 0.3, 5)})
    free = pd.DataFrame({"x": rng.random(500) < 0.3})
    clustered, independent = (
        human.clustered_mean(same, docs).iloc[0],
        human.clustered_mean(free, docs).iloc[0],
    )
    assert clustered["design_effect"] == pytest.approx(5, rel=0.02)
    assert independent["design_effect"] == pytest.approx(1, abs=0.25)
    widths = [human.error_prevalence(hits, docs).eval("hi-lo").item() for hits in (same, free)]
    assert widths[0] > 1.8 * widths[1]


def test_a_dialogue_per_summary_gives_the_usual_standard_error():
    values = pd.DataFrame({"x": [0.0, 1, 1, 0, 3, 2]})
    got = human.clustered_mean(values, range(6)).iloc[0]
    assert got["se"] == pytest.approx(values["x"].std() / 6**0.5) and got["design_effect"] == pytest.approx(1)


def test_prevalence_is_the_hand_count():
    ratios = pd.DataFrame({"A": [0.5, 0, 0, 0.25, 0, 0], "B": [0.0] * 6})
    got = human.error_prevalence(ratios, list("xxyyzz"))
    assert (
        got["affected"].tolist() == [2, 0]
        and got["in_documents"].tolist() == [2, 0]
        and got["share"].tolist() == [2 / 6, 0]
        and got["ratio"].tolist() == [0.125, 0]
    )
    assert (
        got.loc["B", ["lo", "hi", "design_effect"]].isna().all()
        and 0 < got.loc["A", "lo"] < got.loc["A", "share"] < got.loc["A", "hi"] < 1
    )


@given(st.floats(0.001, 0.999), st.floats(1e-6, 0.5))
def test_an_interval_of_a_share_holds_it_and_stays_inside(share, se):
    lo, hi = human.share_interval([share], [se])
    assert 0 <= lo[0] < share < hi[0] <= 1


def test_lift_of_independent_kinds_is_one_and_of_equal_kinds_one_over_the_share():
    affected = pd.DataFrame({"a": [1, 1, 0, 0] * 6, "b": [1, 0, 1, 0] * 6, "c": [1, 1, 0, 0] * 6}) > 0
    got = human.co_occurrence(affected, np.repeat(np.arange(6), 4)).set_index(["first", "second"])["lift"]
    assert got.tolist() == pytest.approx([1, 2, 1])


def test_labels_inside_a_topic_are_all_that_the_test_shuffles():
    "Topics may differ as they like; only labels that go with the value inside topics matter."
    rng, topic = np.random.default_rng(1), np.repeat(np.arange(40), 4)
    easy, who = np.repeat(rng.random(40), 4), np.tile(list("abcd"), 40)
    values = pd.DataFrame(
        {
            "topic only": easy,
            "label": easy + 0.1 * (who == "a") + 0.05 * rng.random(160),
            "noise": rng.random(160),
        }
    )
    p_values = human.label_permutation_p(values, who, topic, 199)
    assert p_values["topic only"] == 1 and p_values["label"] == 1 / 200 and p_values["noise"] > 0.05


def test_an_interval_of_a_share_is_the_usual_one_when_it_is_narrow():
    lo, hi = human.share_interval([0.2], [1e-4])
    assert (hi - lo)[0] == pytest.approx(2 * 1.96e-4, rel=1e-4)


# Null distribution
@pytest.mark.parametrize("area", ["mean", "sum"])
def test_chance_is_that_of_prr(area):
    quality = np.random.default_rng(2).random(30)
    sd, gap = human._null_area_sd(-quality, area)
    assert sd / gap == pytest.approx(prr(quality, np.arange(30), area=area).null_sd)


def test_constant_risks_have_neither_spread_nor_gain():
    assert np.isnan(human._null_area_sd(np.full((2, 5), 0.1))).all()


def test_all_summaries_drawn_give_the_closed_form_in_every_draw():
    quality = pd.DataFrame({"a": [1, 1, 0.5, 0, 1, 1], "b": [1, 0.9, 1, 1, 1, 1.0]})
    got = human.subset_null_sd(quality, 6, 50)
    for error in quality:
        want = [prr(quality[error], range(6), area=area).null_sd for area in ("mean", "sum")]
        assert got.loc[error, ["null_sd", "null_sd_q25", "null_sd_q75"]].tolist() == pytest.approx(
            [want[0]] * 3
        )
        by_sum = got.loc[error, ["null_sd_sum_area", "null_sd_sum_area_q25", "null_sd_sum_area_q75"]]
        assert by_sum.tolist() == pytest.approx([want[1]] * 3)
    assert (got["undefined"] == 0).all()


def test_a_subset_without_the_error_is_counted_and_not_a_number():
    quality = pd.DataFrame({"a": np.r_[0.0, np.ones(9)], "never": np.ones(10)})
    got = human.subset_null_sd(quality, 5, 4000)
    assert (
        got.loc["a", "undefined"] == pytest.approx(0.5, abs=0.03)
        and got.loc["never", "undefined"] == 1
        and np.isnan(got.loc["never", "null_sd"])
    )
    assert got.loc["a", "null_sd_q25"] == pytest.approx(got.loc["a", "null_sd_q75"])
    assert human.null_prr(quality, 5, 400)["a"].isna().mean() == pytest.approx(0.5, abs=0.08)


def test_picks_never_repeat_and_take_one_of_a_document():
    docs = np.repeat(list("abcdefgh"), [1, 2, 3, 4, 5, 6, 7, 8])
    rng = np.random.default_rng(3)
    assert all(len(set(subset)) == 20 for subset in human._random_subsets(36, 20, 50, rng))
    one = human._random_subsets(36, 8, 4000, rng, docs)
    assert all(sorted(docs[subset]) == list("abcdefgh") for subset in one[:200])
    last = np.bincount(one[docs[one] == "h"], minlength=36)[-8:]
    assert len(last) == 8 and last.sum() == 4000 and abs(last - 500).max() < 80


def test_random_orders_vary_as_the_closed_form_says():
    quality = pd.DataFrame({"a": np.r_[np.zeros(15), np.ones(45)]})
    null = human.null_prr(quality, 60, 20000)["a"]
    want = human.subset_null_sd(quality, 60, 1)["null_sd"].item()
    assert null.mean() == pytest.approx(0, abs=0.01) and null.std() == pytest.approx(want, rel=0.02)


def test_equal_uncertainty_in_a_dialogue_widens_chance():
    docs = np.repeat(np.arange(30), 5)
    quality = pd.DataFrame(
        {"clustered": np.repeat(np.arange(30) < 24, 5), "spread": np.arange(150) % 5 > 0}
    ).astype(float)
    sd, alone = human.document_null_sd(quality, docs), human.subset_null_sd(quality, 150, 1)["null_sd"]
    assert sd["clustered"] > 1.9 * alone["clustered"] and sd["spread"] < 1e-9


def test_tail_p_doubles_the_smaller_tail():
    null = np.r_[np.arange(-50.0, 49), np.nan]
    assert human.tail_p([48, 47, -50, 0], null) == pytest.approx([2 * 2 / 100, 2 * 3 / 100, 2 * 2 / 100, 1])


# Power
def test_power_is_the_level_without_effect_and_one_for_a_perfect_method():
    quality = np.r_[np.zeros(80), np.ones(320)]
    found = human.prr_power(quality, [0, 0.3, 1], [50, 400], 1500).set_index(["n", "effect"])
    for n in (50, 400):
        assert (
            found.loc[(n, 0), "power"] == pytest.approx(0.025, abs=0.012)
            and found.loc[(n, 1), "power"] == 1
            and found.loc[(n, 1), "prr"] == pytest.approx(1)
        )
    assert found.loc[(400, 0.3), "power"] > found.loc[(50, 0.3), "power"] > 0.1
    assert found.loc[(400, 0.3), "prr"] == pytest.approx(0.3, abs=0.02)


def test_one_bad_summary_of_a_hundred_is_seen_but_not_by_the_standard_deviation():
    quality = np.r_[0.0, np.ones(99)]
    got = human.prr_power(quality, [0, 1], [100], 2000).set_index("effect")
    assert (got.loc[1, "power"], got.loc[1, "power_sd"]) == (1, 0) and got.loc[0, "power"] < 0.04


def test_each_subset_is_judged_by_chance_with_as_many_bad_summaries():
    "A perfect method is detected in every subset with at least one bad summary."
    got = human.prr_power(np.r_[0.0, 0, np.ones(198)], [1], [100], 2000)["power"].item()
    assert got == pytest.approx(1 - 100 * 99 / (200 * 199), abs=0.04)


def test_a_subset_without_errors_counts_as_not_seen():
    got = human.prr_power(np.r_[0.0, np.ones(9)], [1], [5], 2000)
    assert got["power"].item() <= 0.55


def test_calibration_rises_and_the_turned_order_falls_deeper():
    found = human.prr_by_strength(np.r_[np.zeros(30), np.ones(170)])
    assert (
        found["prr"].is_monotonic_increasing
        and found.iloc[-1]["prr"] == pytest.approx(1)
        and found.iloc[0]["prr"] == pytest.approx(0, abs=0.05)
    )
    half = found[found["prr"] > 0.3]
    assert (half["turned"] < -half["prr"]).all()


def test_detectable_lies_between_the_effects_that_bracket_it():
    table = pd.DataFrame(
        dict(n=[9] * 3 + [99] * 3, effect=[0, 0.4, 1] * 2, power=[0.02, 0.3, 0.7, 0.02, 0.6, 1])
    )
    got = human.detectable_prr(table)
    assert np.isnan(got[9]) and got[99] == pytest.approx(0.7)


# Length and position
def test_length_that_decides_the_error_has_its_correlation():
    rng = np.random.default_rng(4)
    lengths = pd.DataFrame({"words": rng.permutation(60)})
    got = human.errors_by_length(
        pd.DataFrame({"x": lengths["words"] / 64}), lengths, np.repeat(np.arange(12), 5)
    )
    got = got.set_index("outcome")
    assert (
        got.loc["ratio", "rho"] == pytest.approx(1)
        and got.loc["ratio", "within"] == pytest.approx(1)
        and (got["n"] == 60).all()
    )


def test_within_dialogues_only_differences_inside_count():
    "Dialogues with long summaries are clean, but in each the longest summary is wrong."
    lengths = pd.DataFrame({"words": np.tile(np.arange(4), 10) + 10 * np.repeat(np.arange(10), 4)})
    ratios = pd.DataFrame({"x": np.tile(np.arange(4), 10) / 64 - np.repeat(np.arange(10), 4) / 32 + 0.5})
    got = (
        human.errors_by_length(ratios, lengths, np.repeat(np.arange(10), 4)).set_index("outcome").loc["ratio"]
    )
    assert got["within"] == pytest.approx(1) and got["rho"] < -0.9


def test_spearman_by_length_is_scipys():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(5)
    ratios = pd.DataFrame({"a": rng.random(80).round(1), "b": rng.random(80)})
    lengths = pd.DataFrame({"words": rng.integers(10, 30, 80), "sentences": rng.integers(1, 5, 80)})
    got = human.errors_by_length(ratios, lengths, np.repeat(np.arange(16), 5))
    got = got.set_index(["length", "outcome", "error"])
    for unit in lengths:
        for error in ratios:
            want = spearmanr(lengths[unit], ratios[error]).statistic
            assert got.loc[(unit, "ratio", error), "rho"] == pytest.approx(want)
    assert (
        got.loc[(slice(None), "affected", "b"), ["rho", "lo"]].isna().all(axis=None)
    )  # every summary has it
    got = got.dropna()
    assert len(got) == 6 and (got["lo"] < got["rho"]).all() and (got["rho"] < got["hi"]).all()


# Signs
def test_cells_outside_their_band():
    found = null_tests(printed_tables()["T11"], table_null_sd("T11"))
    assert len(found) == 28 and not (found["p"] < 0.05).any() and (found["q"] >= found["p"]).all()
    assert found.set_index(["row", "column"])["z"]["EigV", "SOAF"] == pytest.approx(-1.1169 / 0.78)


def test_table_10_has_three_columns_of_one_sign():
    table = printed_tables()["T10"]
    assert (table < 0).sum().to_dict() == dict(EI=14, MR=3, SOAF=6, RE=14, TME=14, CO=7, NMS=7)
    assert (null_tests(table, table_null_sd("T10")).query("p<.05")["column"] == "EI").all()


def test_same_sign_and_mean_p_are_shares_of_correlated_normals():
    rng, rho = np.random.default_rng(6), 0.4
    common, own = rng.standard_normal((100_000, 1)), rng.standard_normal((100_000, 15))
    z = np.sqrt(rho) * common + np.sqrt(1 - rho) * own
    below = (z < 0).sum(1)
    assert same_sign_p(14, 15, rho) == pytest.approx(((below >= 14) | (below <= 1)).mean(), abs=0.004)
    assert (abs(z.mean(1)) > 0.9).mean() == pytest.approx(column_mean_p([0.9] * 15, rho), abs=0.005)
    assert mean_row_correlation(z[:2000].T) == pytest.approx(rho, abs=0.03)


# The released annotations
@real
def test_counts_of_the_released_annotations(ratios):
    got = human.error_prevalence(ratios[TYPES], documents(ratios))
    assert (got["n"] == 1777).all() and documents(ratios).nunique() == 100
    assert got["affected"].to_dict() == dict(EI=333, NMS=144, RE=134, MR=101, TME=34, CO=30, SOAF=32)
    assert got["in_documents"].to_dict() == dict(EI=83, NMS=64, RE=62, MR=46, TME=20, CO=22, SOAF=15)
    assert (got["design_effect"] > 1.5).all() and (got["ratio_design_effect"] > 1.5).all()


@real
def test_the_committed_chance_table_is_the_computed_one(ratios):
    five = ratios.drop("Model-Extra", level="model_name")[TYPES]
    text = human._null_sd_table(five, documents(five)).to_csv(index=False, lineterminator="\n")
    assert text == published_file("uets_null_sd.csv").read_text()


@real
def test_positions_count_every_sentence_once(sentences):
    found = human.errors_by_position(sentences)
    n = found[found["error"] == "EI"].set_index("place")["n"]
    assert (
        n[["1", "2", "3", "4", "5+"]].sum() == 4946
        and n["1"] == 1777
        and n["first"] == n["last"] == n["last - first"] == 1013
    )
    hits = (
        (found["mean"] * found["n"])
        .groupby([found["error"], found["place"].str[0].isin(list("12345"))])
        .sum()
        .xs(True, level=1)
    )
    assert hits[TYPES].round(6).tolist() == sentences.loc[~sentences["repeat"], TYPES].sum().tolist()
    ends = found.pivot(index="error", columns="place", values="mean")
    assert np.allclose(ends["last"] - ends["first"], ends["last - first"])
