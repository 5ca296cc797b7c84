"""Refined claims: no text judges itself, groups keep promises, intervals hold the noise of the threshold."""

from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.inference.kept_claims import kept_sentence, refine_claims
from uetrust.evaluation.inference.refine import claim_limits, claim_threshold
from uetrust.evaluation.resample import bootstrap_counts


def claims_at_random(rng, n, rare=0.5):
    "Claims of n texts with ties; texts of the group 'rare' have wrong claims that look certain."
    size = rng.integers(1, 6, n)
    text = np.repeat(np.arange(n), size)
    group = np.where(rng.random(n) < rare, "rare", "frequent")[text]
    right = rng.random(len(text)) > 0.2
    good = np.round(rng.random(len(text)) - right * np.where(group == "rare", 0.2, 0.7), 1)
    columns = dict(text=text, right=right.astype(float), group=group, good=good)
    return pd.DataFrame(columns | dict(noise=rng.random(len(text)).round(1)))


def refined(df, *names, **options):
    return refine_claims(df["right"], df[list(names or ["good"])], df["text"], **options)


def as_new(df, text):
    return df.assign(right=df["right"].mask(df["text"] == text))


@pytest.mark.parametrize("options", [dict(), dict(delta=0.3)])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_labelled_text_is_refined_as_if_it_were_new(options, grouped):
    df = claims_at_random(np.random.default_rng(0), 24)
    options |= dict(alpha=0.3, draws=2) | (dict(group=df["group"]) if grouped else {})
    found = refined(df, "good", "noise", **options)
    for text in range(24):
        mine = df["text"] == text
        assert found.kept[mine].equals(refined(as_new(df, text), "good", "noise", **options).kept[mine])


def test_a_group_is_refined_as_if_it_were_alone():
    df = claims_at_random(np.random.default_rng(1), 60)
    df["right"] = df["right"].mask(df["text"] % 10 == 0)
    found = refined(df, alpha=0.2, group=df["group"], draws=3)
    table = found.table.set_index("group")
    for name, part in df.groupby("group"):
        alone, one = refined(part, alpha=0.2, draws=3), table.loc[name]
        same = "texts needed wrong rule threshold promise kept risk claims missing new_texts new_kept".split()
        assert one[same].equals(alone.table.iloc[0][same].rename(name))
        assert found.kept[df["group"] == name].equals(alone.kept)


def test_the_risk_under_one_threshold_is_counted_in_each_group():
    df = claims_at_random(np.random.default_rng(2), 80)
    table = refined(df, alpha=0.2, group=df["group"], draws=2).table.set_index("group")
    whole = refined(df, alpha=0.2, draws=2)
    broken = (whole.kept["good"] & (df["right"] == 0)).groupby(df["text"]).any()
    of_text = df.groupby("text")["group"].first()
    for name in ("rare", "frequent"):
        assert table.loc[name, "one_risk"] == broken[of_text == name].mean()
        stays = df["good"] < whole.table["threshold"][0]
        assert table.loc[name, "one_kept"] == stays[df["group"] == name].mean()
    assert table.loc["rare", "one_risk"] > 0.2 >= table["risk"].max()


@pytest.mark.parametrize("delta", [None, 0.1])
def test_the_promise_holds_for_new_texts_of_each_group(delta):
    rng, broken = np.random.default_rng(3), {"rare": [], "frequent": []}
    for _ in range(300):
        df = claims_at_random(rng, 260)
        hidden = df.assign(right=df["right"].where(df["text"] < 60))
        kept = refined(hidden, alpha=0.2, delta=delta, group=df["group"], draws=1).kept["good"]
        wrong = df[(df["text"] >= 60)].assign(bad=kept & (df["right"] == 0))
        for name, part in wrong.groupby("group"):
            broken[name].append(part.groupby("text")["bad"].any().mean())
    for shares in map(np.array, broken.values()):
        error = shares.std() / np.sqrt(len(shares))
        if delta is None:
            assert 0.1 < shares.mean() <= 0.2 + 3 * error
        else:  # About 100 new texts: their own noise comes on top of delta
            assert (shares > 0.2 + 2 * np.sqrt(0.2 * 0.8 / 100)).mean() <= 0.1


def test_several_methods_share_delta():
    df = claims_at_random(np.random.default_rng(4), 60)
    two = refined(df, "good", "noise", alpha=0.2, delta=0.2, draws=1).table
    alone = refined(df, alpha=0.2, delta=0.1, draws=1).table
    assert two["threshold"][0] == alone["threshold"][0] and two["sentence"][0] == alone["sentence"][0]
    assert "With probability 90%, at most 20% of new texts" in alone["sentence"][0]


def test_the_interval_is_that_of_texts_drawn_again_each_time_with_a_new_threshold():
    df = claims_at_random(np.random.default_rng(5), 30)
    df.loc[3, "good"] = nan
    counts = bootstrap_counts(30, 50, np.random.default_rng(9))
    parts, shares = [part for _, part in df.groupby("text")], []
    for row in counts:
        drawn = [
            part.assign(text=i) for i, part in enumerate(p for p, k in zip(parts, row) for _ in range(k))
        ]
        sample = pd.concat(drawn)
        limits = claim_limits(sample["right"], sample["good"], sample["text"])
        shares.append((sample["good"] < claim_threshold(limits, 0.2).threshold).mean())
    found = refined(df, alpha=0.2, draws=50, seed=9)
    assert found.table[["lo", "hi"]].to_numpy()[0] == pytest.approx(np.quantile(shares, [0.025, 0.975]))
    assert found.methods[["lo", "hi"]].to_numpy()[0] == pytest.approx(np.quantile(shares, [0.025, 0.975]))


def test_the_same_seed_gives_the_same_intervals_and_another_seed_others():
    df = claims_at_random(np.random.default_rng(6), 40)
    one, same, other = (refined(df, alpha=0.3, draws=40, seed=seed).table for seed in (1, 1, 2))
    assert one.equals(same) and not one[["lo", "hi"]].equals(other[["lo", "hi"]])


def test_methods_are_sorted_by_what_they_keep_and_near_ties_have_no_winner():
    df = claims_at_random(np.random.default_rng(7), 300, rare=0)
    df["near"] = df["good"] + 0.001 * (df.index == 5)
    found = refined(df, "noise", "near", "good", alpha=0.2, draws=200).methods
    assert found["kept"].is_monotonic_decreasing and found["method"][2] == "noise"
    assert found["verdict"].tolist() == [
        "first, but not beyond noise",
        "no clear difference from the first",
        "keeps less",
    ]
    first, second = found["method"][:2]
    said = kept_sentence(found)
    assert said.startswith(f"At equal risk no method clearly keeps most: {first} (") and second in said
    assert said.endswith(f"do not differ beyond noise. Less is kept by noise ({found['kept'][2]:.0%}).")
    two = refined(df, "noise", "good", alpha=0.2, draws=200).methods
    assert kept_sentence(two).startswith("At equal risk good (") and kept_sentence(two[:1]) == ""
    assert two["verdict"].tolist() == ["keeps most", "keeps less"]
    assert found["behind_lo"][2] > 0 and found["behind"][2] == found["kept"][0] - found["kept"][2]


def test_equal_methods_are_seldom_told_apart():
    rng, told = np.random.default_rng(8), 0
    for _ in range(100):
        text, right = np.repeat(np.arange(80), 3), rng.random(240) > 0.3
        unsure = pd.DataFrame({name: rng.random(240) - 0.5 * right for name in "abc"})
        found = refine_claims(right, unsure, text, 0.2, draws=100)
        told += "keeps less" in set(found.methods["verdict"])
    assert told <= 8


def test_a_claim_without_uncertainty_is_never_kept_and_is_counted():
    df = claims_at_random(np.random.default_rng(10), 30).assign(right=1.0)
    df.loc[[0, 7], "good"] = nan
    found = refined(df, alpha=0.2, draws=2)
    assert found.table["missing"][0] == 2 and not found.kept["good"][[0, 7]].any()
    assert found.kept["good"].sum() == len(df) - 2 and found.table["kept"][0] == 1 - 2 / len(df)
    grouped = refined(df, alpha=0.2, draws=2, group=np.where(df["text"] == df["text"][7], "a", "b"))
    missing = df["good"].isna().groupby(df["text"] != df["text"][7]).sum()
    assert sorted(grouped.table["missing"]) == sorted(missing)
    assert "no scored claim of the 30 texts is wrong, so every claim is kept" in found.table["sentence"][0]


def test_what_cannot_be_promised_is_said_for_each_group():
    df = claims_at_random(np.random.default_rng(11), 30, rare=0).assign(group="many")
    df.loc[df["text"] < 4, "group"] = "few"
    df.loc[df["text"] > 27, "group"] = "new"
    df["right"] = df["right"].mask(df["text"] > 27)
    found = refined(df, alpha=0.1, group=df["group"], draws=2)
    said, table = found.table.set_index("group")["sentence"], found.table.set_index("group")
    assert said["few"] == "good, few: too few texts to promise anything: 4 of 9 needed. No claim is kept."
    assert said["new"] == "good, new: no labelled text, so nothing can be promised and no claim is kept."
    assert said["many"].startswith("good, many: keep claims with good below")
    assert table["promise"].isna().to_dict() == dict(few=True, many=False, new=True)
    assert not found.kept["good"][df["group"] != "many"].any() and table.loc["new", "new_texts"] == 2
    assert table["rule"].to_dict() == dict(few="no claim", many="below", new="no claim")


def test_few_texts_with_wrong_claims_need_no_threshold():
    df = claims_at_random(np.random.default_rng(12), 40).assign(right=1.0)
    df.loc[df.index[-1], "right"] = 0
    found = refined(df, alpha=0.2, draws=2).table.iloc[0]
    assert found["threshold"] == inf and found["kept"] == 1 and found["rule"] == "every claim"
    assert "every claim is kept, because only 1 of 40 texts have a wrong claim" in found["sentence"]


def test_a_tie_of_wrong_claims_at_the_smallest_value_keeps_nothing():
    text, right = np.repeat(np.arange(20), 3), np.tile([1, 0, 1], 20)
    tied = refine_claims(right, pd.DataFrame(dict(u=np.tile([0, 0, 1], 20))), text, draws=2)
    assert not tied.kept["u"].any() and tied.table["kept"][0] == 0 == tied.table["risk"][0]
    assert "too many texts have wrong claims with the smallest values" in tied.table["sentence"][0]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (dict(), dict(alpha=0), "alpha must lie between 0 and 1, got 0"),
        (dict(), dict(alpha=0.1, delta=1), "delta must lie between 0 and 1, got 1"),
        (dict(right=nan), dict(), "no text has labels: label each claim of some texts"),
        (dict(right=[1, nan, 1, 0, 1]), dict(), "text a has labels for some claims only"),
        (dict(), dict(group=["x", "y", "x", "x", "x"]), "text a has two groups, x, y: a group is a property"),
        (dict(), dict(group=["x", "x", "x", None, "x"]), "text b has a claim without a group"),
        (dict(), dict(group=["x"]), "needs one group per claim, got 1 for 5 claims"),
        (dict(text=["a", "a", "a", None, "b"]), dict(), "needs the text of each of 5 claims, got 4"),
        (dict(good="high"), dict(), "must be numbers, found 'high'"),
    ],
)
def test_what_means_nothing_is_refused(change, options, said):
    df = pd.DataFrame(dict(text=list("aaabb"), right=[1, 0, 1, 0, 1.0], good=[1, 2, 3, 4, 5.0]))
    with pytest.raises(ValueError, match=said):
        refined(df.assign(**change), **options)
