"""Roles of columns: every spelling has one, and it agrees with the registry."""

import pandas as pd
import pytest

from uetrust.core.roles import SPELLINGS, known_as, known_scores, plain_name, role_of
from uetrust.statistics.scores import load_scores

SCORES = load_scores()  # A name may be one of the registry, which is empty until then


@pytest.mark.parametrize(
    "name, values, sign",
    [
        ("logprob", [-3, -1], -1),
        ("logprob", [3, 1], 1),
        ("nll", [-3, -1], -1),
        ("p_true", [0.2, 0.9], -1),
        ("PTrue", [0.2, 4.1], 1),
        ("semantic_density", [-0.9, -0.2], 1),
        ("semantic_density", [0.9, 0.2], -1),
        ("LexicalSimilarity_rougeL", [-0.4, -1], 1),
    ],
)
def test_the_direction_is_the_one_that_the_values_have(name, values, sign):
    assert known_as(name, pd.Series(values, dtype=float)).sign == sign


def test_every_spelling_has_one_row_and_agrees_with_the_registry():
    names = [name for row in SPELLINGS for name in row[4].split()]
    assert len(set(names)) == len(names) and all(
        name == plain_name(name) + "*" * (name[-1] == "*") for name in names
    )
    for role, _, score, _, spelled in SPELLINGS:
        assert not score or role_of(score) in (role, "")
        for name in spelled.split():
            assert known_scores(name.rstrip("*"))[0].role == role


def test_every_spelling_has_a_direction_and_a_metric_that_of_its_score():
    for role, sign, score, _, spelled in SPELLINGS:
        for name in spelled.split():
            found = known_as(name.rstrip("*"), pd.Series([0.5]))
            assert found.sign in (1, -1) and sign in (1, -1), name
            if role == "metric" and score:
                assert found.sign == sign == SCORES[score].sign, name
