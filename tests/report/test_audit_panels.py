"""Audit panels: what the choice of each metric costs."""

from html import unescape

import numpy as np
import pandas as pd
import pytest

from tests.helpers.audit_edges import pairs
from uetrust.evaluation.units import between_prr, within_auroc
from uetrust.report.audit import audit, not_quotable
from uetrust.report.audit_panels import agreement_with_main, best_methods
from uetrust.report.pitfalls import Audited, picks_by_metric


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
    picks = picks_by_metric(table, "main").set_index("metric")
    assert picks.to_dict("index") == dict(
        x=dict(pick="b", value=0.2, loss=pytest.approx(0.3)), y=dict(pick="a", value=0.5, loss=0)
    )
    assert len(picks_by_metric(table, "none")) == 0


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
    assert not_quotable(found) == sentence


def test_the_panel_of_best_methods_shows_who_is_first_and_what_the_lead_is_worth():
    quality, unsure = pairs(80, 3)
    audited = Audited(pd.DataFrame(dict(q=quality)), pd.DataFrame(unsure), "q")
    panel, found = best_methods(audited), audited.compared
    ends = dict(lo="difference_lo", hi="difference_hi")  # The value does not lie between them
    pd.testing.assert_frame_equal(panel.table, found.table.rename(columns=ends))
    first = found.table.iloc[0]
    assert panel.sentence.startswith(f"{first['method']} is first with {first['value']:.3f} (se ")
    assert found.phrase() in panel.sentence and f"it has {first['shrunken']:.3f}" in panel.sentence
    assert f"the winner has {found.held_out:.3f} on the other (mean of 50 halvings" in panel.sentence


def test_there_is_no_panel_of_best_methods_where_none_can_be_compared():
    quality, unsure = pairs(9, 3)
    assert best_methods(Audited(pd.DataFrame(dict(q=quality)), pd.DataFrame(unsure), "q")) is None
    quality, unsure = pairs(80, 1)
    assert best_methods(Audited(pd.DataFrame(dict(q=quality)), pd.DataFrame(unsure), "q")) is None


def test_agreement_of_metrics_has_an_interval_by_documents():
    "Fisher's interval of Spearman by hand; three rows of each document make it wider by about the root of 3"
    rng = np.random.default_rng(0)
    q = rng.normal(size=120)
    quality = pd.DataFrame(dict(q=q, near=q + 0.5 * rng.normal(size=120), far=rng.normal(size=120), flat=1.0))
    alone = agreement_with_main(Audited(quality, pd.DataFrame(dict(u=-q)), "q"))
    row = alone.table.iloc[0]
    rho = quality[["q", "near"]].corr("spearman").iloc[0, 1]
    half = 1.96 * np.sqrt((1 + rho**2 / 2) / 117)
    assert list(alone.table["metric"]) == ["near", "far"] and row["spearman"] == pytest.approx(rho)
    assert row["lo"] == pytest.approx(np.tanh(np.arctanh(rho) - half)) and row["n"] == 120
    assert "near orders the texts most like q" in alone.sentence and "far least" in alone.sentence
    documents = pd.Series(np.arange(120) // 3)
    grouped = agreement_with_main(Audited(quality, pd.DataFrame(dict(u=-q)), "q", document=documents))
    assert grouped.table["lo"].iloc[0] < row["lo"] and grouped.table["hi"].iloc[0] > row["hi"]
    assert agreement_with_main(Audited(quality[["q"]], pd.DataFrame(dict(u=-q)), "q")) is None


def claims(texts=30, units=6):
    rng, text = np.random.default_rng(0), np.repeat(np.arange(texts), units)
    right = (rng.random(len(text)) < rng.uniform(0.2, 0.9, texts)[text]).astype(float)
    table = dict(doc=text, sentence=[f"Text {i}." for i in range(len(text))], human=right)
    scores = dict(msp=rng.normal(size=len(text)) - 2 * right, n_words=rng.integers(3, 9, len(text)))
    return pd.DataFrame(table | scores)


def test_rows_that_are_sentences_are_audited_within_and_between_texts():
    table = claims()
    found = audit(table)
    uses = found.columns.uses.set_index("column")["use"]
    assert (uses["sentence"], uses["doc"]) == ("unit", "document")
    panel = found.panels["within_and_between"]
    shown = panel.table.set_index("method")
    assert set(shown.index) == {"msp", "n_words"}
    inside = within_auroc(table["human"], table["msp"], table["doc"])
    across = between_prr(table["human"], table["msp"], table["doc"])
    assert shown.at["msp", "within"] == inside.value and shown.at["msp", "within_texts"] == inside.texts
    assert shown.at["msp", "between"] == across.value and shown.at["msp", "between_p"] == across.p
    said = (
        f"Sentences within texts by msp: AUROC {inside.value:.2f} (0.5 at random), 95 % interval "
        f"{inside.lo:.2f} to {inside.hi:.2f}, p < .001, {inside.texts} texts. Between texts: PRR "
    )
    assert panel.sentence.startswith(said) and panel.sentence in found.verdict
    assert "orders these 180 sentences of 30 texts" in found.verdict[0]
    assert "random orders of whole texts give" in found.quote
    for form in (str(found), unescape(found.page())):
        assert "AUROC within texts" in form and "PRR between texts" in form and said in form
    assert len(found.brief().splitlines()) <= 15 and said in found.brief()


def test_rows_without_a_unit_or_without_its_text_have_no_such_section():
    for table in (claims().drop(columns="sentence"), claims().drop(columns="doc")):
        found = audit(table)
        assert "within_and_between" not in found.panels and "within texts" not in str(found) + found.page()


def test_texts_with_one_label_each_are_said_to_have_nothing_within():
    table = claims().assign(human=lambda df: df["doc"] % 2)
    said = audit(table).panels["within_and_between"].sentence
    assert "no AUROC (none of 30 texts has units of different quality: there is nothing to rank)" in said
