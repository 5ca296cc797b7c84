"""Features of the texts of a bank, as methods that learn from labels read them."""

import numpy as np
import pytest

from tests.helpers.prompted import THREE, D, asked_of, plain
from uetrust.core.registry import reg
from uetrust.core.run import ScoreRun
from uetrust.core.settings import root
from uetrust.generation.bank import read_bank
from uetrust.generation.local import fill_local_bank
from uetrust.models.load import load_model
from uetrust.scoring.methods import score_generations
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
        assert all((method.labels, method.needs, method.cost, method.cite, method.formula, method.pitfall)), (
            name
        )
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
    with pytest.raises(ValueError, match="top_entropies has 2, 4 numbers"):
        run_features(run, "top_entropies")


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    "(model, folder of a bank of three bulletins with states and lookback ratios)"
    model = load_model(root() / "data" / "models" / "tiny-llama", device="cpu")
    folder = tmp_path_factory.mktemp("bank")
    texts = fill_local_bank(folder / "texts", "bulletin", "tiny-llama", THREE, model, D, progress=False)
    how = (texts, THREE, model)
    compute_likelihoods(folder / "probe_hidden", *how, PASSES["probe_hidden"], D, progress=False)
    compute_attention(folder / "lookback", *how, D, "lookback", progress=False)
    return model, folder


def test_states_are_those_that_write_the_first_and_the_last_token(bank):
    model, folder = bank
    first, last = (bank_features(folder, name) for name in ("p_ik", "saplma"))
    texts = read_bank(folder / "texts")
    for text in texts[texts["kind"] == "greedy"].itertuples():
        states = plain(model, asked_of(model)[text.sample], text.ids)[1]
        assert np.abs(first.loc[text.sample] - states[0]).max() < 1e-4
        assert np.abs(last.loc[text.sample] - states[-1]).max() < 1e-4


def test_lookback_ratios_are_one_number_per_head(bank):
    model, folder = bank
    ratios = bank_features(folder, "lookback_lens")
    assert ratios.shape == (3, 3 * 4) and ((ratios > 0) & (ratios < 1)).all(axis=None)
    scores = score_generations(folder, ["lookback"], progress=False).table.set_index("sample")["value"]
    assert scores[ratios.index].to_numpy() == pytest.approx(1 - ratios.mean(axis=1).to_numpy())


def test_what_a_bank_lacks_is_named_with_the_command_that_makes_it(bank):
    _, folder = bank
    with pytest.raises(
        ValueError, match="no greedy_top_logp, which wepr needs: uetrust read .* --read conditional"
    ):
        bank_features(folder, "wepr")
    with pytest.raises(ValueError, match="has no greedy_logp, which msp needs"):
        bank_features(folder, "tuned_ensemble", ("msp",))
    with pytest.raises(ValueError, match="learns from scores of other methods: name them"):
        bank_features(folder, "tuned_ensemble")
