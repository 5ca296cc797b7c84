"""Stability: effect of seed, prompt, metric and texts on a PRR and on a ranking; known noise is recovered."""

import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from uetrust.core import settings as s
from uetrust.core.settings import root
from uetrust.data.datasets import load_samples
from uetrust.evaluation.cells import PRRCells
from uetrust.evaluation.prr import prr, prr_difference
from uetrust.generation.bank import read_bank
from uetrust.papers.bulletins import stability as st
from uetrust.scoring import pipeline as f
from uetrust.scoring.methods import score_generations
from uetrust.statistics.scores import load_scores

load_scores()


def study(drawn=0.5, blur=1.0, seeds=3, n=100, m=3, seed=0):
    "Levels with a known share of noise that each seed draws anew"
    rng = np.random.default_rng(seed)
    quality = pd.Series(rng.integers(0, 9, n) / 8, [f"t{i}" for i in range(n)])
    kept = -quality.to_numpy()[:, None] * 3 + rng.normal(size=(n, m)) * blur
    return {
        f"s{k}": (
            quality,
            pd.DataFrame(kept + rng.normal(size=(n, m)) * drawn, quality.index, [f"u{j}" for j in range(m)]),
        )
        for k in range(seeds)
    }


# Components
def values(levels):
    return np.array(
        [
            [prr(quality, uncertainty[c]).value for c in uncertainty]
            for quality, uncertainty in levels.values()
        ]
    )


def test_three_seeds_find_the_noise_that_hundreds_show():
    "Over 25 sets of texts: the variance over 25 seeds each, and what three of the seeds say of it"
    true, estimated = [], []
    for k in range(25):
        levels = study(seeds=25, n=80, m=2, seed=k)
        true.append(st._delete_one_prr(levels)[0].var(0, ddof=1))
        estimated.append(st.variation(dict(list(levels.items())[:3]), draws=2)["chance"] ** 2)
    assert np.mean(estimated) == pytest.approx(np.mean(true), rel=0.15)


@pytest.mark.parametrize("drawn,blur", [(0.3, 1.5), (1.0, 1.0), (1.5, 0.3)])
def test_the_share_of_the_seed_lies_in_its_interval(drawn, blur):
    "Truth from 1000 sets of texts with two seeds: variance over sets, half the squared difference"
    v = np.array(
        [
            [
                PRRCells(quality.to_numpy()[:, None], uncertainty.to_numpy()).value[0, 0]
                for quality, uncertainty in study(drawn, blur, 2, 80, 1, 1000 + k).values()
            ]
            for k in range(1000)
        ]
    )
    share = ((v[:, 0] - v[:, 1]) ** 2).mean() / 2 / v.var(0, ddof=1).mean()
    t = pd.concat([st.variation(study(drawn, blur, 3, 80, 1, k), 200, k) for k in range(40)])
    assert t["share"].mean() == pytest.approx(share, abs=0.08)
    assert ((t["share_lo"] - 0.03 < share) & (share < t["share_hi"] + 0.03)).mean() >= 0.75


def test_the_error_over_texts_is_that_of_prr():
    levels = study()
    x = st.variation(levels, 10).set_index("method")
    for c in x.index:
        se = np.array([prr(quality, uncertainty[c]).se for quality, uncertainty in levels.values()])
        assert x.at[c, "texts"] ** 2 == pytest.approx((se**2).mean(), rel=1e-10)
        assert x.at[c, "mean"] == pytest.approx(values(levels)[:, list(x.index).index(c)].mean(), rel=1e-12)
        assert x.at[c, "between"] == pytest.approx(
            values(levels)[:, list(x.index).index(c)].std(ddof=1), rel=1e-10
        )


def test_chance_is_half_of_the_paired_squared_errors():
    levels = study()
    d = st.level_differences(levels)
    assert np.allclose(
        st.variation(levels, 10)["chance"] ** 2, (d["se"] ** 2).groupby(d["method"]).mean() / 2, rtol=1e-10
    )


def test_a_difference_is_that_of_two_methods_on_the_same_texts():
    levels = study(seeds=2)
    (quality, a), (_, b) = levels.values()
    d = st.level_differences(levels).set_index("method")
    for c in a:
        want = prr_difference(quality, a[c], b[c])
        assert np.allclose(
            d.loc[c, ["value", "se", "lo", "hi", "p"]].astype(float),
            [want.value, want.se, want.lo, want.hi, want.p],
            rtol=1e-9,
        )


def test_the_same_seed_moves_nothing():
    one = study(seeds=1)["s0"]
    levels = {k: one for k in "abc"}
    x, d, h = (
        st.variation(levels, 20),
        st.level_differences(levels),
        st.split_half_agreement(levels, 30).set_index("changed"),
    )
    assert (
        np.allclose(x[["between", "chance", "share", "share_lo", "share_hi"]], 0, atol=1e-12)
        and (x["texts"] > 0).all()
    )
    assert (d[["value", "se"]].to_numpy() == 0).all() and (d["p"] == 1).all() and (d["q"] == 1).all()
    assert (
        h.loc["level", ["rho", "lo", "hi", "same", "loss"]].tolist() == [1, 1, 1, 1, 0]
        and h.at["texts", "same"] < 1
    )
    assert (st.rank_agreement_of_levels(st.prr_by_level(levels))[["rho", "loss"]].to_numpy() == [1, 0]).all()


def test_errors_of_exchangeable_seeds_are_of_the_right_size():
    p = np.concatenate([st.level_differences(study(seeds=2, m=1, seed=k))["p"] for k in range(200)])
    assert 0.02 <= (p < 0.05).mean() <= 0.09


# Rankings
def test_a_half_is_what_its_draw_says():
    levels = study(seeds=2, n=30, m=5, blur=3.0)
    rng = np.random.default_rng([4, 0])
    order, (i, j) = rng.permutation(30), rng.choice(2, 2, replace=False)

    def at(k, part):
        quality, uncertainty = list(levels.values())[k]
        return [prr(quality.iloc[part], uncertainty[c].iloc[part]).value for c in uncertainty]

    a, other, rest = at(i, order[:15]), at(j, order[:15]), at(i, order[15:])
    for row, b in zip(st.split_half_agreement(levels, 1, 4).itertuples(), (other, rest)):
        assert (
            row.n == 15
            and row.used == 1
            and row.rho == pytest.approx(spearmanr(a, b)[0])
            and row.lo == row.hi == row.rho
        )
        assert row.same == (np.argmax(a) == np.argmax(b)) and row.loss == pytest.approx(
            max(b) - b[np.argmax(a)]
        )


def test_orders_name_the_best_and_what_its_choice_costs():
    table = pd.DataFrame(
        [
            ("x", "a", 0.5),
            ("x", "b", 0.4),
            ("x", "c", 0.1),
            ("y", "a", 0.2),
            ("y", "b", 0.6),
            ("y", "c", 0.1),
        ],
        columns=["level", "method", "value"],
    )
    o = st.rank_agreement_of_levels(table).iloc[0]
    assert (
        (o.a, o.b, o.best_a, o.best_b, o.n) == ("x", "y", "a", "b", 3)
        and o.loss == pytest.approx(0.4)
        and o.rho == pytest.approx(0.5)
    )
    assert not len(st.rank_agreement_of_levels(table[table["level"] == "x"]))


def test_a_draw_depends_on_its_seed_only():
    levels = study(n=20)
    pd.testing.assert_frame_equal(
        st.split_half_agreement(levels, 8, 1), st.split_half_agreement(levels, 8, 1)
    )
    pd.testing.assert_frame_equal(st.variation(levels, 50, 1), st.variation(levels, 50, 1))
    assert not st.split_half_agreement(levels, 8, 1).equals(
        st.split_half_agreement(levels, 8, 2)
    ) and not st.variation(levels, 50, 1).equals(st.variation(levels, 50, 2))


def test_a_half_in_which_all_texts_are_equally_good_is_not_used():
    levels = study(n=12)
    quality = pd.Series(np.r_[0.0, np.ones(11)], next(iter(levels.values()))[0].index)
    h = st.split_half_agreement(
        {k: (quality, uncertainty) for k, (_, uncertainty) in levels.items()}, 40
    ).set_index("changed")
    assert 0 < h.at["level", "used"] < 40 and h.at["texts", "used"] == 0 and np.isnan(h.at["texts", "rho"])
    with pytest.raises(ValueError, match="halves of 5 texts are too small"):
        st.split_half_agreement(study(n=5))


# What levels share
def test_levels_share_texts_and_methods_and_say_what_they_leave_out():
    (quality, a), (_, b) = study(seeds=2, n=10).values()
    levels, why = st.common_levels(
        {"x": (quality, a), "y": (quality.drop("t3"), b.drop(index="t5", columns="u2").assign(u0=1.0, z=2.0))}
    )
    assert list(levels["x"][0].index) == [i for i in quality.index if i not in ("t3", "t5")] and list(
        levels["x"][1]
    ) == list(levels["y"][1]) == ["u1"]
    assert why == {"u0": "y: the same for all texts", "z": "y: the same for all texts"}
    with pytest.raises(ValueError, match="the levels x, y have no text in common"):
        st.common_levels({"x": (quality[:4], a), "y": (quality[4:], b)})


# Real texts
INI = """
[common]
banks =
items =
train_items =
nli = data/models/tiny-nli
encoder = data/models/tiny-encoder
tagger =
relevance =
[dataset.bulletin]
data = bulletin:test:3
[generator.base]
model = data/models/tiny-bart
max_new_tokens = 40
top_p = 0.9
samples = 4
passes = conditional sample_hidden
compare = entailments sentences embeddings
[generator.few]
like = base
samples = 2
[generator.same]
like = base
[generator.other]
like = base
seed = 1
[profile.small]
banks = bulletin--base
perturbed_banks = bulletin--few bulletin--same bulletin--other
"""


@pytest.fixture(scope="module")
def banks(tmp_path_factory):
    "Folders of four banks by the smallest model: a base, with fewer texts, again, and with another seed"
    d, mp = tmp_path_factory.mktemp("project"), pytest.MonkeyPatch()
    (d / "nbs").mkdir()
    (d / "data").mkdir()
    (d / "data" / "models").symlink_to(root() / "data" / "models")
    (d / "settings.ini").write_text(INI)
    mp.chdir(d)
    for c in (s.root, s._read):
        c.cache_clear()
    names = ("base", "few", "same", "other")
    try:
        yield {name: f.run_pipeline("small", f"bulletin--{name}", progress=False) for name in names}
    finally:
        mp.undo()
        for c in (s.root, s._read):
            c.cache_clear()
        shutil.rmtree(d)


def texts(folder, kind):
    return read_bank(folder / "texts").query("kind==@kind")["text"].tolist()


def test_another_seed_changes_what_is_drawn_and_not_the_greedy_text(banks):
    assert texts(banks["base"], "greedy") == texts(banks["same"], "greedy") == texts(banks["other"], "greedy")
    assert texts(banks["base"], "sample") == texts(banks["same"], "sample") != texts(banks["other"], "sample")
    a, b, c = (
        score_generations(banks[n], ["msp", *st.methods_using_samples()], progress=False).table.set_index(
            ["name", "sample"]
        )["value"]
        for n in ("base", "same", "other")
    )
    assert (
        a.equals(b)
        and np.allclose(a["msp"], c["msp"], rtol=1e-5)
        and not np.allclose(a["mcse"], c["mcse"], rtol=0.01)
    )


def test_the_first_texts_of_many_score_like_few(banks):
    s3 = load_samples("bulletin:test:3")
    a = st.scores_of_first_samples(banks["base"], 2, s3)
    b = score_generations(banks["few"], st.methods_using_samples(), s3, progress=False).table
    assert a["name"].nunique() > 30 and list(a["name"].unique()) == list(b["name"].unique())
    m = a.merge(b, on=["name", "sample"])
    assert len(m) == len(a) and np.allclose(m["value_x"], m["value_y"], rtol=1e-4, atol=1e-4, equal_nan=True)
    one = st.scores_of_first_samples(banks["base"], 2, s3, only=[s3["id"][1]])
    assert set(one["sample"]) == {s3["id"][1]} and np.allclose(
        one["value"], a[a["sample"] == s3["id"][1]]["value"], equal_nan=True
    )
    with pytest.raises(ValueError, match="drawn texts of a source: 9 are too many"):
        st.scores_of_first_samples(banks["base"], 9, s3)


def test_methods_by_draws_change_with_the_draws_and_no_others():
    greedy_only = {"t_tu", "t_mi", "s_rmi", "msp", "mte_he2024", "p_true", "verbalized_1s", "rauq"}
    assert not greedy_only & set(st.methods_using_samples()) and {
        "lex_sim",
        "deg_mat",
        "sentence_sar",
        "selfcheck_nli",
        "cocoa_msp",
        "num_sets",
    } <= set(st.methods_using_samples())
