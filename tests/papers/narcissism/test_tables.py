"""Tables and facts of the self-bias study: what the pages state of panels, judges and people."""

import numpy as np
import pandas as pd
import pytest

from uetrust.nlg.likelihood import NarcissismModel
from uetrust.papers.narcissism import live as live
from uetrust.papers.narcissism import tables


def test_a_writer_of_empty_texts_leaves_a_note_and_no_number(judges, texts, tmp_path):
    two = {name: judges[name] for name in ("tiny-llama", "tiny-bart")}
    silent = texts.assign(hypothesis=texts["hypothesis"].where(texts["generator"] != "tiny-llama", ""))
    panels, left_out = tables.panels_by_dataset(dict(bulletin=silent), two, tmp_path)
    key = ("bulletin", "reference-free")
    assert panels[key].empty and len(left_out[key]) == 4
    facts = tables.panel_facts(panels, two, left_out, draws=50)[0]
    assert (facts.dataset, facts.form, facts.left_out, facts.relatives) == (*key, 4, {})
    assert facts.bias["documents"] == 0 and np.isnan(facts.bias["value"]) and np.isnan(facts.bias["p"])
    note = "none of 4 documents has every score: summaries without one are 4 of tiny-llama"
    assert facts.bias["note"] == note
    each = tables.judge_by_judge(panels, dict(bulletin=silent), {})
    assert list(each["evaluator"].unique()) == list(two) and each["residual"].isna().all()
    assert {one.tested for one in tables.judge_facts(each)} == {0}
    assert tables.plot_panel(panels[key], left_out[key]).texts


def test_a_panel_has_the_self_bias_and_the_relatives_of_its_own_scores():
    names = ["BART-a", "BART-b", "T5-a"]
    index = pd.MultiIndex.from_product([range(20), names], names=["document", "generator"])
    noise = np.random.default_rng(0).normal(size=(20, 3, 3)) + 1.5 * np.eye(3)
    scores = pd.DataFrame(noise.reshape(60, 3), index, names)
    judges = {name: NarcissismModel("", name[:-2], "", "", "", "score", "reference_score") for name in names}
    panels = {("toy", "reference-free"): scores, ("toy", "reference-based"): -scores}
    first, second = tables.panel_facts(panels, judges, dict.fromkeys(panels, {}), 50, 3)
    assert first.bias == live.self_bias(scores, 50, 3) and first.bias["value"] > 0 > second.bias["value"]
    assert first.relatives == live.family_effects(scores, judges) and list(first.relatives) == ["family"]


def test_judges_are_counted_by_panel():
    each = pd.DataFrame(
        dict(
            dataset=["a", "a", "a", "b"],
            form="reference-free",
            evaluator=list("xyzx"),
            residual=[0.1, np.nan, 0.2, 0.3],
            holm_documents=[0.049, np.nan, 0.05, 0.01],
            length_spearman=[0.2, -0.1, 0.0, 0.4],
            difference=[0.5, np.nan, -0.2, np.nan],
        )
    )
    first, second = tables.judge_facts(each)
    assert first == ("a", "reference-free", 3, 2, 1, 1, -0.1, 0.2, dict(x=0.5, z=-0.2))
    assert second == ("b", "reference-free", 1, 1, 1, 1, 0.4, 0.4, {})
    assert tables.judge_facts(each.drop(columns="difference"))[0].undeserved == {}


def test_best_and_worst_judges_are_those_of_each_benchmark_by_spearman():
    about = dict(
        benchmark=["rose"] * 3 + ["summeval"] * 2, form="reference-free", within=[0, 0.1, 0.2, 0.3, 0.4]
    )
    table = pd.DataFrame(about | dict(evaluator=list("xyzxy"), value=[0.1, 0.3, 0.2, 0.9, 0.8]))
    other = table.assign(coefficient="kendall", value=-table["value"])
    facts = tables.people_facts(pd.concat([table.assign(coefficient="spearman"), other]))
    assert facts == [
        ("rose", "reference-free", 3, "y", 0.3, 0.1, "x", 0.1),
        ("summeval", "reference-free", 2, "x", 0.9, 0.3, "y", 0.8),
    ]


def test_gaps_of_documents_without_spread_are_exact():
    index = pd.MultiIndex.from_product([range(3), tables.SYSTEMS], names=["document", "generator"])
    rows = pd.DataFrame(dict(human=[5.0, 4, 3] * 3, words=[30.0, 20, 40] * 3), index)
    gaps = tables.system_gaps(rows, 10)
    assert gaps["human"].to_numpy().tolist() == [[1, 1, 1], [2, 2, 2], [1, 1, 1]]
    own = tables.own_gaps(rows, 10)
    assert own.loc["BART", "human_gap"] == pytest.approx(1.5 * np.sqrt(1.5))
    assert tables.length_correlation(rows) == pytest.approx(-0.5)


def test_printed_correlations_have_a_summary_for_each_number_of_pairs():
    printed = tables.printed_by_evaluator()
    table = tables.printed_tests(printed, draws=50)
    summary = tables.tests_summary(table)
    assert printed.shape == (20, 4) and len(tables.family_lines(table)) == 40
    assert summary["n"].tolist() == [100, 200] * 2 + [100, 300] * 2
    rows = table.query("benchmark == 'SummEval reference-free' and coefficient == 'spearman' and n == 100")
    found = summary.query("benchmark == 'SummEval reference-free' and coefficient == 'spearman'").iloc[0]
    assert (found["best"], found["highest"], found["lowest"]) == ("T5-Small-CNN", 0.448, 0.023)
    assert found["differ_from_0"] == (rows["holm"] < 0.05).sum() == 8
