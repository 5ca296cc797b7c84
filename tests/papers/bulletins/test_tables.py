"""Tables of the pages on banks: equal designs stand once."""

import pandas as pd

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
