"""The audit's panel on definitions of PRR: every value on one scale, and sentences that name the extremes."""

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.definitions import PRR_DEFINITIONS
from uetrust.evaluation.prr import prr
from uetrust.report.audit_atlas import (
    _atlas_sentence,
    atlas_values,
    case_differences,
    orders_sentence,
    placed_tables,
    plot_atlas,
    stored_cases,
)


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(4)
    quality = rng.random(80)
    return quality, -quality + rng.normal(size=80)


def test_all_definitions_are_on_the_scale_on_which_1_is_perfect(scores):
    quality, uncertainty = scores
    table = atlas_values(quality, uncertainty).set_index("definition")
    assert table.loc["uetrust", "prr"] == pytest.approx(prr(quality, uncertainty).value)
    perfect = atlas_values(quality, -quality).set_index("definition")["prr"]
    assert perfect["uetrust"] == 1 and perfect.max() < 1.5 and len(table) > 5
    percent = [name for name, known in PRR_DEFINITIONS.items() if known.percent and name in table.index]
    for name in percent:
        value = prr(quality, uncertainty, compat=name).value
        assert table.loc[name, "prr"] == pytest.approx(value / 100)


def test_the_sentence_names_the_lowest_and_the_highest(scores):
    table, found = atlas_values(*scores), prr(*scores)
    sentence = _atlas_sentence(table, "msp", "human", found)
    others = table[table["definition"] != "uetrust"].set_index("definition")["prr"]
    assert f"{found.value:.3f} [{found.lo:.3f}, {found.hi:.3f}] on 80 texts" in sentence
    assert sentence.endswith(
        f"from {others.min():.3f} ({others.idxmin()}) to {others.max():.3f} ({others.idxmax()})"
    )


def test_orders_are_counted_against_the_first_definition():
    values = pd.DataFrame(dict(u=[0.5, 0.6, 0.1], v=[0.4, 0.3, 0.2]), ["ours", "same", "other"])
    sentence = orders_sentence(values, 1200)
    assert "scores of u on the same 1,200 texts have a PRR of 0.100 by one definition (other)" in sentence
    assert (
        "of 0.600 by another (same)" in sentence and "1 of the 2 definitions order the 2 methods" in sentence
    )


def test_every_definition_is_as_near_to_its_source_as_the_atlas_says():
    table = case_differences().set_index("definition")
    assert set(table.index) == set(PRR_DEFINITIONS) and (table["cases"] > 0).all()
    assert (table["largest_difference"] < 1e-6).all() and len(stored_cases()["cases"]) >= table["cases"].max()


def test_printed_tables_are_placed_at_definitions_that_are_known():
    named = {
        name
        for text in placed_tables()["definition"].dropna()
        for name in PRR_DEFINITIONS
        if name in str(text)
    }
    assert named and placed_tables()["url"].str.startswith("https://").all()


def test_a_figure_has_a_line_of_dots_for_every_definition():
    import matplotlib.pyplot as plt

    values = pd.DataFrame(dict(u=[0.5, 0.6], v=[0.4, 0.3]), ["ours", "same"])
    axes = plot_atlas(values)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ours", "same"]
    assert [list(line.get_xdata()) for line in axes.lines[:2]] == [[0.5, 0.6], [0.4, 0.3]]
    plt.close("all")
