"""What the tests of metrics share."""

import pandas as pd

from uetrust.scoring.metrics import compute_metrics

TEXTS = pd.DataFrame(
    dict(id=["a", "b"], hypothesis=["Rain fell.", "It snowed."], reference=["Rain fell.", "No."])
)


def values(texts, metrics=("rouge_l",), **more):
    return compute_metrics(texts, {}, metrics, progress=False, **more).table
