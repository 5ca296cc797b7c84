"""Other definitions of PRR: areas and pipelines of released code."""

import numpy as np
import pytest

from tests.helpers.prr_cases import CASES, floats
from uetrust.core.checks import Undefined
from uetrust.evaluation import definitions
from uetrust.evaluation.cells import PRRCells
from uetrust.evaluation.definitions import _merge_duplicates, released_prr
from uetrust.evaluation.prr import prr


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("area", ["mean", "sum"])
def test_released_areas(case, name, area):
    quality, uncertainty, recorded = case(name)
    peer = recorded["peers"][f"he2024_rcc_{area}"]
    got = released_prr(quality, uncertainty, area)
    assert got == pytest.approx(
        (peer["ue_score"], peer["oracle_score"], peer["random_score"], peer["normalized"]),
        abs=1e-12,
        rel=1e-12,
    )
    assert prr(quality, uncertainty, area=area, compat="he2024").value == got.value


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("max_rejection", [1.0, 0.5, 0.25])
def test_lm_polygraph(case, name, max_rejection):
    "Equal without ties; with ties the peer's unstable sort lands somewhere between our worst and best order."
    quality, uncertainty, recorded = case(name)
    peer = recorded["peers"].get(f"lm_polygraph_prr_{max_rejection}")
    if int(max_rejection * len(quality)) < 2:  # 0/0 in disguise: the peer returns rounding noise
        with pytest.raises(Undefined):
            released_prr(quality, uncertainty, max_rejection=max_rejection)
        assert np.isnan(prr(quality, uncertainty, max_rejection=max_rejection).value)
    elif len(set(uncertainty)) == len(uncertainty):
        assert released_prr(quality, uncertainty, max_rejection=max_rejection).value == pytest.approx(
            peer["normalized"], abs=1e-12
        )
    else:
        group = PRRCells(quality[:, None], uncertainty[:, None], max_rejection=max_rejection)
        scaled = [1 - (area[0, 0] - group.risk.min()) / np.ptp(group.risk) for area in group.extremes]
        assert scaled[1] - 1e-12 <= peer["ue_score"] <= scaled[0] + 1e-12


def test_continuous_cases_of_the_other_oracle(oracle):
    for recorded in oracle("uncertainty.json")["ue_metrics_continuous"]:
        uncertainty, quality, output = (
            floats(recorded["inputs"]["estimator"]),
            floats(recorded["inputs"]["target"]),
            recorded["outputs"],
        )
        for area, key in (("mean", "rcc-auc"), ("sum", "rcc-auc_unnormalized_curve")):
            got, want = (
                released_prr(quality, uncertainty, area),
                [output[key + suffix] for suffix in ("", "_oracle", "_random_seed42_1000", "_normalized")],
            )
            assert tuple(got) == pytest.approx(
                [float(value) for value in want], abs=1e-12, rel=1e-12, nan_ok=True
            ), recorded["name"]


def test_released_pipeline(oracle):
    for recorded in oracle("uncertainty.json")["released_prr_pipeline"]:
        inputs, outputs = recorded["inputs"], recorded["outputs"]
        quality, uncertainty = _merge_duplicates(
            inputs["input_texts"], floats(inputs["metric"]), floats(inputs["uncertainty"])
        )
        np.testing.assert_allclose(quality, floats(outputs["recombined_metric"]), atol=1e-15)
        np.testing.assert_allclose(uncertainty, floats(outputs["recombined_uncertainty"]), atol=1e-15)
        assert tuple(released_prr(quality, uncertainty)) == pytest.approx(
            [outputs[name] for name in ("rcc_auc", "oracle", "random_mean_seed42_1000", "prr")], abs=1e-12
        ), recorded["name"]


def test_released_merging(oracle):
    recorded = oracle("evaluation.json")["released_pipeline_nan_duplicates"]
    for method in ("UE1", "UE2"):
        quality, uncertainty = _merge_duplicates(
            recorded["inputs"]["input_texts"],
            floats(recorded["inputs"]["Q"]),
            floats(recorded["inputs"][method]),
        )
        np.testing.assert_allclose(
            uncertainty, recorded["outputs"]["steps"][method]["recombined_ue"], atol=1e-15
        )
        np.testing.assert_allclose(
            quality, recorded["outputs"]["steps"][method]["recombined_metric"], atol=1e-15
        )
        got = released_prr(quality, uncertainty)
        want = recorded["outputs"]["scores"]
        assert (got.method, got.value) == pytest.approx(
            (want[f"sequence|{method}|Q|rcc-auc"], want[f"sequence|{method}|Q|rcc-auc_normalized"]), abs=1e-12
        )


@pytest.mark.parametrize("weights", [definitions.shuffled_weights, definitions._reversed_shuffles])
def test_the_baseline_of_many_texts_is_the_limit_of_the_released_shuffles(weights, monkeypatch):
    risk = np.random.default_rng(0).random(3000)
    released = weights.__wrapped__(3000) @ risk
    monkeypatch.setattr(definitions, "MANY_ITEMS", 0)
    limit = weights.__wrapped__(3000) @ risk
    assert 0 < abs(released - limit) < 4 * np.sqrt(np.log(3000) ** 2 / 3000 / 1000)
