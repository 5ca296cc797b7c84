"""Baselines: counts are those of `split`, chance knows nothing but the source and is uniform."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.run import ScoreRun, compute_score
from uetrust.statistics.scores import load_scores
from uetrust.ue.baselines import chance, output_length, source_length, token_count

reg = load_scores()


@given(st.lists(st.sampled_from(["word", "und", "."]), max_size=8), st.sampled_from([" ", "  ", "\n"]))
def test_words_are_what_stands_between_spaces(words, space):
    assert output_length(space.join(words)) == source_length(f" {space.join(words)}\n") == len(words)


def test_tokens_are_counted_with_the_end_of_the_text():
    texts = [np.array([-0.5, -1.0, -0.1]), np.zeros(0), np.array([-np.inf])]
    assert [token_count(logp) for logp in texts] == [3, 0, 1]
    run = ScoreRun(["a", "b", "c"], reg, greedy_logp=texts)
    assert compute_score(run, "token_count")["value"].tolist()[::2] == [3, 1]


def test_chance_is_uniform_and_equal_for_equal_documents():
    drawn = np.sort([chance(f"Document {i}.") for i in range(2000)])
    assert chance("Document 7.") == chance("Document 7.") and 0 <= drawn[0] and drawn[-1] < 1
    assert np.abs(drawn - (np.arange(2000) + 0.5) / 2000).max() < 0.036  # Kolmogorov and Smirnov, p < 0.01


def test_none_of_them_is_a_method_that_may_win():
    assert {reg[name].role for name in ("output_length", "source_length", "token_count", "chance")} == {
        "baseline"
    }
