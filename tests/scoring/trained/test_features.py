"""Features of the texts of a bank, as methods that learn from labels read them."""

import numpy as np
import pytest

from uetrust.core.registry import reg
from uetrust.core.run import ScoreRun
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import fill_local_bank
from uetrust.scoring.trained.features import (
    TRAINED_METHODS,
    bank_features,
    entropy_features,
    get_trained,
    run_features,
)
from uetrust.statistics.generator import PASSES
from uetrust.statistics.passes import compute_attention, compute_likelihoods
from uetrust.statistics.scores import load_scores


def test_every_method_says_what_it_needs_and_names_a_score_as_its_parent():
    load_scores()
    for name, method in TRAINED_METHODS.items():
        assert all((method.labels, method.needs, method.cost, method.cite, method.formula, method.pitfall)), name
        assert not method.parent or method.parent in reg or method.parent in TRAINED_METHODS
    with pytest.raises(LookupError, match="no trained method 'sep'; there are semantic_entropy_probe"):
        get_trained("sep")


def test_entropy_features_are_sums_by_hand():
    rng = np.random.default_rng(0)
    top = np.log(rng.dirichlet(np.ones(12), 5)[:, :4])
    p = -np.sort(-np.exp(top), axis=1)
    want = [*np.mean(-p * np.log(p), axis=0), *np.max(-p * np.log(p), axis=0)]
    assert entropy_features(top) == pytest.approx(want)
    assert np.isnan(entropy_features(np.zeros((0, 4)))).all()
    assert entropy_features(np.array([[0, -np.inf]])).tolist() == [0] * 4


def test_texts_without_a_statistic_have_gaps_and_uneven_widths_are_refused():
    run = ScoreRun(["a", "b"], last_state=[None, np.ones(3)])
    assert run_features(run, "last_state").isna().all(axis=1).tolist() == [True, False]
    run = ScoreRun(["a", "b"], greedy_top_logp=[[[0.0, -1]], [[0.0]]])
    with pytest.raises(ValueError, match="top_entropies has 2 and 4 numbers"):
        run_features(run, "top_entropies")
