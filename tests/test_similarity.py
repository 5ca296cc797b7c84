"""Lexical similarity: symmetric, equal for equal texts, and what a slow double loop gives."""
import numpy as np
import pytest
from hypothesis import given, strategies as st

from uetrust.nlg.overlap import rouge_l
from uetrust.registry import reg
from uetrust.similarity import jaccard, pairwise, rouge_l_pairs

texts = st.lists(st.lists(st.sampled_from('rain fell on the Hall'.split()), max_size=5).map(' '.join), min_size=1, max_size=6)

@pytest.mark.parametrize('name', ['jaccard', 'rouge_l_pairs'])
@given(ts=texts)
def test_a_matrix_is_symmetric_bounded_and_follows_its_texts(name, ts):
    s = reg[name].fn([ts])[0]
    assert s.shape==(len(ts), len(ts)) and np.array_equal(s, s.T) and 0<=s.min() and s.max()<=1
    for i,a in enumerate(ts):
        for j,b in enumerate(ts):
            if a==b: assert np.array_equal(s[i], s[j])
    order = list(range(len(ts)))[::-1]
    assert np.array_equal(reg[name].fn([[ts[i] for i in order]])[0], s[np.ix_(order, order)])

@given(texts)
def test_values_are_those_of_a_double_loop(ts):
    def naive(a, b):
        a,b = a.lower().split(),b.lower().split()
        either = set(a)|set(b)
        return sum(w in a and w in b for w in either)/len(either) if either else 1
    assert np.allclose(jaccard([ts])[0], [[naive(a, b) for b in ts] for a in ts])
    assert np.allclose(rouge_l_pairs([ts])[0], [[rouge_l(a, b) if a and b else a==b for b in ts] for a in ts])

def test_each_pair_of_unique_texts_is_computed_once():
    seen = []
    pairwise(['a', 'b', 'a', 'b', 'c'], lambda x, y: seen.append((x, y)) or 0.)
    assert len(seen)==len(set(map(frozenset, seen)))==6
