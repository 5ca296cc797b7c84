"""Figures: nothing is cut at their edges."""

import numpy as np
import pytest
from PIL import Image

from uetrust.report.plots import save_figure


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
