"""Stored studies of few labels: what is read of them is what the tables hold."""

import numpy as np
import pytest

from uetrust.papers.people import label_studies as studies


def test_labels_alone_need_as_many_as_give_the_same_width():
    "The width of a mean of n of N texts goes with the root of 1/n - 1/N"
    table = studies.kept_coverage()
    for row in table.sample(50, random_state=0).itertuples():
        alone, needed = (1 / n - 1 / row.texts for n in (row.n, row.needed))
        assert np.sqrt(needed / alone) == pytest.approx(row.ratio, rel=1e-9)
    assert studies._labels_needed(20, 100, 0.5) == pytest.approx(50)
    assert (table["needed"] <= table["texts"]).all() and (table["ratio"] > 0).all()


def test_a_table_that_is_not_there_names_the_command(tmp_path):
    with pytest.raises(FileNotFoundError, match="make bench PART=coverage"):
        studies.kept_table(tmp_path / "coverage.csv")


def test_the_facts_and_the_sizes_are_those_of_the_cells():
    table = studies.kept_coverage()
    found, by_size = table["coverage_metrics"], studies.coverage_by_size(table)
    assert by_size["cells"].sum() == len(table) and by_size["lowest_metrics"].min() == found.min()
    facts = studies.interval_coverage_facts(table)
    assert (facts.cells, facts.lowest, facts.highest) == (len(table), found.min(), found.max())
    assert (facts.below, facts.above) == ((found < 0.93).sum(), (found > 0.97).sum())
    alone = table["coverage_alone"]
    assert facts.alone_outside == ((alone < 0.93) | (alone > 0.97)).sum()
    outside = studies.outside_coverage(table)["coverage_metrics"]
    assert len(outside) == ((found < 0.93) | (found > 0.97)).sum() and not outside.between(0.93, 0.97).any()


def test_a_cell_far_outside_is_named():
    table = studies.kept_coverage().head(2).assign(coverage_metrics=[0.8, 0.95])
    (name,) = studies.interval_coverage_facts(table).beyond
    assert name == "en-de prr msp n = 25 (80.0%)"


def test_saved_labels_are_those_of_single_methods():
    table = studies.kept_coverage()
    found = studies.saved_labels(table, 100)
    kept = table[(table["n"] == 100) & ~table["target"].str.contains("difference|less", regex=True)]
    assert found["needed"].tolist() == kept[kept["target"].str.startswith("prr ")]["needed"].tolist()
    assert found["bank"].is_unique and set(found["judge"]) == {"people", "bulletins"}


def test_variants_are_counted_by_target():
    table = studies.kept_table(studies.variants_path())
    found = studies.variant_coverage(table).set_index("target")
    auroc = table[table["target"].str.startswith("auroc")]
    assert found.loc["AUROC", "cells"] == len(auroc)
    assert found.loc["AUROC", "lowest"] == auroc["coverage_metrics"].min()
    assert found["cells"].sum() == len(table)


def test_gains_are_counted_by_their_interval():
    table = studies.kept_table(studies.chooser_path())
    facts = studies.chooser_facts(table)
    assert (facts.better, facts.worse) == ((table["lo"] > 1).sum(), (table["hi"] < 1).sum())
    assert facts.gain == table["gain"].median() and facts.coverage[0] == table["coverage_chosen"].min()
