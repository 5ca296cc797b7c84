"""Scores of the likeliest tokens: uqlm's numbers, bounds that whole vocabularies keep, and short lists."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.checks import Undefined
from uetrust.core.run import ScoreRun, compute_score
from uetrust.core.settings import root
from uetrust.models.forward import score_tokens
from uetrust.models.load import load_model
from uetrust.statistics.scores import load_scores
from uetrust.statistics.served import likeliest_logp
from uetrust.ue.top_tokens import (
    LARGEST_VOCABULARY,
    deepconf,
    deepconf_bottom,
    deepconf_lowest,
    deepconf_tail,
    entropy_interval,
    group_means,
    top_k_entropy,
    top_k_entropy_lower,
    top_k_entropy_upper,
    top_k_negentropy,
    top_k_negentropy_min,
)

CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "replies.json").read_text())
reg = load_scores()
ALL = [name for name, entry in reg.of("ue").items() if entry.fn.__module__ == "uetrust.ue.top_tokens"]


def listed(case):
    "The lists of a case as a file with them is read"
    return likeliest_logp([[(str(i), logp) for i, logp in enumerate(at)] for at in case["top"]])


def test_negentropies_are_those_of_uqlm_with_a_minus_sign():
    assert CASES["versions"]["uqlm"] == "0.6.7" and any(
        np.isnan(listed(case)).any() for case in CASES["cases"]
    )
    for case in CASES["cases"]:
        top = listed(case)
        assert -top_k_negentropy(top) == pytest.approx(case["mean_token_negentropy"], abs=1e-12)
        assert -top_k_negentropy_min(top) == pytest.approx(case["min_token_negentropy"], abs=1e-12)


@pytest.mark.parametrize("name", ["llama", "bart", "t5"])
def test_whole_vocabularies_lie_between_the_bounds_and_longer_lists_bring_them_together(name):
    model = load_model(root() / "data" / "models" / f"tiny-{name}")
    pairs = [
        ("Mr Cole will review the empty pool.", "The hall was certified."),
        ("Summarize.", "Ms Duncan said"),
    ]
    size = model.text_config.vocab_size
    for reading in score_tokens(model, pairs, topk=20):
        widths = []
        for k in (1, 5, 20):
            low, high = entropy_interval(reading.top_logp[:, :k], size).T
            assert (low - 1e-5 <= reading.entropy).all() and (reading.entropy <= high + 1e-5).all()
            widths.append(high - low)
        assert all((wide + 1e-9 >= narrow).all() for wide, narrow in zip(widths, widths[1:]))
        assert widths[0].mean() > 2 * widths[2].mean() > 0
        top = reading.top_logp[:, :5]
        assert (
            top_k_entropy_lower(top) <= reading.entropy.mean() + 1e-5 <= top_k_entropy_upper(top, size) + 2e-5
        )


@given(st.lists(st.floats(0.01, 5), min_size=2, max_size=12), st.integers(1, 12))
def test_both_bounds_are_reached_by_a_distribution_with_the_same_list(weights, k):
    p = np.sort(np.array(weights) / np.sum(weights))[::-1]
    k = min(k, len(p))
    low, high = entropy_interval(np.log(p[None, :k]), len(p))[0]
    rest, last = 1 - p[:k].sum(), p[k - 1]
    even = np.r_[p[:k], np.full(len(p) - k, rest / max(len(p) - k, 1))]
    fewest = np.r_[p[:k], np.full(int(rest / last + 1e-9), last)]
    fewest = np.r_[fewest, max(1 - fewest.sum(), 0)]

    def entropy(q):
        return -(q[q > 0] * np.log(q[q > 0])).sum()

    assert (low, high) == (pytest.approx(entropy(fewest), abs=1e-6), pytest.approx(entropy(even), abs=1e-6))


def test_a_vocabulary_that_cannot_hold_the_rest_is_refused():
    with pytest.raises(ValueError, match="cannot be the likeliest of 10:"):
        entropy_interval(np.log([[0.5, 0.01]]), 10)
    with pytest.raises(ValueError, match="cannot be the likeliest of 1:"):
        entropy_interval(np.log([[0.5, 0.5]]), 1)
    wider = top_k_entropy_upper(np.log([[0.5, 0.3]])) - top_k_entropy_upper(np.log([[0.5, 0.3]]), 1000)
    assert wider == pytest.approx(0.2 * np.log((LARGEST_VOCABULARY - 2) / 998))


def test_a_place_with_a_short_list_counts_with_what_it_lists_or_not_at_all():
    top = np.log([[0.6, 0.3, 0.05], [0.9, 0.05, 0.01]])
    short = np.vstack([top, [[np.log(0.8), np.log(0.1), np.nan]]])
    assert top_k_negentropy(short) == top_k_negentropy(top)
    assert deepconf(short[2:]) == pytest.approx(np.log([0.8, 0.1]).mean())
    assert top_k_entropy(short[2:]) == pytest.approx(-(0.8 * np.log(0.8) + 0.1 * np.log(0.1)))
    with pytest.raises(Undefined, match="lists as many tokens"):
        top_k_negentropy(short[2:])
    for refused in (top_k_negentropy, top_k_negentropy_min):
        with pytest.raises(ValueError, match="2 likeliest"):
            refused(top[:, :1])
    assert top_k_entropy(top[:, :1]) > 0 and deepconf(top[:, :1]) < 0


def test_most_lists_decide_how_long_a_list_is():
    "A server that adds the written token to some lists does not make the others short."
    lists = [[("a", -0.1), ("b", -3.0)]] * 3 + [[("a", -0.1), ("b", -3.0), ("c", -9.0)], [("a", 0.0)]]
    found = likeliest_logp(lists)
    assert found.shape == (5, 2) and np.isnan(found).sum() == 1 and np.isnan(found[4, 1])
    assert likeliest_logp([[("a", -1.0)], [("a", -1.0), ("b", -2.0)]]).shape == (2, 2)


@given(st.integers(1, 40), st.integers(0, 1000))
def test_confidences_of_groups_lie_around_that_of_the_text(n, seed):
    top = np.log(-np.sort(-np.random.default_rng(seed).dirichlet(np.ones(6), n)))
    size = int(np.ceil(n / 5))
    tokens = top.mean(1)
    groups = [tokens[i : i + size].mean() for i in range(n - size + 1)]
    assert deepconf_lowest(top) == pytest.approx(max(groups))
    assert deepconf_tail(top) == pytest.approx(tokens[-size:].mean())
    assert deepconf(top) == pytest.approx(tokens.mean())
    assert min(groups) - 1e-9 <= deepconf_bottom(top) <= deepconf_lowest(top) + 1e-9
    lowest = sorted(groups)[-max(1, int(0.1 * len(groups))) :]
    assert deepconf_bottom(top) == pytest.approx(np.mean(lowest))
    assert len(group_means(tokens, most=3)) == n - min(3, size) + 1


@pytest.mark.parametrize("name", ALL)
def test_lists_of_different_lengths_are_scored_in_one_run(name):
    rng = np.random.default_rng(1)
    texts = [np.log(-np.sort(-rng.dirichlet(np.ones(k + 2), k + 3)))[:, :k] for k in (5, 2, 5, 3)]
    found = compute_score(ScoreRun(range(4), reg, greedy_top_logp=texts), name)["value"]
    assert found.to_numpy() == pytest.approx([reg[name].fn(top) for top in texts], abs=1e-12)
