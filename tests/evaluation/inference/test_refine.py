"""Claims that stay: thresholds equal naive searches, and promises are kept."""

from math import comb, inf, nan

import numpy as np
import pytest

from uetrust.data.biographies import biographies
from uetrust.evaluation.inference.refine import claim_limits, claim_threshold


def breaks(truth, uncertainty, threshold):
    "Whether a wrong claim of one text is kept."
    return any(u < threshold and not t for t, u in zip(truth, uncertainty))


def texts_at_random(rng, n, levels=20):
    "Claims of n texts on few levels of uncertainty, so that there are ties."
    ids = np.repeat(np.arange(n), rng.integers(1, 6, n))
    uncertainty = rng.integers(0, levels, len(ids))
    return (rng.random(len(ids)) > uncertainty / levels / 2).astype(float), uncertainty, ids


def test_the_limit_is_the_largest_threshold_without_a_wrong_claim():
    truth, uncertainty, ids = texts_at_random(np.random.default_rng(0), 60)
    for text, limit in enumerate(claim_limits(truth, uncertainty, ids)):
        mine = truth[ids == text], uncertainty[ids == text]
        allowed = [t for t in range(30) if not breaks(*mine, t)]
        assert limit == (inf if 29 in allowed else max(allowed))


def test_texts_without_labels_are_left_out_and_a_missing_uncertainty_is_never_kept():
    assert list(claim_limits([nan, 0, 0], [1, nan, 3], ["new", "old", "old"])) == [3]
    assert list(claim_limits([0], [nan], ["one"])) == [inf]


@pytest.mark.parametrize(
    "truth, found",
    [
        ([1, nan], "text a has labels for some claims only"),
        ([0.5, 1], "found 0.5"),
        ([1], "2 for 1 claims"),
    ],
)
def test_labels_that_mean_nothing_are_refused(truth, found):
    with pytest.raises(ValueError, match=found):
        claim_limits(truth, [1, 2], ["a"] * 2)


@pytest.mark.parametrize("document", [["a"], ["a", None]])
def test_a_claim_of_no_text_is_refused(document):
    with pytest.raises(ValueError, match="needs the text of each of 2 claims, got 1"):
        claim_limits([1, 0], [1, 2], document)


@pytest.mark.parametrize("n", [1, 8, 9, 21, 22, 57])
@pytest.mark.parametrize("alpha", [0.1, 0.29, 0.5])
def test_the_place_is_that_of_a_naive_search(n, alpha):
    limits = np.random.default_rng(n).permutation(n)
    marginal = [k for k in range(1, n + 1) if k / (n + 1) <= alpha + 1e-12]
    tails = [sum(comb(n, j) * alpha**j * (1 - alpha) ** (n - j) for j in range(k)) for k in range(1, n + 1)]
    sure = [k for k, tail in enumerate(tails, 1) if tail <= 0.1]
    for places, delta in ((marginal, None), (sure, 0.1)):
        found = claim_threshold(limits, alpha, delta)
        assert found.place == max(places, default=0) and (found.place > 0) == (n >= found.least_n)
        assert found.threshold == (found.place - 1 if places else -inf)


def test_alpha_zero_keeps_nothing_and_alpha_one_everything():
    assert claim_threshold([1, 2], 0) == (-inf, 0, 2, inf)
    assert claim_threshold([1, 2], 1, 0.1) == (inf, 3, 2, 0)


@pytest.mark.parametrize("options", [dict(alpha=1.1), dict(alpha=nan), dict(delta=0), dict(limits=[nan])])
def test_numbers_that_promise_nothing_are_refused(options):
    with pytest.raises(ValueError, match="needs alpha|a limit is missing"):
        claim_threshold(**dict(limits=[1, 2]) | options)


def test_promises_are_kept_with_ties():
    rng = np.random.default_rng(1)
    population = claim_limits(*texts_at_random(rng, 4000))
    marginal, sure = [], []
    for _ in range(1000):
        limits = rng.choice(population, 49)
        marginal.append((population < claim_threshold(limits, 0.2).threshold).mean())
        sure.append((population < claim_threshold(limits, 0.2, 0.1).threshold).mean())
    assert 0.05 < np.mean(marginal) <= 0.2 and np.mean(np.array(sure) > 0.2) <= 0.1


@pytest.mark.parametrize("group", ["system", "rarity"])
def test_promises_are_kept_on_facts_that_people_judged(group):
    facts = biographies().query("right.notna()")
    facts = facts.assign(document=facts["system"] + facts["person"], position=facts["fact"] / facts["facts"])
    rng = np.random.default_rng(2)
    for _, some in facts.groupby(group):
        limits, broken = claim_limits(some["right"], some["position"], some["document"]), []
        for _ in range(1000):
            calibration, new = np.array_split(rng.permutation(limits), 2)
            broken.append((new < claim_threshold(calibration, 0.2).threshold).mean())
        error = np.std(broken) / np.sqrt(len(broken))
        assert len(limits) > 40 and np.mean(broken) < 0.2 + 3 * error
