"""Pieces of the site: a large heat map is cut, and the sentence of a figure needs numbers."""

from pathlib import Path

import pandas as pd

from uetrust.core.settings import root
from uetrust.report.site.pieces import _figure_finding, _heat_table


def test_a_large_heat_map_is_cut_to_what_is_largest():
    wide = pd.DataFrame(0.1, [f"r{i}" for i in range(30)], [f"c{i}" for i in range(20)])
    wide.loc["r17"], wide["c3"] = -0.9, 0.8
    shown = _heat_table(wide)
    assert shown["rows"][0][0] == "r17" and shown["columns"][0] == "c3" and shown["of"] == (30, 20)
    assert _heat_table(wide.iloc[:8, :8]) is None


def test_the_sentence_of_a_figure_needs_numbers():
    assert _figure_finding(pd.DataFrame(dict(a=["x"], b=["y"]))) == ""
    assert Path(root() / "data" / "glossary.csv").exists()
