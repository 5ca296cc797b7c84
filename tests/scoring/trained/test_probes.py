"""What learns from labels: against scikit-learn, by hand, and with labels that are missing."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from uetrust.scoring.trained.probes import (
    entropy_split,
    feature_scale,
    fit_haloscope,
    fit_linear,
    fit_saplma,
    halo_scores,
    high_entropy,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("n, d", [(80, 5), (30, 70)])
@pytest.mark.parametrize("strength", [1e-3, 0.1, 10])
def test_a_linear_probe_is_that_of_scikit_learn(rng, n, d, strength):
    x = rng.normal(size=(n, d)) * rng.uniform(0.1, 50, d) + 7
    z, new = (x - x.mean(0)) / x.std(0), rng.normal(size=(9, d))
    wrong = (z[:, 0] + rng.normal(size=n) > 0.3).astype(float)
    theirs = LogisticRegression(C=strength, tol=1e-12, max_iter=10000).fit(z, wrong)
    want = theirs.decision_function((new - x.mean(0)) / x.std(0))
    assert fit_linear(x, wrong, strength)(new) == pytest.approx(want, abs=1e-4 * max(1, np.abs(want).max()))
    number = z[:, 0] * 3 + rng.normal(size=n) + 100
    theirs = Ridge(alpha=1 / strength).fit(z, number).predict((new - x.mean(0)) / x.std(0))
    assert fit_linear(x, number, strength)(new) == pytest.approx(theirs, rel=1e-8)


def test_separable_labels_and_constant_features_are_fitted(rng):
    x = np.column_stack([np.linspace(-1, 1, 20), np.full(20, 0.1)])
    score = fit_linear(x, (x[:, 0] > 0).astype(float), 1e4)(x)
    assert np.isfinite(score).all() and (np.diff(score) > 0).all()
    far = x + [[0, 1e6]]
    assert np.array_equal(fit_linear(x, x[:, 0], 1)(far), fit_linear(x, x[:, 0], 1)(x))
    mean, spread = feature_scale(x)
    assert spread[1] == np.inf and mean[1] == pytest.approx(0.1)
    assert not fit_linear(x, np.zeros(20), 1)(x).any()


def test_the_network_has_the_layers_of_the_paper_and_leaves_the_callers_dice_alone(rng):
    x = rng.normal(size=(64, 7))
    wrong, before, threads = (
        (x[:, 0] > 0).astype(float),
        torch.random.get_rng_state(),
        torch.get_num_threads(),
    )
    score = fit_saplma(x, wrong)
    network = next(
        cell.cell_contents for cell in score.__closure__ if hasattr(cell.cell_contents, "parameters")
    )
    shapes = [tuple(p.shape) for p in network.parameters() if p.dim() == 2]
    assert shapes == [(256, 7), (128, 256), (64, 128), (1, 64)]
    assert torch.equal(before, torch.random.get_rng_state()) and threads == torch.get_num_threads()
    assert np.array_equal(score(x), fit_saplma(x, wrong)(x))
    assert not np.array_equal(score(x), fit_saplma(x, wrong, seed=1)(x))


@pytest.mark.parametrize("fit", [fit_saplma, fit_haloscope])
def test_networks_learn_right_and_wrong_only(rng, fit):
    with pytest.raises(ValueError, match="learns from right and wrong texts: say below which quality"):
        fit(rng.normal(size=(20, 3)), rng.normal(size=20))


def test_halo_scores_are_the_formula(rng):
    x = rng.normal(size=(40, 6)) + 3
    centred = x - x.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    for k in (1, 3):
        top = vectors[:, ::-1][:, :k]
        want = ((centred @ top) ** 2 * np.sqrt(values[::-1][:k])).mean(1)
        assert halo_scores(x, x, k)[:, -1] == pytest.approx(want)


def test_labels_of_haloscope_only_choose(rng):
    x = rng.normal(size=(120, 4)) * (3, 1, 1, 1)
    far = (np.abs(x[:, 0]) > 3).astype(float)
    few = np.where(np.arange(120) < 12, far, np.nan)
    assert 0 < np.nansum(few) < 12
    learned, opposite = fit_haloscope(x, few)(x), fit_haloscope(x, 1 - few)(x)
    assert np.corrcoef(learned, far)[0, 1] > 0.5 > 0 > np.corrcoef(opposite, far)[0, 1]


def test_the_split_of_entropy_is_the_best_of_all(rng):
    values = np.r_[rng.normal(1, 0.2, 30), rng.normal(3, 0.2, 20)]
    split = entropy_split(values)
    errors = {
        cut: sum(len(part) * part.var() for part in (values[values <= cut], values[values > cut]))
        for cut in np.sort(values)[:-1]
    }
    best = min(errors, key=errors.get)
    assert best < split < values[values > best].min()
    assert high_entropy(values).sum() == 20 and not high_entropy(np.ones(5)).any()
