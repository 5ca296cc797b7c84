"""What may stay: the truth of statements, half splits by hand, and promises that hold in every group."""

import numpy as np
import pandas as pd
import pytest

from uetrust.data.bulletins import bulletins
from uetrust.evaluation.inference.refine import claim_limits, claim_threshold
from uetrust.papers.people.promises import stored_inference
from uetrust.papers.units import kept
from uetrust.papers.units.kept import ClaimSet, claim_promises, claim_sets, refined_set, shared_statements


@pytest.fixture(scope="module")
def sets():
    return claim_sets()


def made_up(rng, n=120):
    text = np.repeat(np.arange(n), 3)
    right = rng.random(3 * n) > 0.3
    columns = dict(document=text, right=right.astype(float), kind=np.array(["one", "two"])[text % 2])
    gain = np.where(text % 2, 0.2, 0.8)
    return pd.DataFrame(columns | dict(u=np.round(rng.random(3 * n) - gain * right, 1)))


def test_a_statement_is_shared_with_the_texts_that_make_it():
    world = bulletins("test", 2)
    first, second = world["reference"]
    rows = [("greedy", first), ("sample", first), ("sample", first.split(". ")[0] + "."), ("sample", second)]
    bank = pd.DataFrame(rows, columns=["kind", "text"]).assign(sample=world["id"][0])
    found = shared_statements(bank, world)
    assert found["right"].eq(1).all() and " ".join(found["text"]) == first
    assert found["not_drawn"].iloc[0] == pytest.approx(1 / 3)
    assert found["not_drawn"].iloc[1:].tolist() == pytest.approx([2 / 3] * (len(found) - 1))
    other = shared_statements(bank.assign(sample=world["id"][1]), world)
    assert not other["right"].all()  # The summary of another bulletin
    alone = shared_statements(bank.head(1), world)
    assert alone["not_drawn"].isna().all() and alone["position"].iloc[-1] == 1


def test_the_sets_are_stored_texts_with_their_truth(sets):
    assert list(sets) == [*(f"bulletins, tiny-{name}" for name in ("bart", "t5", "llama")), "biographies"]
    for one in sets.values():
        assert one.claims[list(one.methods)].notna().all(axis=None) and one.claims["right"].isin((0, 1)).all()
    assert sets["bulletins, tiny-bart"].claims["document"].nunique() == 200
    facts = sets["biographies"].claims
    assert facts.groupby("document")[["system", "rarity"]].nunique().eq(1).all(axis=None)


def test_a_split_is_half_of_each_group_and_its_risks_are_counted():
    one = ClaimSet(made_up(np.random.default_rng(0)), ("u",), ("kind",), 0.2)
    table = claim_promises(one, "kind", draws=8, seed=3)
    rng, claims, found = np.random.default_rng(3), one.claims, []
    limits = claim_limits(claims["right"], claims["u"], claims["document"])
    for _ in range(8):
        parts = [rng.permutation(np.arange(start, 120, 2)) for start in (0, 1)]
        whole = claim_threshold(limits[np.concatenate([own[:30] for own in parts])], 0.2).threshold
        for own in parts:
            t = claim_threshold(limits[own[:30]], 0.2).threshold
            new, every = limits[own[30:]], limits[own]
            found.append([(new < t).mean(), (every < t).mean() > 0.2, (new < whole).mean()])
    found = np.array(found).reshape(8, 2, 3).mean(0)
    mine = table[table["delta"].isna()]
    assert mine["group"].tolist() == ["one", "two"] and (mine["n"] == 30).all()
    assert mine[["risk", "broken", "one_risk"]].to_numpy() == pytest.approx(found)
    assert mine["base"].tolist() == [np.isfinite(limits[start::2]).mean() for start in (0, 1)]


def test_stored_promises_hold_in_every_group_and_not_under_one_threshold(sets):
    table = stored_inference("claim_promises")
    assert set(table["set"]) == set(sets) and (table["draws"] == 1000).all()
    assert (table["risk"] <= table["alpha"]).all()  # On average over splits
    sure = table[table["delta"].notna()]
    assert (sure["broken"] <= sure["delta"]).all() and len(sure) * 2 == len(table)
    rare = sure[(sure["group"] == "very rare") & (sure["method"] == "position")].iloc[0]
    assert rare["one_risk"] > rare["alpha"] and rare["one_broken"] > rare["delta"]


def test_the_same_is_stored_as_is_made_from_fewer_splits(monkeypatch, tmp_path):
    stored, made = stored_inference("claim_promises"), {}
    monkeypatch.setattr(kept, "store_inference", lambda name, table, *_, **about: made.update({name: table}))
    kept.store_claim_promises(draws=2)
    columns = ["set", "by", "group", "method", "alpha", "delta", "texts", "n", "base"]
    pd.testing.assert_frame_equal(made["claim_promises"][columns], stored[columns])


def test_a_refined_set_has_all_methods_and_the_groups_that_are_named(sets):
    one = sets["biographies"]
    found = refined_set(one, "rarity", draws=20)
    assert set(found.methods["method"]) == set(one.methods) and found.table["group"].nunique() == 5
    best = found.methods.iloc[0]
    assert best["method"] == "missing_then_position" and found.alpha == 0.2
    assert refined_set(one, draws=20).table["group"].unique().tolist() == ["all"]


def test_what_is_kept_is_sorted_in_each_set(sets):
    table = kept.kept_at_equal_risk(sets, draws=50)
    assert list(table["group"].unique()) == list(sets)
    for name, part in table.groupby("group"):
        assert part["value"].is_monotonic_decreasing and set(part["label"]) == set(sets[name].methods)
        assert (part["texts"] == sets[name].claims["document"].nunique()).all()
    facts = table[table["group"] == "biographies"].set_index("label")["value"]
    assert facts["missing_words"] == 0 < facts["position"] < facts["missing_then_position"]


def test_the_facts_of_promises_are_those_of_the_rows():
    rows = stored_inference("claim_promises")
    facts = kept.promise_facts(rows)
    assert facts.highest_broken == rows["broken"][rows["delta"].notna()].max() <= facts.delta
    assert facts.highest_excess <= 0 and facts.combinations * 2 == len(rows)
    assert facts.riskless == (rows.loc[rows["delta"].isna(), "risk"] == 0).sum() == 9
    worst = facts.groups.iloc[0]
    assert worst["group"] == "very rare" and worst["one_risk"] > 0.4 > worst["risk"]
    assert set(facts.groups["by"]) == {"system", "rarity"}
