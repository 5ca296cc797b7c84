"""Repeated banks: what is not asked again keeps the scores of the base."""

import pandas as pd

from uetrust.papers.bulletins import repeats, sentences


def test_a_bank_without_a_question_keeps_the_scores_of_the_base():
    base = pd.DataFrame(dict(msp=[1.0, 2], p_true=[0.1, 0.2]))
    asked = repeats.only_asked(dict(base=base, other=pd.DataFrame(dict(p_true=[0.9, 0.8], new=[1, 1]))))[
        "other"
    ]
    assert asked.to_dict("list") == dict(msp=[1.0, 2], p_true=[0.9, 0.8])


def test_a_profile_that_repeats_nothing_has_empty_tables():
    for function in (repeats.level_prr, repeats.paired_level_differences, repeats.level_halves):
        assert len(function({})) == 0
    assert repeats.seeded({}) == [] and sentences.half_sentences({}, pd.DataFrame(), pd.DataFrame()) == []
