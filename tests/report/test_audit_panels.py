"""Audit panels: what the choice of each metric costs."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.audit_edges import pairs
from uetrust.report import audit as page
from uetrust.report.audit import Audited
from uetrust.report.audit_panels import best_methods


def test_picks_say_what_the_choice_of_each_metric_costs():
    rows = [
        ("a", "main", 0.5),
        ("b", "main", 0.2),
        ("a", "x", 0.1),
        ("b", "x", 0.3),
        ("a", "y", 0.4),
        ("b", "y", 0.1),
    ]
    rows += [("a", "none", np.nan), ("b", "none", np.nan)]
    table = pd.DataFrame(rows, columns=["method", "metric", "value"])
    picks = page.picks_by_metric(table, "main").set_index("metric")
    assert picks.to_dict("index") == dict(
        x=dict(pick="b", value=0.2, loss=pytest.approx(0.3)), y=dict(pick="a", value=0.5, loss=0)
    )
    assert len(page.picks_by_metric(table, "none")) == 0


def test_the_costliest_pick_is_named():
    quality, unsure = pairs(60, 1)
    found = Audited(pd.DataFrame(dict(q=quality)), pd.DataFrame(unsure), "q")
    rows = [("u0", "q", 0.9, 0.1), ("b", "q", 0.5, 0.1), ("c", "q", 0.7, 0.1)]
    rows += [("u0", "x", 0.1, 0.1), ("b", "x", 0.8, 0.1), ("c", "x", 0.2, 0.1)]
    rows += [("u0", "y", 0.1, 0.1), ("b", "y", 0.2, 0.1), ("c", "y", 0.9, 0.1)]
    rows += [("u0", "z", 0.9, 0.1), ("b", "z", 0.2, 0.1), ("c", "z", 0.1, 0.1)]
    found.__dict__["prr"] = pd.DataFrame(rows, columns=["method", "metric", "value", "null_sd"])
    found.__dict__["compared"] = type("Best", (), dict(best=["u0"]))
    sentence = "'u0 is the best method': under x it is b, and the choice costs 0.40 under q."
    assert page.not_quotable(found) == sentence


def test_the_panel_of_best_methods_shows_who_is_first_and_what_the_lead_is_worth():
    quality, unsure = pairs(80, 3)
    audited = Audited(pd.DataFrame(dict(q=quality)), pd.DataFrame(unsure), "q")
    panel, found = best_methods(audited), audited.compared
    pd.testing.assert_frame_equal(panel.table, found.table)
    first = found.table.iloc[0]
    assert panel.sentence.startswith(f"{first['method']} is first with {first['value']:.3f} (se ")
    assert found.phrase() in panel.sentence and f"it has {first['shrunken']:.3f}" in panel.sentence
    assert f"the winner has {found.held_out:.3f} on the other (mean of 50 halvings" in panel.sentence


def test_there_is_no_panel_of_best_methods_where_none_can_be_compared():
    quality, unsure = pairs(9, 3)
    assert best_methods(Audited(pd.DataFrame(dict(q=quality)), pd.DataFrame(unsure), "q")) is None
    quality, unsure = pairs(80, 1)
    assert best_methods(Audited(pd.DataFrame(dict(q=quality)), pd.DataFrame(unsure), "q")) is None
