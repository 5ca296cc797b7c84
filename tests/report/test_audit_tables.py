"""Tables of an audit as people read them: headings, whole counts, intervals, legends, merged findings."""

import numpy as np
import pandas as pd
import pytest

from uetrust.report.audit import audit
from uetrust.report.audit_tables import INTERVALS, MEANINGS, merged_findings, number_text, shown_table


def test_every_panel_has_a_heading_for_every_column():
    "A label with gaps, a judge, a metric, a length: all panels but those that need other data"
    rng = np.random.default_rng(0)
    right = rng.random(300) < 0.7
    df = pd.DataFrame(dict(human=np.where(np.arange(300) < 200, right, np.nan)))
    df["judge"] = np.where(rng.random(300) < 0.9, right, ~right).astype(float)
    df["rouge"], df["words"] = right + rng.normal(size=300), rng.integers(5, 90, 300)
    df["u"], df["v"] = rng.normal(size=300) - right, rng.normal(size=300) - right
    found = audit(df, quality=["human", "judge", "rouge"], uncertainty=["u", "v"], length="words")
    assert len(found.panels) >= 11
    for name, panel in found.panels.items():
        shown = shown_table(panel.table, name)
        assert all(len(row) == len(shown.headings) for row in shown.rows) and shown.legend.endswith(".")
    with pytest.raises(KeyError, match="unheard"):
        shown_table(pd.DataFrame(dict(unheard=[1])))
    assert set(INTERVALS) <= set(MEANINGS)


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("n", 3602.0, "3,602"),
        ("value", -0.0004, "0.000"),
        ("value", -0.0006, "-0.001"),
        ("value", np.nan, "-"),
        ("p", 0.0004, "<0.001"),
        ("p", 0.0006, "0.001"),
        ("value", 0.0004, "0.000"),
        ("threshold", 1234.56, "1235"),
        ("in_set", np.True_, "yes"),
        ("note", "", "-"),
    ],
)
def test_numbers_are_written_for_people(name, value, text):
    assert number_text(name, value) == text


def test_an_interval_is_one_column_and_that_of_a_difference_says_so():
    table = pd.DataFrame(dict(method=["u"], value=[0.4], difference_lo=[-0.1], difference_hi=[0.3], n=[40]))
    shown = shown_table(table)
    headings = [heading for heading, _ in shown.headings]
    assert headings == ["method", "PRR", "95 % interval of the difference", "texts"]
    assert shown.rows == [["u", "0.400", "-0.100 to 0.300", "40"]]
    assert [text for _, text in shown.headings] == [True, False, False, False]
    open_above = pd.DataFrame(dict(texts=[9.0], texts_lo=[5.0], texts_hi=[np.nan]))
    assert shown_table(open_above).rows == [["9", "5 to no bound"]]


def test_the_legend_depends_on_the_panel_and_long_tables_are_cut():
    rows = pd.DataFrame(dict(value=np.linspace(0, 1, 150)))
    shown = shown_table(rows, "next_study")
    assert (shown.headings[0][0], len(shown.rows), shown.count) == ("difference of PRR", 100, 150)
    assert "a random order" in shown_table(rows).legend and shown.legend == ""


def test_findings_of_one_kind_are_merged_and_keep_their_order():
    rows = [("b", "B", ["x"], "First"), ("a", "A", [], "Alone."), ("b", "B", ["y"], "Second")]
    frame = pd.DataFrame(rows, columns=["pitfall", "title", "columns", "sentence"]).assign(lesson="l")
    first, second = merged_findings(frame)
    assert first.title == "B (2 times)" and first.sentence == "First. The same holds for y."
    assert first.all == ["First", "Second"] and (second.title, second.sentence) == ("A", "Alone.")
    assert merged_findings(frame.iloc[:0]) == []
