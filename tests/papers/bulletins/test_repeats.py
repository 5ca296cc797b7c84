"""Repeated banks: methods without a new question keep the scores of the base; facts equal a count by hand."""

import numpy as np
import pandas as pd

from uetrust.papers.bulletins import repeats


def test_a_bank_without_a_question_keeps_the_scores_of_the_base():
    base = pd.DataFrame(dict(msp=[1.0, 2], p_true=[0.1, 0.2]))
    other = pd.DataFrame(dict(p_true=[0.9, 0.8], new=[1, 1]))
    filled = repeats.with_base_scores(dict(base=base, other=other))["other"]
    assert filled.to_dict("list") == dict(msp=[1.0, 2], p_true=[0.9, 0.8])


def test_a_profile_that_repeats_nothing_has_empty_tables():
    for function in (repeats.level_prr, repeats.paired_level_differences, repeats.level_halves):
        assert len(function({})) == 0
    assert repeats.seeded({}) == [] and len(repeats.question_prr({}, pd.DataFrame())) == 0
    assert len(repeats.seed_rank_facts(pd.DataFrame(), pd.DataFrame())) == 0


def test_spread_facts_are_medians_and_extremes_of_the_methods():
    spread = pd.DataFrame(
        [("a", 0.03, 0.1, 0.3, 0.2, 0.4), ("b", 0.1, 0.2, 0.6, 0.55, 0.7), ("c", 0.2, 0.3, 0.61, 0.4, 0.8)],
        columns=["method", "chance", "texts", "share", "share_lo", "share_hi"],
    )
    facts = repeats.seed_facts(pd.concat([spread, spread[:1].assign(method="d", share=np.nan)]))
    assert (facts.methods, facts.seed, facts.texts, facts.share) == (3, 0.1, 0.2, 0.6)
    assert (facts.steadiest, facts.seed_lo, facts.shakiest, facts.seed_hi) == ("a", 0.03, "c", 0.2)
    assert (facts.middle, facts.middle_lo, facts.middle_hi) == ("b", 0.55, 0.7)
    assert (facts.above, facts.below) == (1, 1)


def test_differences_without_a_p_do_not_count():
    differences = pd.DataFrame(dict(p=[0.01, 0.04, 0.5, np.nan], q=[0.03, 0.08, 0.5, np.nan]))
    assert repeats.difference_facts(differences) == (3, 2, 1)


def test_half_facts_compare_another_level_with_other_texts():
    half = pd.DataFrame(
        [("level", 40, 0.66, 0.36, 0.89, 0.3, 0.08, 9), ("texts", 40, 0.32, -0.04, 0.66, 0.02, 0.24, 8)],
        columns=["changed", "n", "rho", "lo", "hi", "same", "loss", "used"],
    ).assign(base="b--t5", source="prompt")
    row = repeats.half_facts(half).loc["b--t5", "prompt"]
    assert (row["n"], row["used"], row["level_rho"]) == (40, 8, "0.66 [0.36, 0.89]")
    assert (row["texts_rho"], row["level_same"], row["texts_loss"]) == ("0.32 [-0.04, 0.66]", 0.3, 0.24)


def test_the_strongest_change_comes_first_and_texts_are_among_them():
    keys = pd.MultiIndex.from_tuples([("t5", "seed"), ("t5", "metric")], names=["base", "changed"])
    moved = repeats.moved_most(pd.DataFrame(dict(by=[0.1, 0.2], texts=[0.15, 0.17]), keys))
    assert moved["t5"].round(3).to_dict() == dict(metric=0.2, texts=0.16, seed=0.1)
