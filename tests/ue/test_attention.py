"""Attention-based methods: recorded values of other libraries, and recurrences against a plain loop."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles
from uetrust.ue import attention as at

ALL = (
    {c["name"]: c for c in json.loads((oracles() / "uncertainty.json").read_text())["attention_hidden"]}
    if oracles()
    else {}
)


def case(name):
    if name not in ALL:
        pytest.skip("UETRUST_ORACLES is not at hand")
    return ({key: np.array(value) for key, value in ALL[name]["inputs"].items()}, ALL[name]["outputs"])


def chosen(
    maps, layers
):  # What a reading pass keeps: attention to the previous token, by each layer's head with the largest mean
    diagonal = np.diagonal(maps.reshape(layers, -1, *maps.shape[-2:]), -1, 2, 3)
    return np.pad(np.stack([layer[layer.mean(1).argmax()] for layer in diagonal]), ((0, 0), (1, 0)))


# LM-Polygraph
def test_rauq_is_that_of_lm_polygraph_less_one():
    given, out = case("rauq")
    back, logp, entropy, size = (
        chosen(given["attention_all"], 6),
        given["greedy_log_likelihoods"],
        given["entropy"],
        ALL["rauq"]["vocab"],
    )
    assert list(range(6))[at.middle_third(6)] == out["layers_used"]
    got = [
        at.rauq(logp, back),
        at.rauq_instruct(logp, back),
        at.rauq_entropy(entropy, np.full(len(entropy), size), back),
    ]
    assert 1 + np.array(got) == pytest.approx(
        [out[k][0] for k in ("RAUQ_alpha_default_0p2", "RAUQ_instruct_alpha_0p5", "RAUQ_entropy_alpha_0p8")],
        rel=1e-9,
    )


def test_attention_score_is_that_of_lm_polygraph_but_for_the_last_token():
    given, out = case("attention_score")
    own = np.log(np.diagonal(given["forwardpass_attention_weights"][3 // 2], axis1=1, axis2=2)).mean(0)
    n = len(given["greedy_tokens"])
    text, prompt = own[-n:], own[:-n].sum()
    assert at.attention_score_prompt(text, prompt) == pytest.approx(out["AttentionScore_layer1"][0], rel=1e-9)
    assert at.attention_score(text[:-1]) == pytest.approx(out["AttentionScore_layer1_gen_only"][0], rel=1e-9)
    assert at.attention_score(text) > out["AttentionScore_layer1_gen_only"][0] + 0.1


def test_csl_is_that_of_lm_polygraph():
    given, out = case("csl")
    assert at.csl(
        given["greedy_log_likelihoods"], given["attention_weights_eliciting_prompt"].mean(0)
    ) == pytest.approx(out["CSL"][0], rel=1e-9)


def test_focus_is_that_of_lm_polygraph():
    "To 1e-6: the other library adds 1e-6 to the sum of each row of attention."
    given, out = case("focus")
    alone, weights, is_keyword = (
        at.focus_surprisal_full(
            given["greedy_log_probs"], given["greedy_tokens"], given["token_idf"], given["p"]
        ),
        given["attention_all"].max(0),
        given["keyword_mask"],
    )
    assert at.focus(alone, is_keyword, weights, float(given["gamma"])) == pytest.approx(
        out["Focus"][0], rel=1e-6
    )
    one = [
        at.focus(alone, np.arange(6) == k, weights, float(given["gamma"]))
        for k in np.flatnonzero(~is_keyword)
    ]  # others than keywords look nowhere in the other library
    assert (
        alone[~is_keyword] == pytest.approx(np.array(out["token_focus"])[~is_keyword], rel=1e-9)
        and (np.array(one) >= alone[~is_keyword]).all()
    )


# Definitions as loops
def loop(logp, back, alpha):
    confidence = [np.exp(logp[0])]
    for probability, weight in zip(np.exp(logp[1:]), back[1:]):
        confidence.append(alpha * probability + (1 - alpha) * weight * confidence[-1])
    return -np.mean(np.log(confidence))


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 9), st.floats(0.01, 0.99))
def test_the_scan_is_the_loop(seed, length, layers, alpha):
    rng = np.random.default_rng(seed)
    logp, back = (
        np.log(rng.uniform(0.001, 1, length)),
        rng.uniform(0, 1, (layers, length)) * (rng.random((layers, length)) < 0.8),
    )
    each = [loop(logp, row, alpha) for row in back]
    assert at.rauq(logp, back, alpha, middle=False) == pytest.approx(max(each), rel=1e-10)
    assert at.rauq(logp, back, alpha) == pytest.approx(
        max(each[layers // 3 : int(np.ceil(2 * layers / 3)) + 1]), rel=1e-10
    )


def test_long_and_impossible_texts_have_a_score():
    logp, back = np.full(3000, -800.0), np.full((3, 3000), 0.5)
    assert at.rauq(logp, back) == pytest.approx(800 + np.log(3), abs=1e-2)  # c tends to .2p + .8*.5c
    assert at.rauq(np.array([0, -np.inf]), np.array([[0, 0.5]])) == pytest.approx(
        -np.log(0.4) / 2
    )  # confidence of the token before remains
    assert at.rauq(np.array([-np.inf, -np.inf]), np.array([[0, 0.5]])) == np.inf
    assert at.rauq(np.array([0, -np.inf]), np.zeros((1, 2))) == np.inf


def test_a_uniform_first_step_has_no_entropy_signal():
    back = np.full((3, 2), 0.5)
    assert at.rauq_entropy(np.log([4, 2]), np.array([4, 4]), back) == np.inf
    assert (
        at.rauq_entropy(np.log([4 + 1e-15, 4]), np.array([4, 4]), back) == np.inf
    )  # rounding above log V is log V
    assert np.isfinite(at.rauq_entropy(np.log([2, 4]), np.array([4, 4]), back))


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_focus_is_the_loop_and_looks_only_back(seed, length):
    rng = np.random.default_rng(seed)
    alone, is_keyword, weights = (
        rng.uniform(1, 9, length),
        rng.random(length) < 0.5,
        rng.random((length, length)),
    )
    if not is_keyword.any():
        with pytest.raises(Undefined, match="no keyword"):
            at.focus(alone, is_keyword, weights)
        return
    scores = []
    for token in range(length):
        row = (
            weights[token, :token] / weights[token, :token].sum()
            if is_keyword[token] and token
            else np.zeros(token)
        )
        scores.append(alone[token] + 0.9 * row @ scores)
    assert at.focus(alone, is_keyword, weights) == pytest.approx(
        np.array(scores)[is_keyword].mean(), rel=1e-10
    )
    assert at.focus(alone, is_keyword, np.zeros((length, length))) == pytest.approx(
        alone[is_keyword].mean(), rel=1e-12
    )


def test_a_step_without_a_likely_word_is_undefined():
    with pytest.raises(Undefined, match="no keyword"):
        at.focus(np.ones(2), np.zeros(2, bool), np.zeros((2, 2)))
    flat = np.full((1, 200), -np.log(200))
    alone = at.focus_surprisal_full(flat, [0], np.ones(200))
    assert np.isnan(alone).all()
    with pytest.raises(Undefined, match="no word was likely"):
        at.focus(alone, np.array([True]), np.zeros((1, 1)))
    with np.errstate(divide="ignore"):
        dropped = at.focus_surprisal_full(np.log([[0.995, 0.005]]), [1], np.ones(2))
    assert dropped == pytest.approx(1 - np.log(1e-5))  # one word left, and the written one dropped


# What must not matter, and what is refused
def test_weights_of_csl_need_not_be_normalised():
    logp, weights = np.array([-1.0, -5, -2]), np.array([0.2, 0.1, 0.4])
    assert at.csl(logp, weights) == pytest.approx(at.csl(logp, weights * 1e-6), rel=1e-12)
    assert (
        at.csl(np.array([-1, -np.inf]), np.array([1, 0])) == 1
    )  # a token that nobody looks at does not count
    assert at.csl(np.array([-1, -np.inf]), np.array([1, 1])) == np.inf


def test_masked_attention_is_infinite_and_nothing_is_zero():
    assert at.attention_score(np.array([-1, -np.inf])) == np.inf
    assert at.attention_score([]) == 0 and np.copysign(1, at.attention_score([])) == 1
    assert at.attention_score_prompt([], -2.0) == 2


@pytest.mark.parametrize(
    "method,args",
    [
        (at.rauq, (np.zeros(3), np.zeros((2, 4)))),
        (at.rauq, (np.zeros(3), np.zeros(3))),
        (at.csl, (np.zeros(3), np.zeros(2))),
        (at.focus, (np.zeros(3), np.ones(3, bool), np.zeros((2, 2)))),
    ],
)
def test_other_tokens_are_a_mistake(method, args):
    with pytest.raises(ValueError, match="shape"):
        method(*args)


def test_inputs_stay_as_they_are_and_32_bits_do():
    rng = np.random.default_rng(0)
    logp, back, weights, is_keyword = -rng.random(5), rng.random((3, 5)), rng.random((5, 5)), np.ones(5, bool)
    for method, args in (
        (at.rauq, (logp, back)),
        (at.csl, (logp, back[0])),
        (at.focus, (-logp, is_keyword, weights)),
        (at.attention_score, (logp,)),
    ):
        for x in args:
            x.flags.writeable = False
        assert method(*args) == pytest.approx(
            method(*(x if x.dtype == bool else x.astype(np.float32) for x in args)), rel=1e-5
        )


def test_every_score_is_registered_with_its_needs():
    assert {n: e.needs for n, e in reg.items() if e.fn.__module__ == at.__name__} == dict(
        rauq=("greedy_logp", "attention_previous"),
        rauq_instruct=("greedy_logp", "attention_previous"),
        rauq_entropy=("greedy_entropy", "greedy_allowed", "attention_previous"),
        attention_score=("attention_log_self",),
        attention_score_prompt=("attention_log_self", "prompt_log_self"),
        csl=("greedy_logp", "elicited_attention"),
        focus=("focus_surprisal", "keywords", "attention_max"),
        lookback=("lookback_ratio",),
    )
