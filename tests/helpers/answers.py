"""Drawn answers, and slow definitions of their words and of F1."""

import string

from hypothesis import strategies as st

words = st.sampled_from(["a", "The", "the", "an", "pier", "Pier!", "old", "-", "olds", "x.y", "ÜBER", "–"])
texts = st.lists(words, max_size=6).map(" ".join)


def slow_words(text):
    kept = "".join("" if c in string.punctuation else c for c in text.lower())
    return [word for word in kept.split() if word not in "a an the".split()]


def slow_f1(a, b):
    left, common = list(b), 0
    for word in a:
        if word in left:
            left.remove(word)
            common += 1
    if not a and not b:
        return 1.0
    precision, recall = (common / max(len(x), 1) for x in (a, b))
    return 2 * precision * recall / (precision + recall) if common else 0.0
