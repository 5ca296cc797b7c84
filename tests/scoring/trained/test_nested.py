"""Nested cross-validation: no source in two folds, no text in its own model, and chance."""

import numpy as np
import pytest
from scipy.stats import binom
from threadpoolctl import threadpool_limits

from uetrust.scoring.trained.features import TRAINED_METHODS
from uetrust.scoring.trained.nested import (
    CROSS_FITTED,
    Learner,
    chosen_option,
    is_binary,
    nested_scores,
    source_folds,
    trained_prr,
)
from uetrust.scoring.trained.probes import LINEAR_PROBE


def drawn(n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, d))


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_all_texts_about_a_source_are_in_one_fold_and_labels_are_spread(folds):
    rng, _ = drawn()
    document, labels = rng.integers(0, 40, 200), rng.integers(0, 2, 200).astype(float)
    of_text = source_folds(labels, document, folds, 3)
    assert set(of_text) == set(range(folds))
    assert all(len(set(of_text[document == one])) == 1 for one in set(document))
    assert np.ptp([labels[of_text == fold].mean() for fold in range(folds)]) < 0.25
    assert np.array_equal(of_text, source_folds(labels, document, folds, 3))
    assert not np.array_equal(of_text, source_folds(labels, document, folds, 4))


def test_too_few_sources_and_labels_are_named():
    _, x = drawn()
    with pytest.raises(ValueError, match="5 folds need 5 sources, and the texts have 3"):
        nested_scores(LINEAR_PROBE, x, x[:, 0], np.arange(60) % 3)
    with pytest.raises(ValueError, match="2 sources have a text labelled right; .* needs 5"):
        nested_scores(LINEAR_PROBE, x, np.arange(60) > 1)
    with pytest.raises(ValueError, match="all 60 labels are 1: nothing can be learned"):
        nested_scores(LINEAR_PROBE, x, np.ones(60))


def test_what_a_fold_holds_does_not_reach_its_model():
    rng, x = drawn()
    labels, document = x[:, 0] + rng.normal(size=60), np.arange(60) // 2
    found = nested_scores(LINEAR_PROBE, x, labels, document)
    moved, i = x.copy(), 7
    moved[i] += 1000
    others = (found.folds == found.folds[i]) & (np.arange(60) != i)
    again = nested_scores(LINEAR_PROBE, moved, labels, document)
    assert np.array_equal(again.scores[others], found.scores[others])
    assert not np.array_equal(
        again.scores[found.folds != found.folds[i]], found.scores[found.folds != found.folds[i]]
    )
    nudged = labels.copy()
    nudged[i] += 1e-6  # The order, and so the folds, stay
    again = nested_scores(LINEAR_PROBE, x, nudged, document)
    own = found.folds == found.folds[i]
    assert np.array_equal(again.folds, found.folds) and np.array_equal(again.scores[own], found.scores[own])
    assert not np.array_equal(again.scores[~own], found.scores[~own])


def test_a_method_that_knows_the_source_gains_nothing_from_it():
    rng, _ = drawn()
    document = np.repeat(np.arange(40), 3)
    x = rng.normal(size=(40, 80))[document] + 0.01 * rng.normal(size=(120, 80))
    labels = rng.permutation(np.arange(40) % 2)[document].astype(float)
    leaky, honest = nested_scores(LINEAR_PROBE, x, labels), nested_scores(LINEAR_PROBE, x, labels, document)
    assert trained_prr(-labels, leaky.scores).value > 0.9
    found = trained_prr(-labels, honest.scores, document)
    assert found.value < found.null


def test_the_option_is_chosen_without_the_fold_that_it_scores():
    seen = []

    def fit(features, labels, option):
        seen.append(frozenset(features[:, 0].astype(int)))
        return lambda new: np.zeros(len(new))

    x = np.arange(60, dtype=float)[:, None]
    found = nested_scores(Learner(fit, (1, 2)), x, x[:, 0] ** 2)
    per_fold = [seen[i : i + 7] for i in range(0, len(seen), 7)]  # 3 folds x 2 options, then the model
    for fold, fits in enumerate(per_fold):
        own = frozenset(np.flatnonzero(found.folds != fold))
        assert fits[-1] == own and all(part < own for part in fits[:-1])
    assert found.chosen == (1,) * 5  # A tie goes to the most cautious


def test_targets_are_those_of_the_training():
    learner = Learner(
        lambda features, labels, option: lambda new: np.full(len(new), labels.max()),
        target=lambda labels: (labels > labels.mean()).astype(float),
    )
    _, x = drawn()
    assert np.array_equal(nested_scores(learner, x, x[:, 0]).scores, np.zeros(60))


def test_threads_change_nothing():
    rng, x = drawn(200, 40)
    labels = (x[:, 0] + rng.normal(size=200) > 0).astype(float)
    for method in ("p_ik", "saplma"):
        results = []
        for threads in (1, 2):
            with threadpool_limits(threads):
                results.append(nested_scores(TRAINED_METHODS[method].learner, x, labels).scores)
        assert np.array_equal(*results)


def test_few_sources_take_the_most_cautious_option():
    _, x = drawn()
    assert chosen_option(LINEAR_PROBE, x[:2], x[:2, 0], np.arange(2)) == LINEAR_PROBE.options[0]
    assert is_binary(np.array([0, 1])) and not is_binary(np.array([0, 2]))


@pytest.mark.parametrize("name", TRAINED_METHODS)
def test_shuffled_labels_give_a_prr_within_the_null_interval(name, draws):
    trials, learner = draws(200, 8), TRAINED_METHODS[name].learner
    within, values = 0, []
    for trial in range(trials):
        rng, x = drawn(seed=trial)
        document, quality = np.repeat(np.arange(30), 2), rng.normal(size=60)
        quality = quality[np.repeat(rng.permutation(30), 2) * 2 + np.tile([0, 1], 30)]
        learned = -quality if learner.target else (quality < np.quantile(quality, 0.4)).astype(float)
        found = trained_prr(
            quality, nested_scores(learner, x, learned, document, seed=trial).scores, document
        )
        within += abs(found.value) <= found.null
        values.append(found.value)
    assert within >= binom.ppf(1e-3, trials, 0.95)
    assert np.mean(values) < 3.5 * np.std(values) / trials**0.5  # A leak makes it positive


def test_a_random_order_is_too_narrow_a_null_for_scores_out_of_fold(draws):
    learner, sizes = LINEAR_PROBE._replace(options=(1e-2,)), []
    for trial in range(draws(400, 150)):
        rng, x = drawn(80, 20, trial)
        quality = rng.normal(size=80)
        found = trained_prr(quality, nested_scores(learner, x, -quality, seed=trial).scores)
        sizes.append(found.value / (found.null / 1.96))
    assert 0.8 < np.std(sizes) < 1.1  # In units of the wider null; 1.4 in those of a random order
    assert np.mean(np.abs(sizes) > 1.96 / CROSS_FITTED) > 0.1
