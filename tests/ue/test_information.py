"""Information-based methods: recorded values of other libraries, and properties for any text."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.at_once import at_once, twins_of
from tests.helpers.diversity import value
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.ue import information
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


# Per-token statistics of log-probabilities [L,V]. The package computes them in one forward pass, and its
# scores only average them. Here they are written once more from the definitions. So definition and average
# together can be compared with other libraries, which take the log-probabilities.
def entropy(logp):
    return -np.where(np.isneginf(logp), 0, np.exp(logp) * np.where(np.isneginf(logp), 0, logp)).sum(1)


def tempered(logp):  # softmax(log p / 2)
    x = logp / 2 - (logp / 2).max(1, keepdims=True)
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


def renyi_from_uniform(probability, alpha=0.5):  # log V minus the Rényi entropy
    size = probability.shape[1]
    if alpha == 1:
        return np.log(size) + np.where(
            probability > 0, probability * np.log(np.where(probability > 0, probability, 1)), 0
        ).sum(1)
    return np.log(size) - np.log((probability**alpha).sum(1)) / (1 - alpha)


def angle_to_uniform(probability):
    return 2 / np.pi * np.arccos(np.clip(np.sqrt(probability / probability.shape[1]).sum(1), 0, 1))


def kl_uniform(logp):
    finite = ~np.isneginf(logp)
    return -np.where(finite, logp, 0).sum(1) / finite.sum(1) - np.log(finite.sum(1))


def dominant(logp, ids):  # The set ends where the sorted probabilities last fall steeply
    def one(probability, i):
        order = np.argsort(-probability)
        ordered = probability[order]
        ends = np.flatnonzero(
            (ordered[:-1] - ordered[1:] > 0.3 * ordered[:-1]) & (ordered[:-1] - ordered[1:] > 0.005)
        )
        top = order[: ends[-1] + 1] if len(ends) else []
        return probability[top].sum() if i in top else probability[i]

    return np.array([one(probability, i) for probability, i in zip(np.exp(logp), ids)])


def numbers(x):
    return np.array(x, float)  # 'NaN' and 'Infinity' are strings in the file


def close(mine, theirs, **options):
    np.testing.assert_allclose(mine, numbers(theirs), **(dict(rtol=1e-9, atol=1e-12) | options))


def score(method, *lists):  # One value per item, NaN where it does not exist
    def one(args):
        try:
            return method(*args)
        except Undefined:
            return np.nan

    return [one(args) for args in zip(*lists)]


@pytest.fixture(scope="module", params=["random", "uniform", "masked_minus_inf"])
def case(request, oracle):
    x, y = next(
        (recorded["inputs"], recorded["outputs"])
        for recorded in oracle("uncertainty.json")["information"]
        if recorded["name"] == request.param
    )
    rows = [numbers(row) for row in x["greedy_log_probs"]]
    return (
        rows,
        x["greedy_tokens"],
        [numbers(values) for values in x["greedy_log_likelihoods"]],
        [numbers(values) for values in x["greedy_lm_log_likelihoods"]],
        y,
    )


def test_no_recorded_case_is_left_out(oracle):
    names = {
        group: {recorded["name"] for recorded in oracle("uncertainty.json")[group]}
        for group in ("information", "sampling")
    }
    assert names == dict(
        information={"random", "uniform", "masked_minus_inf", "empty_generation", "minus_inf_likelihood"},
        sampling={"random", "with_empty_sample", "all_empty"},
    )


def test_likelihoods_and_entropies_are_those_of_peers(case):
    rows, ids, logp, _, want = case
    close(score(msp, logp), want["MaximumSequenceProbability"])
    assert score(msp_he2024, logp) == score(msp, logp)
    close(score(perplexity, logp), want["Perplexity"])
    entropies, finite = [entropy(row) for row in rows], [np.isfinite(row).sum(1) for row in rows]
    for mine, theirs in zip(entropies, want["token_entropy"]):
        close(mine, theirs)
    close(score(mte, entropies), want["MeanTokenEntropy"])
    close(score(mte_he2024, entropies, finite), want["MeanTokenEntropy_released_benchmark"])


def test_released_entropy_is_a_mean_over_the_vocabulary(case):
    rows, *_, want = case
    assert all(
        (np.array(sums) >= means).all()
        for sums, means in zip(want["token_entropy"], want["token_entropy_released_benchmark"])
    )
    size = rows[0].shape[1]
    if all(np.isfinite(row).all() for row in rows):
        close(numbers(want["MeanTokenEntropy"]) / size, want["MeanTokenEntropy_released_benchmark"])


def test_mutual_information_is_that_of_peers(case):
    rows, _, logp, alone, want = case
    close(score(pmi, logp, alone), want["MeanPointwiseMutualInformation"])
    close(
        score(cpmi, logp, [entropy(row) for row in rows], alone),
        want["MeanConditionalPointwiseMutualInformation"],
    )


def test_whole_distribution_scores_are_those_of_peers_with_their_signs_put_right(case):
    rows, ids, *_, want = case
    size = rows[0].shape[1]
    softened = [tempered(row) for row in rows]
    close(
        score(renyi, [renyi_from_uniform(probability) for probability in softened]),
        -numbers(want["RenyiNeg"]) - 2 * np.log(size),
    )
    close(
        score(renyi, [renyi_from_uniform(np.exp(row), 2) for row in rows]),
        -numbers(want["RenyiNeg_alpha2_temp1"]) - 2 * np.log(size),
    )
    close(
        score(fisher_rao, [angle_to_uniform(probability) for probability in softened]),
        -numbers(want["FisherRao"]),
        atol=2e-8,
    )
    close(
        score(fisher_rao, [angle_to_uniform(np.exp(row)) for row in rows]),
        -numbers(want["FisherRao_temp1"]),
        atol=2e-8,
    )
    close(score(self_certainty, [kl_uniform(row) for row in rows]), want["SelfCertainty"])
    close(score(boosted_prob, [dominant(row, i) for row, i in zip(rows, ids)]), want["BoostedProbSequence"])


def test_renyi_of_order_one_is_defined_where_words_are_banned(case):
    rows, *_, want = case
    mine = numbers(score(renyi, [renyi_from_uniform(np.exp(row), 1) for row in rows]))
    theirs = numbers(want["RenyiNeg_alpha1_temp1"])
    assert np.isfinite(mine).all() and np.isnan(theirs).any() == any(np.isneginf(row).any() for row in rows)
    close(
        mine[~np.isnan(theirs)], -theirs[~np.isnan(theirs)]
    )  # this branch of the other library has no slip in its sign


def test_empty_texts_and_impossible_tokens(oracle):
    cases = {recorded["name"]: recorded for recorded in oracle("uncertainty.json")["information"]}
    given, want = (cases["empty_generation"][k] for k in ("inputs", "outputs"))
    logp, entropies = [
        [numbers(values) for values in given[k]] for k in ("greedy_log_likelihoods", "entropy")
    ]
    close(score(msp, logp), want["MaximumSequenceProbability"])
    close(score(perplexity, logp), want["Perplexity"])
    close(score(mte, entropies), want["MeanTokenEntropy"])
    given, want = (cases["minus_inf_likelihood"][k] for k in ("inputs", "outputs"))
    logp = [numbers(values) for values in given["greedy_log_likelihoods"]]
    close(score(msp, logp), want["MaximumSequenceProbability"])
    close(score(perplexity, logp), want["Perplexity"])
    assert msp(logp[0]) == perplexity(logp[0]) == min_token(logp[0]) == np.inf


@pytest.mark.parametrize("name", ["random", "with_empty_sample", "all_empty"])
def test_drawn_texts(oracle, name):
    (recorded,) = (
        recorded for recorded in oracle("uncertainty.json")["sampling"] if recorded["name"] == name
    )
    given, want = recorded["inputs"], recorded["outputs"]
    words = given["sample_log_likelihoods"]
    tokens = [[numbers(logp) for logp in item] for item in words]
    total = [numbers(log_total) for log_total in given["sample_log_probs"]]
    ends = [
        [np.r_[logp, log_total - logp.sum()] for logp, log_total in zip(item, totals)]
        for item, totals in zip(tokens, total)
    ]  # the recorded totals hold one end token more
    special = [[np.arange(len(logp) + 1) == len(logp) for logp in item] for item in tokens]
    for mine, theirs in zip(sample_total(ends), total):
        close(mine, theirs)
    assert [n.tolist() for n in sample_length(special)] == [
        [len(log_total) for log_total in item] for item in given["sample_tokens"]
    ]
    close(score(mcse, sample_total(ends)), want["MonteCarloSequenceEntropy"])
    close(
        score(mcnse_lmp, sample_total(ends), sample_length(special)),
        want["MonteCarloNormalizedSequenceEntropy"],
    )


def test_margin_and_rarest_token_are_complements_of_confidences_in_uqlm(oracle):
    found = 0
    for recorded in oracle("uncertainty.json")["peer_uqlm"]:
        if "probability_margin" not in str(recorded.get("outputs")):
            continue
        for response, margins in zip(
            recorded["inputs"]["responses"], recorded["outputs"]["probability_margin"]
        ):
            if response is None:
                continue
            found += 1
            top = numbers([token[1] for token in response])
            assert margin(top) == pytest.approx(1 - margins, rel=1e-9)
    assert found


logps = st.lists(st.floats(-20, 0), min_size=1, max_size=8).map(np.array)


@given(logps, st.randoms())
def test_order_of_drawn_texts_does_not_matter_and_copies_change_no_mean(totals, random):
    order = list(range(len(totals)))
    random.shuffle(order)
    n = np.arange(1, len(totals) + 1)
    assert (
        mcse(totals[order]) == pytest.approx(mcse(totals), abs=1e-12)
        and mcnse_lmp(totals[order], n[order]) == pytest.approx(mcnse_lmp(totals, n), abs=1e-12)
        and mcnse((totals / n)[order]) == pytest.approx(mcnse(totals / n), abs=1e-12)
    )
    assert (
        mcse(np.r_[totals, totals]) == pytest.approx(mcse(totals), abs=1e-12)
        and mcnse_lmp(np.r_[totals, totals], np.r_[n, n]) == pytest.approx(mcnse_lmp(totals, n), abs=1e-12)
        and mcnse(np.r_[totals / n, totals / n]) == pytest.approx(mcnse(totals / n), abs=1e-12)
    )


@given(logps)
def test_mean_smallest_and_sum_are_in_order(logp):
    assert -1e-12 <= perplexity(logp) <= min_token(logp) + 1e-12 and min_token(logp) <= msp(logp) + 1e-12
    assert pmi(logp, np.zeros_like(logp)) == pytest.approx(perplexity(logp)) and cpmi(
        logp, np.zeros_like(logp), logp
    ) == pytest.approx(perplexity(logp))


@given(logps, st.floats(-20, 0))
def test_a_less_likely_token_is_never_more_certain(logp, x):
    worse = np.r_[min(logp[0], x), logp[1:]]
    for method in (msp, msp_he2024, perplexity, min_token, mcse):
        assert method(worse) >= method(logp) - 1e-12


def test_impossible_with_and_without_the_source_is_undefined():
    with pytest.raises(Undefined, match="impossible with and without"):
        pmi([-1, -np.inf], [-1, -np.inf])
    assert pmi([-np.inf, -1], [-np.inf, -1]) == np.inf  # nothing is subtracted at the first token
    assert pmi([-1.0, -1.0], [-1.0, -np.inf]) == -np.inf
    assert cpmi([-1.0, -1.0], [0.0, 0.0], [-1.0, -np.inf]) == 1  # a weight of 0 subtracts nothing


def test_no_input_is_changed_and_float32_is_summed_in_float64():
    inputs = dict(
        greedy_logp=-np.ones(9, "float32") / 3,
        greedy_entropy=np.ones(9),
        unconditional_logp=-np.ones(9),
        context_divergence=np.ones(9) / 3,
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
    before = copy.deepcopy(inputs)
    mine = {
        name: entry
        for name, entry in reg.items()
        if entry.kind == "ue" and entry.fn.__module__ == "uetrust.ue.information"
    }
    for entry in mine.values():
        assert type(entry.fn(**{key: inputs[key] for key in entry.needs})) is float
    assert len(mine) == 17 and all(np.array_equal(inputs[key], before[key]) for key in inputs)
    assert msp(inputs["greedy_logp"]) == float(np.float32(1) / np.float32(3)) * 9


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


def text_item(length, seed, samples=3):
    "A text of some tokens with drawn ones, with everything that these scores start from"
    rng = np.random.default_rng(seed)
    drawn = [-rng.exponential(size=rng.integers(2, 6)) for _ in range(samples)]
    per_token = ("entropy", "renyi", "fisher_rao", "self_certainty", "dominant")
    return dict(
        greedy_logp=-rng.exponential(size=length),
        unconditional_logp=-rng.exponential(size=length),
        context_divergence=rng.random(length),
        processed_logp=-rng.exponential(size=length),
        processed_entropy=rng.random(length),
        processed_finite=rng.integers(1, 9, length),
        greedy_top_logp=-np.sort(rng.exponential(size=(length, 4)), axis=1),
        sample_logp=drawn,
        sample_special=[np.arange(len(logp)) == len(logp) - 1 for logp in drawn],
        **{f"greedy_{name}": rng.random(length) for name in per_token},
    )


@pytest.mark.parametrize("name", twins_of(information.__name__))
def test_many_texts_at_once_have_the_score_of_each(name):
    items = [text_item(length, seed) for seed, length in enumerate([4, 1, 7, 2])]
    assert at_once(name, items) == pytest.approx([value(name, **item) for item in items], abs=1e-12)


@pytest.mark.parametrize("name", twins_of(information.__name__))
def test_a_text_without_tokens_among_others_has_the_score_that_it_has_alone_or_none(name):
    "None at once: NaN, so that it is computed alone and gives its reason."
    items = [text_item(length, seed) for seed, length in enumerate([4, 0, 7])]

    def alone(item):
        try:
            return value(name, **item)
        except Undefined as e:
            assert "token" in str(e)
            return np.nan

    expected = list(map(alone, items))
    assert at_once(name, items) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert np.isfinite(np.array(expected)[[0, 2]]).all()


def test_a_margin_at_once_needs_two_tokens_of_each_step_too():
    few = [dict(greedy_top_logp=-np.ones((length, 1))) for length in (2, 3)]
    assert np.isnan(at_once("margin", few)).all()
    two = [dict(greedy_top_logp=np.log([[0.7, 0.2], [0.5, 0.1]])), dict(greedy_top_logp=np.log([[0.6, 0.4]]))]
    assert at_once("margin", two) == pytest.approx([1 - (0.5 + 0.4) / 2, 1 - 0.2])
