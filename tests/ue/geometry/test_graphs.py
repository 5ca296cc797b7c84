"""Graphs of samples with other kernels and directions: as the authors' code has them, and at the edges."""

import json

import numpy as np
import pytest

from tests.helpers.at_once import at_once, twins_of
from tests.helpers.diversity import value
from tests.helpers.paths import ROOT
from uetrust.core.checks import Undefined
from uetrust.ue import diversity as dv
from uetrust.ue.geometry.graphs import d_ue, ecc_greedy, kle_clusters, kle_matern, matern_spectrum

CASES = json.loads((ROOT / "tests" / "fixtures" / "geometry.json").read_text())["cases"]


@pytest.fixture(params=CASES, ids=lambda case: f"{len(case['logp'])} samples")
def case(request):
    return {name: np.array(one) for name, one in request.param.items()}


def test_kernels_are_those_of_the_authors_code(case):
    spectrum = matern_spectrum([case["entail"]], [case["contra"]])[0]
    assert kle_matern(spectrum) == pytest.approx(case["kle_matern"], abs=1e-9)
    other = matern_spectrum([case["entail"]], [case["contra"]], kappa=2, nu=3)[0]
    assert kle_matern(other) == pytest.approx(case["kle_matern_2_3"], abs=1e-9)
    given = case["entail"], case["contra"], case["logp"], case["clusters"]
    assert kle_clusters(*given) == pytest.approx(case["kle_clusters"], abs=1e-9)


def test_directed_graphs_are_those_of_truthtorchlm(case):
    "It adds 1e-6 to the sum of each row"
    assert d_ue(case["entail"], case["jaccard"]) == pytest.approx(case["d_ue"], abs=1e-5)


def test_without_a_kernel_it_is_semantic_entropy(case):
    given = case["entail"], case["contra"], case["logp"], case["clusters"]
    want = value("semantic_entropy", sample_mean_logp=case["logp"], clusters=case["clusters"])
    assert kle_clusters(*given, alpha=0) == pytest.approx(want)


def test_an_impossible_set_of_samples_has_no_cluster_entropy():
    with pytest.raises(Undefined, match="every sample has probability 0"):
        kle_clusters(np.eye(2), np.eye(2), np.full(2, -np.inf), np.array([0, 1]))


def test_direction_counts():
    "a entails b: as certain as both ways is less, as certain as neither is more"
    one, shared = np.array([[1, 1], [0, 1.0]]), np.eye(2)
    assert d_ue(np.ones((2, 2)), shared) < d_ue(one, shared) < d_ue(np.eye(2), shared)
    assert d_ue(one, shared) == d_ue(one.T, shared)


def test_eccentricity_of_the_greedy_text_is_that_of_a_sample_in_its_place(case):
    k = len(case["logp"])
    probability = np.stack([case["contra"], 1 - case["contra"] - case["entail"], case["entail"]], -1)
    graph = dv.laplacian_spectra(dv.entail_affinity([case["entail"]]))
    assert ecc_greedy(probability) == pytest.approx(dv.sample_ecc(graph)[0][0], abs=1e-9)
    if k > 2:
        turned = np.roll(np.arange(k), 1)
        assert ecc_greedy(probability[np.ix_(turned, turned)]) == pytest.approx(
            dv.sample_ecc(graph)[0][-1], abs=1e-9
        )
    with pytest.raises(Undefined, match="at least 1 sample"):
        ecc_greedy(probability[:1, :1])


@pytest.mark.parametrize("name", twins_of("uetrust.ue.geometry.graphs"))
def test_a_twin_leaves_a_single_sample_to_the_score(name):
    item = dict(
        nli=np.zeros((1, 1, 3)) if name == "ecc_greedy" else np.zeros((2, 2, 3)), jaccard=np.ones((1, 1))
    )
    assert np.isnan(at_once(name, [item])).all()
