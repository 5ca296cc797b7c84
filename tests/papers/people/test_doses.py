"""Degraded truths: the doses are those asked for, regret is that of a loop, and sentences tell the tables."""

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.prr import prr
from uetrust.papers.people.doses import (
    LENGTH_DOSES,
    OWN_DOSES,
    RELIABILITIES,
    _choice_regrets,
    _dose_rows,
    _doses_of,
    _metric_rows,
    bias_sentence,
    noise_sentence,
    real_metrics_sentence,
)
from uetrust.papers.people.promises import stored_inference

RNG = np.random.default_rng(8)
TRUTH, LENGTH = RNG.normal(size=600), RNG.normal(size=600)
METHODS = pd.DataFrame({f"u{sd}": -TRUTH + sd * RNG.normal(size=600) for sd in (1, 2, 4)})


def test_a_dose_of_noise_is_the_correlation_that_it_leaves():
    found = _doses_of(TRUTH, LENGTH, np.arange(600) < 300)
    assert len(found) == len(RELIABILITIES) + len(LENGTH_DOSES) + len(OWN_DOSES)
    for share in RELIABILITIES:
        assert np.corrcoef(TRUTH, found["noise", share])[0, 1] == pytest.approx(share, abs=0.09)
    for dose in LENGTH_DOSES:
        moved = np.corrcoef(found["length", dose] - TRUTH, LENGTH)[0, 1]
        assert moved == pytest.approx(np.sign(dose), abs=1e-4)
    gain = found["own texts", 1.0] - TRUTH
    assert gain[:300].mean() - gain[300:].mean() == pytest.approx(1, abs=0.05) and gain.std() < 0.51
    assert not any(kind == "own texts" for kind, _ in _doses_of(TRUTH, LENGTH))


def test_regret_is_that_of_a_loop():
    metrics = np.stack([TRUTH, np.random.default_rng(1).normal(size=600), -TRUTH], 1)
    regret, error = _choice_regrets(TRUTH, metrics, METHODS.to_numpy(), 50, draws=20, seed=5)
    by_truth, rng = [prr(TRUTH, METHODS[name]).value for name in METHODS], np.random.default_rng(5)
    lost = np.zeros((20, 3))
    for i in range(20):
        at = rng.choice(600, 50, replace=False)
        for k in range(3):
            seen = [prr(metrics[at, k], METHODS[name].to_numpy()[at]).value for name in METHODS]
            lost[i, k] = max(by_truth) - by_truth[int(np.argmax(seen))]
    assert regret == pytest.approx(lost.mean(0)) and error == pytest.approx(lost.std(0) / np.sqrt(20))
    assert regret[0] < regret[1] < regret[2]


def test_rows_hold_every_dose_and_size_and_the_regret_of_any_method():
    rows = _dose_rows(TRUTH, LENGTH, METHODS, draws=5)
    assert len(rows) == 3 * (len(RELIABILITIES) + len(LENGTH_DOSES)) and set(rows["n"]) == {50, 100, 400}
    value = [prr(TRUTH, METHODS[name]).value for name in METHODS]
    assert rows["random"].unique().tolist() == pytest.approx([max(value) - np.mean(value)])
    clean = rows[(rows["kind"] == "noise") & (rows["dose"] == 1.0)]
    assert clean["correlation"].tolist() == pytest.approx([1, 1, 1])


def test_a_real_metric_keeps_its_correlation():
    metrics = pd.DataFrame(dict(good=TRUTH, bad=np.random.default_rng(1).normal(size=600)))
    rows = _metric_rows(TRUTH, metrics, METHODS, draws=5)
    assert rows["metric"].tolist() == ["good", "bad"] and rows["correlation"][0] == pytest.approx(1)
    assert rows["spread"][0] == pytest.approx(0, abs=1e-9) and rows["regret"][0] <= rows["regret"][1]


def test_sentences_say_what_the_stored_tables_hold():
    doses, real = stored_inference("doses"), stored_inference("dose_metrics")
    whole = doses["set"][(doses["kind"] == "noise") & (doses["dose"] < 1)]
    noise = doses[(doses["kind"] == "noise") & doses["set"].isin(whole)]
    means = noise[noise["n"] == 400].groupby("dose")["regret"].mean()
    said = noise_sentence(doses)
    assert (
        f"with 400 texts {means[1.0]:.3f} without noise" in said and f"{means[0.1]:.3f} at 0.1 (means" in said
    )
    assert bias_sentence(doses).startswith("With 400 texts and no noise, by set: a length bias of -1 costs ")
    known = (real["correlation"] > 0.1).sum()
    assert real_metrics_sentence(doses, real).startswith(f"Of {known} pairs of a real metric and a set")
