"""Power of the next study: what is planned from a pilot is what later studies reach."""

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.inference.power import (
    annotator_table,
    needed_units,
    power_sentence,
    power_table,
    realised_power,
    study_power,
)
from uetrust.evaluation.prr import prr, prr_difference


def texts(n, seed=0, strength=(0.6, 0.4), size=1):
    "Quality and methods whose PRR is their strength; texts of one document are alike."
    rng = np.random.default_rng(seed)

    def noise():
        shared = np.repeat(rng.normal(size=n // size), size) if size > 1 else 0
        return (shared + rng.normal(size=n)) / (np.sqrt(2) if size > 1 else 1)

    q = noise()
    return q, pd.DataFrame({f"r{r}": -r * q + np.sqrt(1 - r**2) * noise() for r in strength})


def test_the_table_rests_on_the_same_numbers_as_prr():
    q, u = texts(300)
    plan = power_table(q, u)
    for row in plan[plan["second"] == "chance"].itertuples():
        one = prr(q, u[row.first])
        assert (row.value, row.lo, row.hi) == pytest.approx((one.value, one.lo, one.hi))
        z = 1.959964 * one.null_sd + 0.841621 * one.se
        assert row.texts == np.ceil(300 * (z / one.value) ** 2)
    gap = prr_difference(q, u["r0.6"], u["r0.4"])
    row = plan.iloc[-1]
    assert (row.value, row.lo, row.hi) == pytest.approx((gap.value, gap.lo, gap.hi))


@pytest.mark.parametrize("size", [1, 5])
def test_planned_power_is_reached(size):
    q, u = texts(10_000, 1, size=size)
    documents = np.repeat(np.arange(len(q) // size), size) if size > 1 else None
    row = power_table(q, u, documents).iloc[-1]
    units = int(np.ceil(row.texts / size))
    share, error = realised_power(q, u, units, documents, draws=250)
    assert share == pytest.approx(0.8, abs=3 * error)
    assert power_table(q, u).iloc[-1].texts == pytest.approx(row.texts, rel=0.05) or size > 1


def test_methods_that_do_not_differ_are_found_at_the_level_of_the_test():
    q, u = texts(5000, 2, strength=(0.5, 0.500001))
    share, error = realised_power(q, u, 150, draws=300)
    assert share == pytest.approx(0.05, abs=3 * error + 0.01)
    assert study_power(0, 1.3, 150) == pytest.approx(0.05)


def test_documents_cost_texts():
    q, u = texts(1000, 3, size=10)
    by_document = power_table(q, u, np.repeat(np.arange(100), 10)).iloc[-1]
    assert by_document.units == 100 and by_document.texts > 1.3 * power_table(q, u).iloc[-1].texts


def test_a_pilot_that_does_not_exclude_zero_gives_no_upper_limit():
    q, u = texts(40, 4, strength=(0.5, 0.48))
    row = power_table(q, u).iloc[-1]
    assert row.lo < 0 < row.hi and np.isnan(row.texts_hi) and "contains 0" in row.note
    assert "or more: the pilot does not exclude" in power_sentence(row)


def test_more_required_power_needs_more_texts():
    assert needed_units(0.1, 1, 0.9) == pytest.approx(((1.959964 + 1.281552) / 0.1) ** 2, rel=1e-5)
    q, u = texts(200)
    assert (power_table(q, u, power=0.9).texts > power_table(q, u).texts).all()


def test_annotators_are_averaged_over_sets_of_the_same_number():
    q, u = texts(400, 5)
    noise = np.random.default_rng(6).normal(size=(400, 3))
    people = pd.DataFrame(q[:, None] + noise, columns=list("abc"))
    table = annotator_table(people, u)
    pair = table[table["second"] == "r0.4"].set_index("annotators")
    single = [prr_difference(people[name], u["r0.6"], u["r0.4"]).value for name in people]
    assert pair.value[1] == pytest.approx(np.mean(single))
    assert pair.value[3] == pytest.approx(prr_difference(people.mean(axis=1), u["r0.6"], u["r0.4"]).value)
    assert (pair.judgements == pair.texts * pair.index).all()


@pytest.mark.parametrize(
    ("q", "message"),
    [([1.0] * 20, "nothing to rank"), ([1.0, np.nan] * 8, "found 8; 8 texts lack a score")],
)
def test_a_pilot_that_says_nothing_is_refused(q, message):
    with pytest.raises(ValueError, match=message):
        power_table(q, pd.DataFrame(dict(a=np.arange(float(len(q))))))


def test_ten_documents_are_a_pilot_and_nine_are_not():
    q, u = texts(20, 7)
    documents = np.repeat(np.arange(10), 2)
    assert set(power_table(q, u, documents).units) == {10}
    with pytest.raises(ValueError, match="at least 10 units, found 9"):
        power_table(q[:18], u[:18], documents[:18])


def test_a_sentence_names_the_power_that_its_table_was_made_for():
    q, u = texts(200)
    assert "with 80% power takes" in power_sentence(power_table(q, u).iloc[0])
    assert "with 95% power takes" in power_sentence(power_table(q, u, power=0.95).iloc[0], 0.95)
