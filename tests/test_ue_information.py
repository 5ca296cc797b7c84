"""Information methods: what peers' code gave on the same numbers, and what must hold for any text."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.ue.information import (
    boosted_prob,
    cpmi,
    fisher_rao,
    margin,
    mcnse,
    mcnse_lmp,
    mcse,
    min_token,
    msp,
    msp_he2024,
    mte,
    mte_he2024,
    perplexity,
    pmi,
    renyi,
    sample_length,
    sample_total,
    self_certainty,
)


# Per-token numbers of full rows of log-probabilities [L,V]. The package makes these on the device in one reading pass and its scores only pool them.
# Here they are written once more from the definitions, so that definition and pooling together can be held against peers, who take the rows.
def entropy(lp):
    return -np.where(np.isneginf(lp), 0, np.exp(lp) * np.where(np.isneginf(lp), 0, lp)).sum(1)


def tempered(lp):  # softmax(log p / 2)
    x = lp / 2 - (lp / 2).max(1, keepdims=True)
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


def renyi_from_uniform(p, alpha=0.5):  # log V minus the Rényi entropy
    V = p.shape[1]
    if alpha == 1:
        return np.log(V) + np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(1)
    return np.log(V) - np.log((p**alpha).sum(1)) / (1 - alpha)


def angle_to_uniform(p):
    return 2 / np.pi * np.arccos(np.clip(np.sqrt(p / p.shape[1]).sum(1), 0, 1))


def kl_uniform(lp):
    ok = ~np.isneginf(lp)
    return -np.where(ok, lp, 0).sum(1) / ok.sum(1) - np.log(ok.sum(1))


def dominant(lp, ids):  # The set ends where the sorted probabilities last fall steeply
    def one(p, i):
        order = np.argsort(-p)
        s = p[order]
        ends = np.flatnonzero((s[:-1] - s[1:] > 0.3 * s[:-1]) & (s[:-1] - s[1:] > 0.005))
        top = order[: ends[-1] + 1] if len(ends) else []
        return p[top].sum() if i in top else p[i]

    return np.array([one(p, i) for p, i in zip(np.exp(lp), ids)])


def numbers(x):
    return np.array(x, float)  # 'NaN' and 'Infinity' are strings in the file


def close(mine, theirs, **kw):
    np.testing.assert_allclose(mine, numbers(theirs), **(dict(rtol=1e-9, atol=1e-12) | kw))


def score(f, *lists):  # One value per item, NaN where it does not exist
    def one(args):
        try:
            return f(*args)
        except Undefined:
            return np.nan

    return [one(args) for args in zip(*lists)]


@pytest.fixture(scope="module", params=["random", "uniform", "masked_minus_inf"])
def case(request, oracle):
    x, y = next(
        (c["inputs"], c["outputs"])
        for c in oracle("uncertainty.json")["information"]
        if c["name"] == request.param
    )
    rows = [numbers(r) for r in x["greedy_log_probs"]]
    return (
        rows,
        x["greedy_tokens"],
        [numbers(v) for v in x["greedy_log_likelihoods"]],
        [numbers(v) for v in x["greedy_lm_log_likelihoods"]],
        y,
    )


def test_no_recorded_case_is_left_out(oracle):
    names = {g: {c["name"] for c in oracle("uncertainty.json")[g]} for g in ("information", "sampling")}
    assert names == dict(
        information={"random", "uniform", "masked_minus_inf", "empty_generation", "minus_inf_likelihood"},
        sampling={"random", "with_empty_sample", "all_empty"},
    )


def test_likelihoods_and_entropies_are_those_of_peers(case):
    rows, ids, logp, _, y = case
    close(score(msp, logp), y["MaximumSequenceProbability"])
    assert score(msp_he2024, logp) == score(msp, logp)
    close(score(perplexity, logp), y["Perplexity"])
    h, finite = [entropy(r) for r in rows], [np.isfinite(r).sum(1) for r in rows]
    for a, b in zip(h, y["token_entropy"]):
        close(a, b)
    close(score(mte, h), y["MeanTokenEntropy"])
    close(score(mte_he2024, h, finite), y["MeanTokenEntropy_released_benchmark"])


def test_released_entropy_is_a_mean_over_the_vocabulary(case):
    rows, *_, y = case
    assert all(
        (np.array(a) >= b).all() for a, b in zip(y["token_entropy"], y["token_entropy_released_benchmark"])
    )
    V = rows[0].shape[1]
    if all(np.isfinite(r).all() for r in rows):
        close(numbers(y["MeanTokenEntropy"]) / V, y["MeanTokenEntropy_released_benchmark"])


def test_mutual_information_is_that_of_peers(case):
    rows, _, logp, alone, y = case
    close(score(pmi, logp, alone), y["MeanPointwiseMutualInformation"])
    close(
        score(cpmi, logp, [entropy(r) for r in rows], alone), y["MeanConditionalPointwiseMutualInformation"]
    )


def test_whole_distribution_scores_are_those_of_peers_with_their_signs_put_right(case):
    rows, ids, *_, y = case
    V = rows[0].shape[1]
    q = [tempered(r) for r in rows]
    close(score(renyi, [renyi_from_uniform(p) for p in q]), -numbers(y["RenyiNeg"]) - 2 * np.log(V))
    close(
        score(renyi, [renyi_from_uniform(np.exp(r), 2) for r in rows]),
        -numbers(y["RenyiNeg_alpha2_temp1"]) - 2 * np.log(V),
    )
    close(score(fisher_rao, [angle_to_uniform(p) for p in q]), -numbers(y["FisherRao"]), atol=2e-8)
    close(
        score(fisher_rao, [angle_to_uniform(np.exp(r)) for r in rows]),
        -numbers(y["FisherRao_temp1"]),
        atol=2e-8,
    )
    close(score(self_certainty, [kl_uniform(r) for r in rows]), y["SelfCertainty"])
    close(score(boosted_prob, [dominant(r, i) for r, i in zip(rows, ids)]), y["BoostedProbSequence"])


def test_renyi_of_order_one_is_defined_where_words_are_banned(case):
    rows, *_, y = case
    mine = numbers(score(renyi, [renyi_from_uniform(np.exp(r), 1) for r in rows]))
    theirs = numbers(y["RenyiNeg_alpha1_temp1"])
    assert np.isfinite(mine).all() and np.isnan(theirs).any() == any(np.isneginf(r).any() for r in rows)
    close(
        mine[~np.isnan(theirs)], -theirs[~np.isnan(theirs)]
    )  # this branch of the peer has no slip in its sign


def test_empty_texts_and_impossible_tokens(oracle):
    cases = {c["name"]: c for c in oracle("uncertainty.json")["information"]}
    x, y = (cases["empty_generation"][k] for k in ("inputs", "outputs"))
    logp, h = [[numbers(v) for v in x[k]] for k in ("greedy_log_likelihoods", "entropy")]
    close(score(msp, logp), y["MaximumSequenceProbability"])
    close(score(perplexity, logp), y["Perplexity"])
    close(score(mte, h), y["MeanTokenEntropy"])
    x, y = (cases["minus_inf_likelihood"][k] for k in ("inputs", "outputs"))
    logp = [numbers(v) for v in x["greedy_log_likelihoods"]]
    close(score(msp, logp), y["MaximumSequenceProbability"])
    close(score(perplexity, logp), y["Perplexity"])
    assert msp(logp[0]) == perplexity(logp[0]) == min_token(logp[0]) == np.inf


@pytest.mark.parametrize("name", ["random", "with_empty_sample", "all_empty"])
def test_drawn_texts(oracle, name):
    (c,) = (c for c in oracle("uncertainty.json")["sampling"] if c["name"] == name)
    x, y = c["inputs"], c["outputs"]
    words = x["sample_log_likelihoods"]
    tokens = [[numbers(w) for w in item] for item in words]
    total = [numbers(t) for t in x["sample_log_probs"]]
    ends = [
        [np.r_[w, t - w.sum()] for w, t in zip(item, ts)] for item, ts in zip(tokens, total)
    ]  # the recorded totals hold one end token more
    special = [[np.arange(len(w) + 1) == len(w) for w in item] for item in tokens]
    for a, b in zip(sample_total(ends), total):
        close(a, b)
    assert [n.tolist() for n in sample_length(special)] == [
        [len(t) for t in item] for item in x["sample_tokens"]
    ]
    close(score(mcse, sample_total(ends)), y["MonteCarloSequenceEntropy"])
    close(
        score(mcnse_lmp, sample_total(ends), sample_length(special)), y["MonteCarloNormalizedSequenceEntropy"]
    )


def test_margin_and_rarest_token_are_complements_of_confidences_in_uqlm(oracle):
    found = 0
    for c in oracle("uncertainty.json")["peer_uqlm"]:
        if "probability_margin" not in str(c.get("outputs")):
            continue
        for r, o in zip(c["inputs"]["responses"], c["outputs"]["probability_margin"]):
            if r is None:
                continue
            found += 1
            top = numbers([t[1] for t in r])
            assert margin(top) == pytest.approx(1 - o, rel=1e-9)
    assert found


logps = st.lists(st.floats(-20, 0), min_size=1, max_size=8).map(np.array)


@given(logps, st.randoms())
def test_order_of_drawn_texts_does_not_matter_and_copies_change_no_mean(t, r):
    at = list(range(len(t)))
    r.shuffle(at)
    n = np.arange(1, len(t) + 1)
    assert (
        mcse(t[at]) == pytest.approx(mcse(t), abs=1e-12)
        and mcnse_lmp(t[at], n[at]) == pytest.approx(mcnse_lmp(t, n), abs=1e-12)
        and mcnse((t / n)[at]) == pytest.approx(mcnse(t / n), abs=1e-12)
    )
    assert (
        mcse(np.r_[t, t]) == pytest.approx(mcse(t), abs=1e-12)
        and mcnse_lmp(np.r_[t, t], np.r_[n, n]) == pytest.approx(mcnse_lmp(t, n), abs=1e-12)
        and mcnse(np.r_[t / n, t / n]) == pytest.approx(mcnse(t / n), abs=1e-12)
    )


@given(logps)
def test_mean_smallest_and_sum_are_in_order(t):
    assert -1e-12 <= perplexity(t) <= min_token(t) + 1e-12 and min_token(t) <= msp(t) + 1e-12
    assert pmi(t, np.zeros_like(t)) == pytest.approx(perplexity(t)) and cpmi(
        t, np.zeros_like(t), t
    ) == pytest.approx(perplexity(t))


@given(logps, st.floats(-20, 0))
def test_a_less_likely_token_is_never_more_certain(t, x):
    worse = np.r_[min(t[0], x), t[1:]]
    for f in (msp, msp_he2024, perplexity, min_token, mcse):
        assert f(worse) >= f(t) - 1e-12


def test_impossible_with_and_without_the_source_is_undefined():
    with pytest.raises(Undefined, match="impossible both"):
        pmi([-1, -np.inf], [-1, -np.inf])
    assert pmi([-np.inf, -1], [-np.inf, -1]) == np.inf  # nothing is subtracted at the first token
    assert pmi([-1.0, -1.0], [-1.0, -np.inf]) == -np.inf
    assert cpmi([-1.0, -1.0], [0.0, 0.0], [-1.0, -np.inf]) == 1  # a weight of 0 subtracts nothing


def test_no_input_is_changed_and_float32_is_summed_in_float64():
    x = dict(
        greedy_logp=-np.ones(9, "float32") / 3,
        greedy_entropy=np.ones(9),
        alone_logp=-np.ones(9),
        processed_logp=-np.ones(9),
        processed_entropy=np.ones(9),
        processed_finite=np.full(9, 5),
        greedy_top_logp=-np.arange(18.0).reshape(9, 2) % 2 - 1,
        sample_total=-np.ones(3),
        sample_length=np.arange(3),
        sample_mean_logp=-np.ones(3),
        greedy_renyi=np.ones(9),
        greedy_fisher_rao=np.ones(9),
        greedy_self_certainty=np.ones(9),
        greedy_dominant=np.ones(9),
    )
    before = copy.deepcopy(x)
    mine = {n: e for n, e in reg.items() if e.kind == "ue" and e.fn.__module__ == "uetrust.ue.information"}
    for e in mine.values():
        assert type(e.fn(**{k: x[k] for k in e.needs})) is float
    assert len(mine) == 16 and all(np.array_equal(x[k], before[k]) for k in x)
    assert msp(x["greedy_logp"]) == float(np.float32(1) / np.float32(3)) * 9


def test_mistakes_of_the_caller():
    with pytest.raises(ValueError, match="topk=2"):
        margin(-np.ones((3, 1)))
    with pytest.raises(ValueError, match="of the same tokens"):
        cpmi(-np.ones(3), np.ones(3), -np.ones(1))
    with pytest.raises(Undefined, match="at least 1 drawn"):
        mcse([])
    with pytest.raises(Undefined, match="at least 1 token"):
        margin(np.zeros((0, 5)))
    with pytest.raises(Undefined, match="at least 1 token"):
        min_token([])
    with pytest.raises(Undefined, match="at least 1 token"):
        mte_he2024([], [])
