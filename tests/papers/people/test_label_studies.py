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


def test_the_sentence_and_the_sizes_are_those_of_the_cells():
    table = studies.kept_coverage()
    found, by_size = table["coverage_metrics"], studies.coverage_by_size(table)
    assert by_size["cells"].sum() == len(table) and by_size["lowest_metrics"].min() == found.min()
    said = studies.interval_coverage_sentence(table)
    assert (
        f"In {len(table)} cells" in said and f"in {found.min():.1%} to {found.max():.1%} of studies" in said
    )
    outside = studies.outside_coverage(table)["coverage_metrics"]
    assert len(outside) == ((found < 0.93) | (found > 0.97)).sum() and not outside.between(0.93, 0.97).any()
