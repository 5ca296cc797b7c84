"""Drift of metrics: which texts are scored, how scores are stored, and what is said of one that moved."""

import pytest

from uetrust.core.settings import root
from uetrust.data.bulletins import bulletins
from uetrust.models.load import load_model
from uetrust.scoring import drift
from uetrust.scoring.drift import DRIFT_FILE, _drift_texts, drift_check, metric_drift, write_drift_check


def test_the_four_texts_are_a_good_one_anothers_a_copy_and_a_broken_one():
    texts, items = _drift_texts(), bulletins("test", 4)
    assert list(texts) == ["id", "hypothesis", "source", "reference"] and len(texts) == 4
    assert dict(zip(texts["id"], texts["hypothesis"])) == dict(
        good=items["paraphrase"][0],
        other=items["reference"][0],
        copied=texts["source"][2],
        broken="Council the. 3 of",
    )


def test_values_stand_in_the_order_in_which_they_were_asked_for():
    checked = drift_check({}, ["rouge_l", "bleu"])
    assert list(checked["metrics"]) == ["rouge_l", "bleu"]
    assert [len(found["values"]) for found in checked["metrics"].values()] == [4, 4]


@pytest.mark.parametrize("path", ["mine.json", None])
def test_values_are_written_as_lines_that_a_diff_can_show(tmp_path, monkeypatch, path):
    monkeypatch.setattr(drift, "root", lambda: tmp_path)
    write_drift_check(dict(texts="x", metrics=dict(bleu=[1.0])), path and tmp_path / path)
    text = (tmp_path / (path or DRIFT_FILE)).read_text()
    assert text == '{\n "texts": "x",\n "metrics": {\n  "bleu": [\n   1.0\n  ]\n }\n}\n'


def drifted(before, now, read_by=("m 1", "m 1"), libraries=({}, {})):
    "What is said of one metric whose first value was `before` and is `now`"

    def check(value, model, made_with):
        metrics = dict(bleu=dict(values=[value, 1, 2, 3], read_by=[model]))
        return dict(texts="x", made_with=made_with, metrics=metrics)

    return metric_drift(*map(check, (before, now), read_by, libraries))


@pytest.mark.parametrize("before, step", [(0.5, 1.0), (-0.5, 1.0), (1.5, 1.5), (-400.0, 400.0)])
def test_a_value_may_move_by_2e_5_relative_to_values_above_1(before, step):
    assert drifted(before, before + 1.9e-5 * step) == drifted(before, before - 1.9e-5 * step) == []
    (sentence,) = drifted(before, before + 2.1e-5 * step)
    assert sentence.startswith(f"bleu: good was {before}, is ") and len(drifted(before, -before)) == 1


def test_a_score_that_comes_or_goes_has_drifted():
    assert drifted(None, None) == []
    assert drifted(None, 0.5)[0].startswith("bleu: good was None, is 0.5 (")
    assert drifted(0.5, None)[0].startswith("bleu: good was 0.5, is None (")


def test_causes_are_named_the_model_first():
    libraries = dict(torch="1", numpy="2", scipy="3"), dict(torch="1.1", numpy="2")
    changed = "torch 1 is now 1.1; scipy 3 is now gone"
    assert drifted(0, 1, libraries=libraries) == [f"bleu: good was 0, is 1 ({changed})"]
    read = "read by b 2 instead of a 1"
    assert drifted(0, 1, ("a 1", "b 2"), libraries) == [f"bleu: good was 0, is 1 ({read}; {changed})"]
    same = "same weights, same libraries: the code has changed"
    assert drifted(0, 1) == [f"bleu: good was 0, is 1 ({same})"]


def test_a_score_stands_beside_the_weights_that_read_the_texts():
    nli = root() / "data/models/tiny-nli"
    found = drift_check(dict(nli=nli), ["summac_zs", "rouge_l"])["metrics"]
    model = load_model(nli)
    assert found["summac_zs"]["read_by"] == [f"{model.name} {model.version}"]
    assert found["rouge_l"]["read_by"] == []
    values = found["summac_zs"]["values"]
    assert all(-1 <= value <= 1 for value in values) and len(set(values)) == 4


def test_texts_that_changed_cannot_be_compared():
    before = dict(texts="x", made_with={}, metrics=dict(bleu=dict(values=[1] * 4, read_by=[])))
    (sentence,) = metric_drift(before, before | dict(texts="y"))
    assert sentence.startswith("the four texts have changed")
    assert metric_drift(before, before | dict(metrics={})) == ["bleu: is not computed any more"]
