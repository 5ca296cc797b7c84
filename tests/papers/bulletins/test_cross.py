"""Methods against metrics: what a study selects and what it costs; cached quality scores of a bank."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, spearmanr
from scipy.stats import t as student

from uetrust.evaluation.prr import prr
from uetrust.papers.bulletins import cross as cs


@pytest.fixture(scope="module")
def scores():
    "80 samples: a truth, three metrics of falling worth, four methods; with ties"
    rng = np.random.default_rng(3)
    truth = pd.Series(rng.integers(0, 12, 80) / 11, [f"s{i}" for i in range(80)], name="truth")
    quality = pd.DataFrame({f"m{k}": truth + k * rng.normal(size=80) * 0.3 for k in range(3)}, truth.index)
    uncertainty = pd.DataFrame(
        {f"u{k}": -truth + (k + 1) * rng.normal(size=80) * 0.3 for k in range(4)}, truth.index
    )
    return quality, uncertainty.round(1), truth


# Picks
def test_a_pick_is_the_best_under_the_metric_and_is_judged_by_the_truth(scores):
    quality, uncertainty, truth = scores
    table = pd.DataFrame(
        {c: [prr(quality[m], uncertainty[c]).value for m in quality] for c in uncertainty},
        index=list(quality),
    )
    real = pd.Series({c: prr(truth, uncertainty[c]).value for c in uncertainty})
    p = cs.selected_methods(table, real).set_index("metric")
    for m in quality:
        best = max(uncertainty, key=lambda c: table.at[m, c])
        assert (p.at[m, "pick"], p.at[m, "true_prr"], p.at[m, "loss"]) == (
            best,
            real[best],
            real.max() - real[best],
        )
        assert (
            p.at[m, "rho"] == pytest.approx(spearmanr(table.loc[m], real)[0])
            and p.at[m, "rank"] == 1 + (real > real[best]).sum()
        )
    assert p.at["m0", "loss"] == 0 and list(p["loss"]) == sorted(p["loss"])


def test_a_shortlist_takes_at_every_step_the_best_next_metric():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(6, 12)), [f"m{i}" for i in range(6)])
    target = table.mean() + rng.normal(size=12) * 0.3
    s = cs.metric_shortlist(table, target, most=4)
    assert len(s) == 4 and s["metric"].is_unique and len(cs.metric_shortlist(table, target, most=99)) == 6
    for k in range(4):
        before = list(s["metric"][:k])
        rho = {
            m: spearmanr(table.loc[[*before, m]].mean(), target)[0] for m in table.index if m not in before
        }
        assert s["metric"][k] == max(rho, key=rho.get) and s["rho"][k] == pytest.approx(max(rho.values()))


# Designs
def test_a_study_is_what_its_draw_says(scores):
    quality, uncertainty, truth = scores
    d = cs.power_study(quality, uncertainty, truth, sizes=(20,), draws=1, seed=5).set_index("metric")
    order = np.random.default_rng([5, 20, 0]).permutation(80)
    seen, rest = order[:20], order[20:]
    on_rest = {c: prr(truth.iloc[rest], uncertainty[c].iloc[rest]).value for c in uncertainty}

    def pick(s):
        return max(uncertainty, key=lambda c: prr(s.iloc[seen], uncertainty[c].iloc[seen]).value)

    for m, s in [*quality.items(), ("truth", truth)]:
        assert d.at[m, "true_prr"] == pytest.approx(on_rest[pick(s)])
        assert d.at[m, "regret"] == pytest.approx(max(on_rest.values()) - on_rest[pick(s)])
        assert d.at[m, "excess"] == pytest.approx(on_rest[pick(truth)] - on_rest[pick(s)])
    assert d.at[cs.RANDOM_METHOD, "true_prr"] == pytest.approx(np.mean(list(on_rest.values())))


def test_larger_studies_and_better_metrics_pick_better(scores):
    quality, uncertainty, truth = scores
    d = cs.power_study(
        quality.assign(copy=quality["m2"]), uncertainty, truth, sizes=(8, 40), draws=300
    ).set_index(["n", "metric"])
    assert (
        d.at[(40, "truth"), "regret"] < d.at[(8, "truth"), "regret"] < d.at[(8, cs.RANDOM_METHOD), "regret"]
        and d.at[(40, "truth"), "true_prr"] > d.at[(8, "truth"), "true_prr"]
    )
    assert d.at[(40, "m2"), "excess"] > d.at[(40, "m1"), "excess"] > 0
    assert abs(d.at[(40, "m0"), "excess"]) < 1e-12
    assert d.loc[(8, "copy")].equals(d.loc[(8, "m2")])


def test_studies_depend_on_their_seed_only(scores):
    quality, uncertainty, truth = scores
    a, b, c = (
        cs.power_study(quality, uncertainty, truth, sizes=s, draws=20, seed=k)
        for s, k in (((10, 30), 1), ((30,), 1), ((30,), 2))
    )
    pd.testing.assert_frame_equal(a[a["n"] == 30].reset_index(drop=True), b)
    assert not b.equals(c)


def test_a_draw_in_which_a_metric_is_constant_is_no_study(scores):
    quality, uncertainty, truth = scores
    rare = pd.DataFrame(dict(rare=(np.arange(80) == 7).astype(float)), truth.index)
    d = cs.power_study(rare, uncertainty, truth, sizes=(10,), draws=200).set_index("metric")
    assert (
        0 < d.at["rare", "studies"] < 80
        and d.at["truth", "studies"] == 200
        and np.isfinite(d.at["rare", "regret"])
    )


@pytest.mark.parametrize("n", [2, 78, 100])
def test_a_study_leaves_something_over(scores, n):
    with pytest.raises(ValueError, match=f"a study of {n} of 80 samples"):
        cs.power_study(*scores, sizes=(n,))


# Length
def test_the_partial_correlation_is_that_of_the_textbook(scores):
    quality, uncertainty, truth = scores
    z = pd.Series(rankdata(truth + np.random.default_rng(0).normal(size=80)), truth.index)
    b = cs.length_adjusted_prr(uncertainty, truth, z).set_index("method")
    for c in uncertainty:
        xy, xz, yz = (
            spearmanr(uncertainty[c], truth)[0],
            spearmanr(uncertainty[c], z)[0],
            spearmanr(truth, z)[0],
        )
        r = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
        assert b.at[c, "partial"] == pytest.approx(r) and b.at[c, "p"] == pytest.approx(
            2 * student.sf(abs(r) * np.sqrt(77 / (1 - r * r)), 77)
        )


def test_strata_are_judged_one_by_one_and_averaged(scores):
    quality, uncertainty, truth = scores
    z = pd.Series(np.arange(80) % 20, truth.index, dtype=float)
    part = cs._length_strata(z.to_numpy(), 4)
    assert np.bincount(part).tolist() == [20] * 4 and all(len(set(part[z == v])) == 1 for v in z.unique())
    want = np.mean([prr(truth[part == s], uncertainty["u0"][part == s]).value for s in range(4)])
    b = cs.length_adjusted_prr(uncertainty, truth, z).set_index("method")
    assert b.at["u0", "within"] == pytest.approx(want) and b.at["u0", "plain"] == pytest.approx(
        prr(truth, uncertainty["u0"]).value
    )


def test_of_the_length_itself_nothing_is_left():
    n = pd.Series(np.random.default_rng(0).integers(3, 30, 60).astype(float))
    b = cs.length_adjusted_prr(
        pd.DataFrame(dict(length=n, doubled=2 * n, shorter=-n)),
        -n + np.random.default_rng(1).normal(size=60),
        n,
    )
    assert (
        (b["residual"].abs() < 1e-12).all()
        and b["partial"].isna().all()
        and b["explained"][:2].tolist() == [1, 1]
        and np.isnan(b["explained"][2])
    )


def test_what_ranks_nothing_is_left_out_by_name():
    x = pd.DataFrame(dict(a=[1.0, 2, 3], b=[1, np.nan, 2], c=[4.0, 4, 4], d=[0, np.inf, 1]))
    kept, why = cs.usable_scores(x)
    assert list(kept) == ["a"] and why == dict(
        b="undefined for 1 of 3 texts", c="the same for all texts", d="infinite for some text"
    )
