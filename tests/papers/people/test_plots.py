"""Plots of regret show every pair, metric and yardstick where it belongs."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from uetrust.papers.people import plots as figures


def rows_of(pairs, metrics, sizes=(50,), held_out=True):
    "Regret of every metric on every pair, each a number of its own, with an interval of 0.01 on both sides."
    rows = [
        dict(pair=pair, n=n, held_out=held_out, metric=metric, value=0.1 * i + 0.02 * k + 0.001 / n)
        for i, pair in enumerate(pairs)
        for n in sizes
        for k, metric in enumerate(metrics)
    ]
    return pd.DataFrame(rows).assign(lo=lambda d: d["value"] - 0.01, hi=lambda d: d["value"] + 0.01)


def test_regret_of_a_pair_stands_in_its_row_and_a_mark_on_its_interval():
    rows = rows_of(["a-b", "c-d"], ["random", "people", "hter", "chrf"])
    ax = figures.plot_regret(rows, "Title")
    value = rows.set_index(["metric", "pair"])["value"]
    marks = {one.get_label(): one for one in ax.collections if not one.get_label().startswith("_")}
    for metric in ("hter", "chrf"):
        at = marks[metric].get_offsets()
        assert at[:, 0].tolist() == value[metric].tolist() and at[:, 1].round().tolist() == [0, 1]
        (interval,) = (
            one
            for one in ax.collections
            if hasattr(one, "get_segments") and one.get_segments()[0][0, 1] == pytest.approx(at[0, 1])
        )
        ends = [segment[:, 0].tolist() for segment in interval.get_segments()]
        assert np.allclose(ends, rows.loc[rows["metric"] == metric, ["lo", "hi"]])
        assert marks[metric].get_zorder() > interval.get_zorder() > marks["a random method"].get_zorder()
    for label, metric in {"a random method": "random", "people, the same texts": "people"}.items():
        places = [segment[:, 0].tolist() for segment in marks[label].get_segments()]
        assert places == [[x, x] for x in value[metric]]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a-b", "c-d"] and ax.yaxis_inverted()
    plt.close(ax.figure)


def test_four_panels_stand_side_by_side_unless_another_number_is_given():
    "Panels without a pair are not shown."
    for count, options, columns in ((5, dict(), 4), (2, dict(columns=1), 1)):
        rows = rows_of([f"{one}-en" for one in "abcde"[:count]], ["people", "random", "hter"], (50, 100))
        figure = figures.plot_regret_by_size(rows, **options)
        shown = [ax for ax in figure.axes if ax.get_visible()]
        assert [ax.get_title() for ax in shown] == list(dict.fromkeys(rows["pair"]))
        assert {ax.get_subplotspec().get_gridspec().ncols for ax in shown} == {columns}
        for ax, (_, part) in zip(shown, rows.groupby("pair")):
            lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
            assert set(lines) == {"hter", "a random method", "people, the same texts"}
            assert lines["hter"] == part[part["metric"] == "hter"][["n", "value"]].to_numpy().tolist()
        plt.close(figure)


@pytest.mark.parametrize("pairs", [["a-en", "b-en", "c-en"], ["a-en", "b-en", "c-en", "pooled"], ["a-en"]])
def test_a_pair_has_a_line_over_the_judges_in_a_colour_of_its_own(pairs):
    "Only the mean of the pairs is black."
    ax = figures.plot_judges(rows_of(pairs, ["people_2", "people_10", "people_1", "random"]))
    assert [line.get_label() for line in ax.lines] == pairs
    for i, line in enumerate(ax.lines):
        assert line.get_xdata().tolist() == [1, 2, 10]
        assert line.get_ydata() == pytest.approx(np.array([0.04, 0.0, 0.02]) + 0.1 * i + 0.00002)
    colours = {line.get_label(): to_hex(line.get_color()) for line in ax.lines}
    assert len(set(colours.values())) == len(pairs)
    assert {pair for pair in pairs if colours[pair] == "#000000"} == {"pooled"} & set(pairs)
    plt.close(ax.figure)
