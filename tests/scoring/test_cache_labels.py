"""Classifiers whose configuration says LABEL_0: the names of their classes are given with the checkpoint."""

import json
import shutil

import pandas as pd
import pytest

from uetrust.core.settings import root, split_labels
from uetrust.scoring.cache import metric_models
from uetrust.scoring.metrics import compute_metrics
from uetrust.scoring.pipeline import StageRun

CLASSES = "entailment:0,neutral:1,contradiction:2"  # Those of tiny-nli


@pytest.fixture(scope="module")
def nameless(tmp_path_factory):
    folder = shutil.copytree(root() / "data/models/tiny-nli", tmp_path_factory.mktemp("nli") / "nameless")
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {str(i): f"LABEL_{i}" for i in range(3)}
    config["label2id"] = {f"LABEL_{i}": i for i in range(3)}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def mnli(given):
    texts = pd.DataFrame(dict(id=["a"], source=["Rain fell in the north."], hypothesis=["It rained."]))
    return compute_metrics(texts, metric_models([f"nli={given}"]), ["mnli_doc"], progress=False).table


def test_names_of_classes_make_a_nameless_classifier_the_same(nameless):
    named, got = mnli("data/models/tiny-nli"), mnli(f"{nameless},{CLASSES}")
    assert len(got) == 1 and got["value"].notna().all() and list(got["value"]) == list(named["value"])
    turned = mnli(f"{nameless},contradiction:0,neutral:1,entailment:2")
    assert list(turned["value"]) != list(named["value"])


def test_a_nameless_classifier_says_how_its_classes_are_named(nameless):
    with pytest.raises(ValueError, match=r"label_0, label_1, label_2 .*CHECKPOINT,entailment:0,neutral:1"):
        mnli(nameless)


def test_the_classifier_that_compares_texts_takes_names_too(nameless):
    model = StageRun().model(f"{nameless},{CLASSES}")
    assert model.model.config.id2label == {0: "entailment", 1: "neutral", 2: "contradiction"}


@pytest.mark.parametrize("bad", ["c,entailment:0,neutral:0", "c,entailment:1", "c,:0", "c,entailment:x"])
def test_other_ways_to_write_classes_are_refused(bad):
    assert split_labels("c") == ("c", {}) and split_labels("c,a:1,b:0") == ("c", {1: "a", 0: "b"})
    with pytest.raises(ValueError, match="each position once and from 0 on"):
        split_labels(bad)
