"""Figures and facts of the FFLM study: nothing of data that are not there."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.translations import real
from uetrust.data.loaders import summeval
from uetrust.papers.fflm import plots as fflm
from uetrust.papers.ledger.cells import CELL_STATUS


def table(**columns):
    about = dict(row="FFLM", group=["a", "b"], value=50.0, lo=40.0, hi=60.0, n=9, printed=np.nan)
    return pd.DataFrame(about | dict(missing=[0, 3]) | columns)


def test_bulletins_are_counted_only_where_they_stand_in_for_news():
    texts = pd.DataFrame(dict(set=["FRANK", "bulletin", "bulletin"], doc=["a", "b", "b"]))
    assert fflm.text_facts(texts, texts.head(2)) == (3, 2, ["FRANK", "bulletin"], 1)
    assert fflm.text_facts(texts.head(1), texts.head(1)).bulletins == 0


def test_texts_without_a_value_are_counted_by_the_worst_set():
    other_row = table(row="CoP", missing=[9, 9])
    assert fflm.undefined_texts(table(), other_row) == 3
    assert fflm.undefined_texts(table(missing=[np.nan, np.nan])) == 0 == fflm.undefined_texts(other_row)


def test_sets_without_a_value_have_no_value_of_fflm():
    values = fflm.fflm_values(table(value=[np.nan, 50.0]))
    assert values["group"].tolist() == ["b"] and values.loc[0, "missing"] == 3


def test_ablations_are_compared_with_fflm_on_the_same_sets():
    rows = [("FFLM", "a", 50.0), ("FFLM", "b", 70.0), ("w", "a", 40.0), ("w", "b", 62.0), ("v", "a", 51.0)]
    values = pd.DataFrame(rows, columns=["row", "group", "value"])
    without_v = values[values["row"] != "v"]
    effects = fflm.ablation_effects(dict(all=values, both=without_v))
    assert effects[effects["measure"] == "all"][["row", "difference"]].to_numpy().tolist() == [
        ["w", -10.0],
        ["v", 1.0],
    ], "v has no value on b, so a is the only set that counts"
    assert effects[effects["measure"] == "both"]["difference"].tolist() == [-9.0]


def test_an_ablation_that_is_undefined_everywhere_has_no_effect():
    assert fflm.ablation_effects(dict(x=table(value=np.nan))).empty
    assert fflm.ablation_effects({}).columns.tolist() == ["measure", "row", "difference", "sets"]


def test_questions_of_three_coefficients_are_counted_once():
    about = dict(model="m", row=["Gao", "Gao", "Luo"], task="rating", group="a")
    prompts = pd.DataFrame(about | dict(n=[10, 10, 20], refused=[1, 1, 2], unread=[3, 3, 0]))
    assert fflm.prompt_counts(prompts) == (30, 3, 3) and fflm.prompt_counts(pd.DataFrame()) == (0, 0, 0)


def test_the_best_type_of_error_is_that_of_each_row_and_set():
    types = pd.DataFrame(
        dict(group=["a", "a", "b"], row="FFLM", type=["Sem", "Disc", "Sem"], value=[20.0, 30.0, np.nan])
    )
    assert fflm.best_error_types(types).to_numpy().tolist() == [["a", "FFLM", "Disc", 30.0]]


def test_the_strongest_baseline_is_that_of_consistency_pooled():
    every = pd.DataFrame(
        dict(
            metric=["rouge_1", "rouge_2", "bleu", "meteor"],
            against="source",
            quality=["consistency", "consistency", "relevance", "consistency"],
            level=["pooled", "pooled", "pooled", "system"],
            pearson=[0.3, 0.5, 0.9, 0.9],
        )
    )
    cells = dict(table=3, row="BARTScore", group=["SummEval", "FRANKCNN"], column="pearson")
    printed = pd.DataFrame(cells | dict(printed=["24.9", "1"]))
    assert fflm.strongest_baseline(every, printed) == ("rouge 2", "source", pytest.approx(50), "24.9")


def test_cells_are_equal_only_when_the_ledger_says_so():
    cells = pd.DataFrame(dict(status=[CELL_STATUS[0], CELL_STATUS[0], *CELL_STATUS[1:]]))
    assert fflm.recomputed_facts(cells) == (2, len(CELL_STATUS) + 1)


def test_every_table_of_results_has_its_own_caption_of_the_right_task():
    captions = fflm.CAPTIONS
    assert list(captions) == [*range(2, 11), 12, 13] and len(set(captions.values())) == len(captions)
    for number, caption in captions.items():
        assert ("etection" in caption) == (number in (2, 9, 10, 12))
        assert ("ating" in caption) == (number in (3, 4, 7, 13))
    assert "prompts" in captions[7] and "BART" in captions[8]


def test_a_first_hour_reads_so_many_sources_of_every_set_that_names_no_number():
    texts = fflm.all_texts("bulletin", "bulletin:5", most=3)
    sources = texts.groupby(["task", "split"])["source"].nunique()
    assert sources.to_dict() == {("detection", "test"): 3, ("detection", "val"): 3, ("rating", "test"): 5}
    assert fflm.all_texts("bulletin", "", most=0)["source"].nunique() > 6


@real
def test_the_overlap_in_the_repository_is_the_one_that_is_computed(monkeypatch):
    now = fflm._overlap(summeval().iloc[[0, 1599]])
    monkeypatch.setattr(fflm, "overlap_scores", None)  # Nothing is computed
    pd.testing.assert_frame_equal(fflm.overlap_on_summeval().loc[now.index, list(now)], now, check_exact=True)
