"""Tables of the pages on banks: equal designs stand once, and families have the mean of their cells."""

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.agreement import agreement
from uetrust.papers.bulletins import tables


def test_designs_show_equal_metrics_once():
    rows = [("a", 5, 0.3), ("b", 5, 0.3), ("c", 5, 0.1), ("truth", 5, 0.4)]
    trials = pd.DataFrame(rows, columns=["metric", "n", "true_prr"])
    assert tables.design_rows(trials)["label"].tolist() == ["truth", "a", "c"]


def test_designs_show_the_truth_and_the_24_best_metrics():
    "By the largest studies, at every size."
    trials = [(f"m{k}", n, k / 100 if n == 50 else -k / 100) for n in (5, 50) for k in range(30)]
    trials = pd.DataFrame(
        [*trials, ("truth", 5, 0.0), ("truth", 50, 0.1)], columns=["metric", "n", "true_prr"]
    )
    shown = tables.design_rows(trials)
    best = ["truth", *(f"m{k}" for k in range(29, 5, -1))]
    assert shown["label"].tolist() == [name for name in best for _ in (5, 50)]
    assert shown["series"].tolist() == ["n = 5", "n = 50"] * 25
    assert tables.design_rows(trials, 2)["label"].drop_duplicates().tolist() == ["truth", "m29", "m28"]


def test_a_cell_of_families_is_the_mean_of_its_cells():
    "With their sizes; a missing value does not count, and a name of no family stays alone."
    table = pd.DataFrame(
        dict(rouge_1=[0.2, 0.4, 0.9], rouge_2=[np.nan, 0.6, 0.7], bart_score=[-0.1, 0.1, 0.3]),
        index=["msp", "perplexity", "truth"],
    )
    found = tables.family_means(table)
    assert list(found.index) == ["truth", "information (2)"]
    assert list(found.columns) == ["overlap (2)", "likelihood"]
    np.testing.assert_allclose(found, [[0.8, 0.3], [0.4, 0.0]], atol=1e-12)


def test_the_agreement_of_a_family_leaves_out_each_member_with_itself():
    scores = pd.DataFrame(
        np.random.default_rng(1).normal(size=(30, 3)), columns=["rouge_1", "rouge_2", "bleu"]
    )
    tidy = agreement(scores)
    assert tables.family_agreement(tidy).to_numpy() == pytest.approx(tidy["rho"].mean())


def test_tied_methods_share_the_first_place():
    ranks = pd.DataFrame(
        [
            ("truth", "a", 0.5, 1.5, 1.5, 1.5),
            ("truth", "b", 0.5, 1.5, 1.5, 2.0),
            ("truth", "c", 0.1, 3, 2, 3),
        ],
        columns=["judged_by", "method", "value", "rank", "rank_lo", "rank_hi"],
    )
    first = tables.first_ranked(ranks)
    assert first[["method", "could_be_first"]].values.tolist() == [["a", 2]]


def test_beyond_facts_count_methods_on_all_generators_and_on_some():
    every = pd.DataFrame(
        [("bart", "a", 0.01), ("t5", "a", 0.01), ("bart", "b", 0.9), ("t5", "b", 0.01), ("t5", "c", 0.01)]
        + [("bart", "c", None)],
        columns=["generator", "method", "q"],
    )
    facts = tables.beyond_facts(every)
    assert (facts.methods, facts.computed, facts.common) == (3, 3, 2)
    assert (facts.common_beyond, facts.everywhere, facts.somewhere) == (1, 2, 3)


def test_a_baseline_is_not_the_best_method_of_a_generator():
    every = pd.DataFrame(
        [("t5", "output_length", 0.9), ("t5", "msp", 0.5), ("t5", "mte", 0.4), ("t5", "md", None)],
        columns=["generator", "method", "prr"],
    ).assign(n=8, in_set=[None, True, True, None])
    row = tables.best_by_generator(every).loc["t5"]
    assert (row["best"], row["prr"], row["methods"], row["alike"], row["length"]) == ("msp", 0.5, 2, 1, 0.9)
