"""Audit panels on the next study: what it compares, what can be planned for and promised."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.audit_edges import pairs, panel
from uetrust.evaluation.inference.guarantee import guarantee_sentence, rejection_guarantee


@pytest.fixture(scope="module")
def six():
    "Six methods, each less like the quality than the one before, 240 texts of 120 documents"
    quality, unsure = pairs(240, 6)
    return pd.DataFrame(
        dict(q=quality, right=(quality > -1).astype(float), document=np.arange(240) // 2) | unsure
    )


METHODS = [f"u{i}" for i in range(6)]


def test_the_next_study_compares_the_best_with_chance_and_with_the_next_four(six):
    found = panel("next_study", six, METHODS, ["q"])
    names = set(found.table["first"]) | set(found.table["second"])
    assert names >= set(METHODS[:5]) and "u5" not in names
    assert ((found.table["first"] == "u0") | (found.table["second"] == "u0")).all()
    assert list(found.table.index) == list(range(len(found.table)))
    assert "u1" in found.sentence, "the comparison with the next best is reported"
    alone = panel("next_study", six, METHODS[:1], ["q"])
    assert len(alone.table) == 1 and "u0" in alone.sentence


@pytest.mark.parametrize("n, there", [(20, True), (18, False)])
def test_a_pilot_of_documents_has_ten_of_them(six, n, there):
    assert (panel("next_study", six[:n], METHODS[:2], ["q"], "document") is not None) == there
    assert (panel("promised_risk", six[:n], METHODS[:2], ["right"], "document") is not None) == there


def test_a_label_can_be_planned_for_and_a_constant_cannot(six):
    assert panel("next_study", six, METHODS[:2], ["right"]) is not None
    assert panel("next_study", six.assign(right=1), METHODS[:2], ["right"]) is None
    assert panel("next_study", six.assign(u0=np.nan), ["u0"], ["right"]) is None
    assert panel("promised_risk", six.assign(u0=np.nan), ["u0"], ["right"]) is None


def test_three_methods_get_thresholds_for_three_risks(six):
    found = panel("promised_risk", six, METHODS, ["right"])
    assert list(found.table["method"]) == [name for name in METHODS[:3] for _ in range(3)]
    assert list(found.table["alpha"]) == [0.05, 0.1, 0.2] * 3
    assert "u0" in found.sentence and "0.1" in found.sentence
    assert found.sentence.endswith("The probability 0.1 of a broken promise is divided among 6 methods.")
    alone = panel("promised_risk", six, ["u0"], ["right"])
    expected = rejection_guarantee(six["right"], six["u0"], 0.1, delta=0.1)
    assert alone.sentence == guarantee_sentence(expected, "u0", "texts")
    shared = rejection_guarantee(six["right"], six["u0"], 0.1, delta=0.1 / 6)
    assert found.table["p"].iloc[1] == pytest.approx(shared.p, nan_ok=True)
    assert guarantee_sentence(shared, "u0", "texts") in found.sentence


@pytest.mark.parametrize(
    "lo, hi, there", [(0, 1, True), (0.2, 0.8, True), (-0.01, 1, False), (0, 1.01, False)]
)
def test_a_risk_is_promised_for_quality_from_0_to_1(six, lo, hi, there):
    quality = lo + (hi - lo) * six["q"].rank(pct=True).sub(1 / 240).div(1 - 1 / 240)
    assert (panel("promised_risk", six.assign(q=quality.clip(lo, hi)), ["u0"], ["q"]) is not None) == there


@pytest.mark.parametrize("n, blocks, texts", [(99, None, None), (100, 5, 20), (139, 6, 23), (240, 10, 24)])
def test_texts_make_up_to_ten_blocks_of_at_least_20(six, n, blocks, texts):
    found = panel("other_orders", six[:n], METHODS, ["q"])
    if blocks is None:
        assert found is None
        return
    assert f"with {blocks} blocks of {texts} texts" in found.sentence and f"({n} texts)" in found.sentence
    assert list(found.table["facet"]) == [f"blocks of {texts} texts"] and list(found.table["observed"]) == [
        blocks
    ]


def test_an_order_has_two_methods_and_blocks_in_which_every_quality_varies(six):
    assert panel("other_orders", six, METHODS[:1], ["q"]) is None
    assert panel("other_orders", six, METHODS[:2], ["q"]) is not None
    assert panel("other_orders", six.assign(right=1.0), METHODS, ["right"]) is None
    two = panel("other_orders", six.assign(r=six["q"] + six["u5"]), METHODS, ["q", "r"])
    assert list(two.table["facet"]) == ["blocks of 24 texts", "metrics"]
    gaps = panel("other_orders", six.assign(u0=six["u0"].where(np.arange(240) >= 40)), METHODS, ["q"])
    assert "(200 texts)" in gaps.sentence and "10 blocks of 20 texts" in gaps.sentence
