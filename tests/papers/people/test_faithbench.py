"""FaithBench read as a study: recorded AUC, metrics of the source, and selection by disagreement."""

import pandas as pd
import pytest

from tests.helpers.regret import real
from uetrust.data import faithbench as loader
from uetrust.evaluation.pairs import auroc
from uetrust.papers.people.faithbench import (
    detector_facts,
    disagreement_simulation,
    faithbench_scores,
    twice_auc,
)


@real
def test_faithbench_has_the_recorded_auc():
    "2 AUC - 1 for any unwanted span, recorded with other code: .223, .124, .121 (length), .006."
    table = loader.faithbench()
    detectors = table.set_index("sample")[["hhem-2.1-english", "gpt_4o", "true_nli"]]
    scores = detectors.assign(fewer_words=-table.set_index("sample")["summary"].str.split().str.len())
    errors, documents = (table.set_index("sample")[name] for name in ("unwanted", "document"))
    found = twice_auc(errors, scores, documents, draws=200).set_index("score")
    expected = {"hhem-2.1-english": 0.223, "gpt_4o": 0.124, "fewer_words": 0.121, "true_nli": 0.006}
    for name, value in expected.items():
        assert found.at[name, "value"] == pytest.approx(value, abs=5.1e-4), name
    best = detectors["hhem-2.1-english"]
    assert found.at[best.name, "value"] == pytest.approx(
        2 * auroc(1 - errors.astype(int), -best) - 1, abs=1e-9
    )
    assert found.at[best.name, "lo"] == pytest.approx(0.141, abs=0.03)
    assert found.at[best.name, "hi"] == pytest.approx(0.303, abs=0.03)


@real
def test_metrics_of_the_source_join_the_detectors():
    scores = faithbench_scores(loader.faithbench().head(20))
    assert {"rouge_l_true", "bleu_4_true", "fewer_words", *loader.FAITHBENCH_DETECTORS} <= set(scores)


def test_selection_by_disagreement_pulls_detectors_down():
    made = disagreement_simulation(n=6000).pivot(index="detector", columns="share", values="value")
    assert (made[0.05] < made[1.0]).all() and (made[0.2] < made[1.0]).all()


def test_detectors_are_compared_with_the_length():
    "Metrics are no detectors; one detector has its whole interval above the value of the length."
    rows = [
        ("rouge_l_true", 0.9, 0.8),
        ("hhem-2.1", 0.5, 0.3),
        ("gpt_4o", 0.4, 0.1),
        ("fewer_words", 0.2, 0.0),
    ]
    table = pd.DataFrame(rows, columns=["score", "value", "lo"]).assign(hi=1.0, n=750, errors=439)
    facts = detector_facts(table)
    assert facts[:3] == (750, 439, 2) and facts.above == 1
    assert facts.overlapping == 1
    assert (facts.best, facts.worst) == ("hhem-2.1", "gpt_4o")
    assert facts.length == "0.200 [0.000, 1.000]"
