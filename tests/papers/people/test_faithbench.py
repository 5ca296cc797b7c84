"""FaithBench read as a study: recorded AUC, metrics of the source, and selection by disagreement."""

import pytest

from tests.helpers.regret import real
from uetrust.data import faithbench as loader
from uetrust.evaluation.pairs import auroc
from uetrust.papers.people.faithbench import disagreement_simulation, faithbench_scores, twice_auc


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
