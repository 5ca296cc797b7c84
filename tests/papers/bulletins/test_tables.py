"""Tables of the pages on banks: equal designs stand once."""

import pandas as pd

from uetrust.papers.bulletins import tables


def test_designs_show_equal_metrics_once():
    rows = [("a", 5, 0.3), ("b", 5, 0.3), ("c", 5, 0.1), ("truth", 5, 0.4)]
    trials = pd.DataFrame(rows, columns=["metric", "n", "true_prr"])
    assert tables.design_rows(trials)["label"].tolist() == ["truth", "a", "c"]
