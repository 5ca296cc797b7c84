"""Neighbours and volume of samples: by hand, at the edges, and what they have in common with other scores."""

import numpy as np
import pytest
from scipy.special import logsumexp

from tests.helpers.at_once import at_once, twins_of
from tests.helpers.diversity import value
from uetrust.core.checks import Undefined
from uetrust.ue.geometry.neighbours import semantic_volume, snne, soft_neighbours, wsnne
from uetrust.ue.semantic import eigen_score

TEXTS = ["rain fell on the hall", "rain fell on the town hall", "dogs ran", "rain fell on the hall"]


def similarity(seed, k=5):
    p = np.random.default_rng(seed).uniform(size=(k, k))
    return np.where(np.eye(k, dtype=bool), 1, (p + p.T) / 2)


@pytest.mark.parametrize("tau", [0.1, 1, 10])
def test_snne_is_the_formula_of_the_paper(tau):
    f = similarity(0)
    assert snne(f, tau) == pytest.approx(-np.mean([logsumexp(row / tau) for row in f]))
    logp = np.log(np.random.default_rng(1).uniform(size=5))
    weight = np.exp(logp) / np.exp(logp).mean()
    assert wsnne(logp, f, tau) == pytest.approx(-np.mean(weight * [logsumexp(row / tau) for row in f]))


def test_a_sample_is_its_own_neighbour_whatever_the_matrix_says():
    f = similarity(2)
    assert snne(f - 0.3 * np.eye(5)) == snne(f)
    assert soft_neighbours(np.zeros((1, 1)))[0] == 1


def test_with_clusters_for_similarities_snne_counts_them():
    "With tau near 0 and similarities 0 or 1 it is discrete semantic entropy, but for constants"
    clusters = np.array([0, 0, 1, 1, 1, 2])
    f = np.equal.outer(clusters, clusters).astype(float)
    counted = snne(f, 0.01) + 1 / 0.01 + np.log(6)
    assert counted == pytest.approx(value("discrete_semantic_entropy", clusters=clusters))


def test_samples_that_are_impossible_have_no_weights():
    with pytest.raises(Undefined, match="every sample has probability 0"):
        wsnne(np.full(5, -np.inf), similarity(0))


def test_snne_of_texts():
    assert value("snne", sample_texts=TEXTS) < value("snne", sample_texts=["a b", "c d", "e f", "g h"])
    with pytest.raises(Undefined, match="at least 2 samples, got 1"):
        value("snne", sample_texts=TEXTS[:1])


def test_volume_is_that_of_unit_vectors():
    vectors = np.random.default_rng(3).normal(size=(5, 7))
    long = vectors * np.array([[9], [1], [2], [3], [4]])
    assert semantic_volume(long) == pytest.approx(semantic_volume(vectors), abs=1e-9)
    unit = vectors[1:] / np.linalg.norm(vectors[1:], axis=1, keepdims=True)
    assert semantic_volume(vectors, 0) == pytest.approx(np.linalg.slogdet(unit @ unit.T)[1])
    centred = unit - unit.mean(1, keepdims=True)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    assert semantic_volume(np.vstack([unit[:1], centred]), 1e-3) == pytest.approx(4 * eigen_score(centred))


def test_an_encoder_that_gives_nothing_is_an_error():
    with pytest.raises(ValueError, match="an embedding is all zeros"):
        semantic_volume(np.vstack([np.ones((2, 3)), np.zeros((1, 3))]))
    assert np.isnan(
        at_once("semantic_volume", [dict(vectors=np.vstack([np.ones((2, 3)), np.zeros((1, 3))]))])
    )


@pytest.mark.parametrize("name", twins_of("uetrust.ue.geometry.neighbours"))
def test_a_twin_leaves_a_single_sample_to_the_score(name):
    item = dict(rouge_l_pairs=np.ones((1, 1)), sample_similarity=np.ones((1, 1)), vectors=np.ones((2, 3)))
    assert np.isnan(at_once(name, [item | dict(entail_affinity=np.ones((1, 1)))])).all()
