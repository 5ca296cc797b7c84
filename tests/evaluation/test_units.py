"""Within and between texts: hand-computed cases, naive loops, invariance, nulls, ties and gaps."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.measure_cases import near
from uetrust import prr
from uetrust.evaluation.pairs import auroc
from uetrust.evaluation.units import between_prr, unit_table, within_auroc
from uetrust.papers.people.biographies import scored_facts

few = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3))  # Quality, uncertainty, text
tables = st.lists(few, min_size=1, max_size=14).map(lambda rows: np.array(rows, float).T)


def naive_text(quality, uncertainty):
    "Share of pairs of different quality in the right order, or None"
    found = [
        (a > b) + (a == b) / 2
        for (p, a), (q, b) in product(zip(quality, uncertainty), repeat=2)
        if p < q  # The first is worse
    ]
    return np.mean(found) if found else None


def simulated(rng, texts=60, units=8, by_text=0.0, by_unit=0.0):
    "Labels, uncertainties and texts; texts differ in their share of right units"
    text = np.repeat(np.arange(texts), units)
    share = rng.uniform(0.2, 0.9, texts)
    right = (rng.random(len(text)) < share[text]).astype(float)
    unsure = rng.normal(size=len(text)) - by_unit * right - by_text * 5 * share[text]
    return right, unsure, text


# ---- values
def test_values_worked_by_hand():
    found = within_auroc([1, 0, 1, 0, 0], [1, 2, 4, 3, 5], list("aabbb"))
    assert (found.value, found.texts, found.n) == (0.75, 2, 5)  # 1 in text a, 1/2 in text b
    third = within_auroc([1, 0, 1, 0, 0, 1], [1, 2, 4, 3, 5, 9], list("aabbbc"))
    assert third[:8] == found[:8] and third.note.startswith("2 of 3 texts have units of different quality")
    graded = within_auroc([3, 2, 1], [1, 3, 2], [0, 0, 0])
    assert graded.value == near(2 / 3)
    across = between_prr([1, 1, 0, 1, 0, 0], [1, 2, 3, 4, 6, 5], list("aabbcc"))
    assert across[:9] == near(np.array(prr([1, 0.5, 0], [1.5, 3.5, 5.5])[:9])) and across.n == 3


@given(tables)
def test_within_is_the_mean_of_a_loop_over_texts(table):
    quality, uncertainty, text = table
    values = [naive_text(quality[text == t], uncertainty[text == t]) for t in np.unique(text)]
    values = [value for value in values if value is not None]
    found = within_auroc(quality, uncertainty, text)
    assert found.texts == len(values) and found.value == near(np.mean(values) if values else np.nan)
    if len(values) > 2:
        assert found.se == near(np.std(values, ddof=1) / np.sqrt(len(values)))
        assert 0 <= found.lo <= found.value <= found.hi <= 1


def test_labels_of_one_text_give_its_auroc():
    rng = np.random.default_rng(1)
    right, unsure = rng.integers(0, 2, 50).astype(float), rng.integers(0, 9, 50)
    found = within_auroc(right, unsure, np.zeros(50))
    assert found.value == near(auroc(right, unsure)) and np.isnan([found.se, found.lo, found.hi]).all()
    assert found.note.endswith("too few texts for an error or an interval") and 0 < found.p <= 1


@pytest.mark.parametrize("aggregate, of", [("mean", np.mean), ("largest", np.max)])
def test_between_is_the_prr_of_a_loop_over_texts(aggregate, of):
    right, unsure, text = simulated(np.random.default_rng(2), by_text=1)
    rows = [(right[text == t].mean(), of(unsure[text == t])) for t in range(60)]
    assert between_prr(right, unsure, text, aggregate)[:9] == near(np.array(prr(*zip(*rows))[:9]))
    with pytest.raises(ValueError, match="aggregate is one of .'mean', 'largest'., got 'median'"):
        between_prr(right, unsure, text, "median")


# ---- invariance
def test_order_of_rows_names_of_texts_and_scale_change_nothing():
    right, unsure, text = simulated(np.random.default_rng(3), texts=20, units=5, by_unit=0.3)
    unsure, text = unsure.round(1), 100 + text
    found, across = within_auroc(right, unsure, text), between_prr(right, unsure, text, "largest")
    order = np.random.default_rng(4).permutation(len(text))
    names = np.array([f"text {t}" for t in text])
    for moved in (
        (right[order], unsure[order], text[order]),
        (right, np.exp(unsure), names),
        (2 * right - 7, unsure, names),
        (right, unsure**3, text),
    ):
        assert within_auroc(*moved)[:8] == near(np.array(found[:8]))
        assert between_prr(*moved, "largest")[:9] == near(np.array(across[:9]), 1e-9)
    assert within_auroc(right, unsure, -text).value == near(found.value)
    assert within_auroc(right, -unsure, text).value == near(1 - found.value)


def test_series_are_joined_by_name():
    right = pd.Series([1, 0, 1, 0.0], list("pqrs"))
    unsure, text = pd.Series([4, 3, 2, 1.0], list("srqp")), pd.Series(list("yxxy"), list("sqpr"))
    assert within_auroc(right, unsure, text).value == 1  # By position it would be 1/2


# ---- what a method knows
def test_a_method_that_knows_only_the_text_has_one_half_within():
    right, _, text = simulated(np.random.default_rng(5))
    found = within_auroc(right, text % 7, text)
    assert found[:6] == (0.5, 0, 0.5, 0.5, 0, 1) and "100% of uncertainties tied" in found.note
    knows = within_auroc(*simulated(np.random.default_rng(6), by_text=1))
    assert abs(knows.value - 0.5) < 1.96 * knows.null_sd and knows.p > 0.05
    assert between_prr(*simulated(np.random.default_rng(6), by_text=1)).p < 0.001


def test_a_method_that_ranks_only_inside_is_at_chance_between():
    right, unsure, text = simulated(np.random.default_rng(7), by_unit=2)
    centred = unsure - pd.Series(unsure).groupby(text).transform("mean").to_numpy()
    ranked = pd.Series(unsure).groupby(text).rank().to_numpy()
    assert within_auroc(right, centred, text).value > 0.8
    flat = between_prr(right, ranked, text)
    assert flat.value == near(0) and flat.p == 1 and "nothing is ranked" in flat.note


# ---- nulls
@pytest.mark.parametrize("quality", [[0, 0, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("uncertainty", [[0, 1, 2, 3], [0, 0, 1, 2], [0, 0, 0, 1]])
def test_null_is_that_of_all_permutations(quality, uncertainty):
    of_all = [within_auroc(quality, p, [0] * 4).value for p in permutations(uncertainty)]
    found = within_auroc(quality, uncertainty, [0] * 4)
    assert np.mean(of_all) == near(0.5) and found.null_sd == near(np.std(of_all))
    beyond = np.mean(np.abs(np.array(of_all) - 0.5) >= abs(found.value - 0.5) - 1e-12)
    assert found.p == pytest.approx(beyond, abs=0.05)


def test_drawn_and_normal_p_agree(monkeypatch):
    from uetrust.evaluation import units

    data = simulated(np.random.default_rng(8), texts=100, units=8, by_unit=0.05)
    normal = within_auroc(*data)
    monkeypatch.setattr(units, "MOST_PERMUTED_PAIRS", 10_000)
    drawn = within_auroc(*data)
    assert 0.001 < drawn.p < 0.9 and drawn.p == pytest.approx(normal.p, abs=0.02)


@pytest.mark.parametrize("texts", [12, 100])  # Permutations; the normal distribution
def test_p_is_below_05_in_one_of_twenty_null_tables_and_intervals_hold(texts, draws):
    rng, found = np.random.default_rng(9), []
    for _ in range(draws(1000, 60)):
        right, unsure, text = simulated(rng, texts)
        inside, across = within_auroc(right, unsure, text), between_prr(right, unsure, text)
        found.append((inside.p < 0.05, not inside.lo <= 0.5 <= inside.hi, across.p < 0.05))
    rates, slack = np.mean(found, 0), 4 * np.sqrt(0.05 * 0.95 / len(found))
    assert (rates <= 0.05 + slack).all() and (rates >= 0.05 - slack).all()


# ---- what does not exist
def test_missing_values_leave_units_out():
    right, unsure, text = [1, 0, 1, 0, np.nan, 0], [1, 2, 4, 3, 0, np.nan], list("aabbab")
    assert within_auroc(right, unsure, text) == within_auroc(right[:4], unsure[:4], text[:4])
    assert between_prr(right + [1], unsure + [9], text + ["c"]).n == 3
    empty = within_auroc([np.nan, 1], [1, np.nan], ["a", "b"])
    assert np.isnan(empty.value) and empty.note == "none of 2 samples has both quality and uncertainty"
    assert between_prr([np.nan, 1], [1, np.nan], ["a", "b"]).note == empty.note


def test_one_label_per_text_leaves_nothing_within():
    found = within_auroc([1, 1, 0, 0], [1, 2, 3, 4], list("aabb"))
    assert np.isnan(found[:6]).all() and found[6:8] == (0, 0)
    assert found.note == "none of 2 texts has units of different quality: there is nothing to rank"


def test_perfect_order_in_all_texts_has_an_interval_with_a_width():
    found = within_auroc([1, 0] * 5, [0, 1] * 5, np.repeat(range(5), 2))
    assert (found.value, found.se, found.hi) == (1, 0, 1) and found.lo == near(0.025 ** (1 / 5))
    reverse = within_auroc([1, 0] * 5, [1, 0] * 5, np.repeat(range(5), 2))
    assert (reverse.value, reverse.lo) == (0, 0) and reverse.hi == near(1 - found.lo)


def test_a_unit_without_a_text_is_an_error():
    for measure in (within_auroc, between_prr):
        with pytest.raises(ValueError, match="1 units have no document, at position 1"):
            measure([1, 0], [0, 1], ["a", None])
        with pytest.raises(ValueError, match=r"document needs one name per unit, shape \(2,\), got \(3,\)"):
            measure([1, 0], [0, 1], list("abc"))
        with pytest.raises(ValueError, match="quality must be finite"):
            measure([1, np.inf], [0, 1], list("ab"))


# ---- people's labels
def test_facts_of_biographies_are_found_within_and_between():
    facts, expected = scored_facts(), dict(position=(0.637, 0.619), missing_words=(0.770, 0.657))
    for i, system in enumerate(("InstructGPT", "ChatGPT")):
        own = facts[facts["system"] == system]
        table = unit_table(own[["right"]], own[[*expected]], own["person"]).set_index("method")
        for score, values in expected.items():
            assert auroc(own["right"], own[score]) == pytest.approx(values[i], abs=0.001)
            row = table.loc[score]
            assert row["within_lo"] < row["within"] < row["within_hi"] and row["within_p"] < 0.001
            assert row["between_lo"] < row["between"] < row["between_hi"]
        assert table["between_texts"].eq(own["person"].nunique()).all()
        assert table.at["position", "between"] < 0 < table.at["missing_words", "between_lo"]


def test_texts_of_one_source_are_no_independent_texts():
    "Each source's texts copied: the value stays, and the error is that of the sources."
    rng = np.random.default_rng(5)
    one = pd.DataFrame(
        dict(text=np.repeat(np.arange(30), 4), right=rng.integers(0, 2, 120), u=rng.random(120))
    )
    two = pd.concat([one, one.assign(text=one["text"] + 30)], ignore_index=True)
    source = two["text"] % 30
    alone = within_auroc(one["right"], one["u"], one["text"])
    copied = within_auroc(two["right"], two["u"], two["text"], source)
    assert (copied.value, copied.lo, copied.hi) == pytest.approx((alone.value, alone.lo, alone.hi))
    assert (
        within_auroc(two["right"], two["u"], two["text"]).se
        < 0.8 * copied.se
        == pytest.approx(0.8 * alone.se)
    )
    across, single = (
        between_prr(two["right"], two["u"], two["text"], source=source),
        between_prr(one["right"], one["u"], one["text"]),
    )
    assert across.n == 60 and across.se == pytest.approx(single.se, rel=0.1)
    with pytest.raises(ValueError, match="a text has one source"):
        within_auroc(two["right"], two["u"], two["text"], rng.permutation(source))
