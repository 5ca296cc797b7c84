"""What the tests of scripts share."""

from functools import cache

import pandas as pd

from uetrust.core.run import ScoreRun, compute_score, required_inputs
from uetrust.scoring.metrics import compute_metrics
from uetrust.scoring.metrics import required_inputs as metric_inputs
from uetrust.statistics.scores import load_scores

reg = load_scores()
# Every method that compares samples by their words alone, and every metric of texts and their sentences alone
METHODS = [name for name in reg.of("ue") if required_inputs(name) == ["sample_texts"]]
TEXTS = {"hypothesis", "source", "reference", "hypothesis_sentences", "source_sentences"}
METRICS = [
    name
    for name in reg.of("nlg")
    if "hypothesis" in str(metric_inputs(name)) and set(metric_inputs(name)) <= TEXTS
]
ALIKE = "The council opened a new bridge over the river."


def table_of(samples):
    "Value and note of every method for one source"
    run = ScoreRun(["x"], reg, sample_texts=[samples])
    return pd.concat([compute_score(run, name) for name in METHODS]).set_index("name")


@cache
def certain():
    return table_of([ALIKE] * 3)["value"]


def graded(hypothesis, other):
    "Value and note of every metric for one text"
    texts = pd.DataFrame(dict(id=["x"], hypothesis=[hypothesis], source=[other], reference=[other]))
    return compute_metrics(texts, {}, METRICS, progress=False).table.set_index("name")
