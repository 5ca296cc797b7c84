"""Figures: nothing is cut at their edges, and frames and bands say what they promise."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from uetrust.report.plots import plot_agreement, plot_interval_panels, plot_spread, save_figure


@pytest.mark.parametrize("layout", [None, "tight", "constrained"])
def test_a_figure_is_not_cut_at_its_edges(tmp_path, layout):
    "Long labels on all sides, which a layout moves before it draws"
    from matplotlib.pyplot import subplots

    fig, axes = subplots(1, 2, figsize=(6, 2), layout=layout)
    for ax in axes:
        ax.set(ylabel="a label that is longer\nthan its axis is high", xlabel="x", yticks=[-1000.25, 0])
    fig.suptitle("Above\nthe panels")
    fig.legend(
        *[[axes[0].plot([0, 1])[0]], ["one"]], loc="outside lower center" if layout else "lower center"
    )
    save_figure(fig, tmp_path / "figure")
    ink = np.asarray(Image.open(tmp_path / "figure.png").convert("L")) < 250
    assert ink.any() and not any(edge.any() for edge in (ink[0], ink[-1], ink[:, 0], ink[:, -1]))


@pytest.mark.parametrize("size", [4, 33])
def test_pairs_that_pass_alone_are_framed_dotted_and_after_correction_solid_and_wider(size):
    from matplotlib.pyplot import close

    pairs = [(f"m{i}", f"m{k}", 0.3, 9, 0.6, 0.8) for k in range(size) for i in range(k)]
    tidy = pd.DataFrame(pairs, columns=["label_a", "label_b", "rho", "n", "p", "q"])
    tidy.loc[:1, ["p", "q"]] = [[0.01, 0.04], [0.02, 0.03]]
    tidy.loc[2:4, "p"] = 0.04
    ax = plot_agreement(tidy)
    frames = {patch.get_linestyle(): patch for patch in ax.patches}
    boxes = {style: len(patch.get_path().vertices) // 5 for style, patch in frames.items()}
    assert boxes == {"-": 2, ":": 3} and len(ax.patches) == 2
    assert frames["-"].get_linewidth() > frames[":"].get_linewidth() > 0
    close(ax.figure)


def test_the_band_of_random_orders_reaches_196_standard_deviations_to_both_sides():
    from matplotlib.pyplot import close

    ax = plot_spread(pd.DataFrame(dict(msp=[0.3, 0.1], mte=[-0.1, 0.2]), index=["rouge_l", "bleu"]), 0.05)
    (band,) = ax.patches
    ends = band.get_window_extent().transformed(ax.transData.inverted())
    assert (ends.y0, ends.y1) == pytest.approx((-0.098, 0.098))
    assert band.get_label() == "95 % of random orders"
    heights = np.concatenate([dots.get_offsets()[:, 1] for dots in ax.collections])
    assert sorted(heights) == pytest.approx([-0.1, 0.1, 0.2, 0.3])
    close(ax.figure)


def test_a_dot_stands_beside_its_label_in_every_panel():
    "Panels that lack a label or a series keep the places and the colours of the others."
    from matplotlib.pyplot import close

    rows = [
        ("a", "x", "left"),
        ("b", "x", "left"),
        ("b", "y", "left"),
        ("c", "y", "left"),
        ("c", "y", "right"),
    ]
    df = pd.DataFrame(rows, columns=["label", "series", "group"]).assign(value=[0, 1, 2, 3, 4], lo=0, hi=5)
    fig = plot_interval_panels(df)
    left, right = fig.axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["a", "b", "c"]

    def dots(ax):
        drawn = [part for part in ax.collections if hasattr(part, "get_sizes") and len(part.get_offsets())]
        return {
            (float(x), round(float(y))): tuple(part.get_facecolor()[0])
            for part in drawn
            for x, y in part.get_offsets()
        }

    assert set(dots(right)) == {(4.0, 2)} and dots(right)[4.0, 2] == dots(left)[3.0, 2]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["x", "y"]
    close(fig)
