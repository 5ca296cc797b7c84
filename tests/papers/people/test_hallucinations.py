"""Metrics of XSum's summaries against people."""

import pytest
from scipy.stats import spearmanr

from uetrust.data.hallucinations.xsum import xsum_summaries
from uetrust.papers.people.hallucinations import xsum_agreement


def test_correlations_are_those_of_all_summaries():
    found = xsum_agreement(draws=50).set_index(["metric", "quality"])
    table = xsum_summaries()
    for (metric, quality), row in found.iterrows():
        assert row["value"] == pytest.approx(spearmanr(table[metric], table[quality])[0], abs=1e-12)
        assert row["lo"] < row["value"] < row["hi"] and row["n"] == 1992 and row["documents"] == 498
        assert row["p"] < 0.01
    expected = dict(
        rouge_1=(0.20, 0.12), rouge_l=(0.16, 0.11), bertscore=(0.19, 0.12), entailment=(0.43, 0.26)
    )
    for metric, (faithful, factual) in expected.items():
        assert found.at[(metric, "faithful"), "value"] == pytest.approx(faithful, abs=5e-3)
        assert found.at[(metric, "factual"), "value"] == pytest.approx(factual, abs=5e-3)
