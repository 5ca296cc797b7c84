"""Pages on banks and on He et al.: inputs are made once, tables and sentences say what a hand count says."""

from itertools import product
from types import SimpleNamespace

import pandas as pd
import pytest

from tests.helpers.banks_of_pages import BANK
from uetrust.papers.bulletins import sentences, tables
from uetrust.papers.bulletins.accuracy import MEAN_OVER_DATASETS
from uetrust.papers.bulletins.texts import error_rates


def test_without_the_truth_sentences_about_it_are_empty():
    assert sentences.subsample_sentence(BANK, None) == ""


def test_tied_methods_share_the_first_place():
    ranks = pd.DataFrame(
        [
            ("truth", "a", 0.5, 1.5, 1.5, 1.5),
            ("truth", "b", 0.5, 1.5, 1.5, 2.0),
            ("truth", "c", 0.1, 3, 2, 3),
        ],
        columns=["judged_by", "method", "value", "rank", "rank_lo", "rank_hi"],
    )
    first = tables.first_ranked(ranks)
    assert first[["method", "could_be_first"]].values.tolist() == [["a", 2]]


@pytest.mark.parametrize("place", ["outdomain", "halves"])
def test_each_generator_is_told_of_where_thresholds_are_learned(place):
    "By logistic regression without weights; not of the mean, nor of a generator without a pair of scores."
    ways = product(
        ["one", "two", "none", MEAN_OVER_DATASETS],
        ["outdomain", "halves"],
        ["logistic", "stump"],
        ["none", "balanced"],
    )
    orders = pd.DataFrame(ways, columns=["dataset", "place", "classifier", "weights"])
    orders = orders.assign(rho=orders.index / 100, constant=orders.index, scores=40, pairs=7)
    orders.loc[orders["dataset"] == "none", "pairs"] = 0
    about = SimpleNamespace(
        study=SimpleNamespace(orders=orders, scores=pd.DataFrame(dict(score=["msp"]))), place=place
    )
    ahead = pd.DataFrame({"score": ["msp"], "auc": [0.7], f"{place}_accuracy": [0.6]})
    undefined = pd.DataFrame(columns=["dataset", "score", "missing"])
    numbers = orders.set_index(["dataset", "place", "classifier", "weights"])["constant"]
    one, two = (numbers[dataset, place, "logistic", "none"] for dataset in ("one", "two"))
    assert sentences.left_out_sentences(about, ahead, undefined) == [
        "By generator (rho of AUC and accuracy; scores with one answer to everything): "
        f"one {one / 100:.2f}, {one} of 40; two {two / 100:.2f}, {two} of 40."
    ]


def test_answers_are_right_or_name_nothing():
    truth = pd.DataFrame(dict(truth=[1, 0, 0, 0], wrong=[0, 1, 0, 0], unread=[0, 0, 1, 1]))
    truth = truth.assign(kind="greedy", sample=list("abcd"))
    said = sentences.errors_sentence(error_rates(truth), truth)
    assert said.startswith(
        "75% (95 % interval 26% to 100%) of the greedy texts are not the right answer; 50%"
    )
