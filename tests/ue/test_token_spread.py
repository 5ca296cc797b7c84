"""Token statistics: those of numpy on surprisals, infinite only where they must be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from uetrust.core.checks import Undefined
from uetrust.core.run import ScoreRun, compute_score
from uetrust.statistics.scores import load_scores
from uetrust.ue.token_spread import least_likely_tokens, median_token, token_std, upper_quartile_token

reg = load_scores()
logps = arrays(float, st.integers(1, 12), elements=st.floats(-20, 0))
ALL = [token_std, median_token, upper_quartile_token, least_likely_tokens]


@given(logps)
def test_they_are_numpys_of_the_surprisals(logp):
    assert token_std(logp) == pytest.approx(np.std(-logp), abs=1e-12)
    assert median_token(logp) == pytest.approx(np.median(-logp))
    assert upper_quartile_token(logp) == pytest.approx(np.quantile(-logp, 0.75))


@given(logps, st.floats(0.01, 1))
def test_the_least_likely_are_between_the_mean_and_the_largest(logp, share):
    value = least_likely_tokens(logp, share)
    assert -logp.mean() - 1e-9 <= value <= -logp.min() + 1e-9
    assert least_likely_tokens(logp, 1.0) == pytest.approx(-logp.mean())
    if len(logp) <= 5:
        assert least_likely_tokens(logp) == -logp.min()


def test_a_fifth_of_eleven_tokens_is_three():
    assert least_likely_tokens(-np.arange(11.0)) == (10 + 9 + 8) / 3


def test_an_impossible_token_is_infinite_only_where_it_counts():
    logp = np.array([-1.0, -np.inf, -1.0, -1.0, -1.0])
    assert median_token(logp) == upper_quartile_token(logp) == 1 and least_likely_tokens(logp) == np.inf
    with pytest.raises(Undefined, match="impossible"):
        token_std(logp)


@pytest.mark.parametrize("score", ALL, ids=lambda f: f.__name__)
def test_a_text_without_tokens_has_none(score):
    with pytest.raises(Undefined, match="at least 1 token, got 0"):
        score(np.zeros(0))


@given(st.lists(logps, min_size=1, max_size=5))
def test_texts_read_together_spread_as_each_alone(texts):
    run = ScoreRun([f"t{i}" for i in range(len(texts))], reg, greedy_logp=texts)
    found = compute_score(run, "token_std")["value"]
    assert found.to_numpy() == pytest.approx([token_std(logp) for logp in texts], abs=1e-9)
