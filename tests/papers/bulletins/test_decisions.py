"""Decisions by thresholds: learned from other networks when there are two."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from uetrust.papers.bulletins import decisions
from uetrust.papers.bulletins.accuracy import MEAN_OVER_DATASETS


@pytest.mark.parametrize("domains,place", [(("x", "y"), "outdomain"), (("x", "x"), "halves")])
def test_thresholds_come_from_other_networks_when_there_are_two(domains, place):
    rng = np.random.default_rng(1)
    label = np.tile([0.0, 1], 15)
    rows = [
        pd.DataFrame(
            dict(
                dataset=name, document=range(30), label=label, msp=label + rng.random(30), mte=rng.random(30)
            )
        )
        for name in ("one", "two")
    ]
    labelled = decisions.Labelled(
        decisions.labelled_datasets(pd.concat(rows)), dict(zip(("one", "two"), domains)), []
    )
    about = decisions.decision_study(labelled, 2, 0)
    scores = decisions.focus_scores(about)
    facts = decisions.leader_facts(scores, place)
    assert about.place == place and decisions.averaged_sets(about) == ["one", "two"]
    assert (facts.by_auc.score, facts.by_auc.kind, facts.by_auc.auc_rank) == ("msp", "method", 1)
    assert decisions.way_to_learn(about, place)["scores"] == 2
    assert decisions.scores_elsewhere(about, scores, decisions.undefined_scores(about)) == []


@pytest.mark.parametrize("place", ["outdomain", "halves"])
def test_each_generator_has_a_row_for_the_place_where_thresholds_are_learned(place):
    "By logistic regression without weights; neither the mean nor a generator without a pair of scores."
    ways = product(
        ["one", "two", "none", MEAN_OVER_DATASETS],
        ["outdomain", "halves"],
        ["logistic", "stump"],
        ["none", "balanced"],
    )
    orders = pd.DataFrame(ways, columns=["dataset", "place", "classifier", "weights"])
    orders = orders.assign(rho=orders.index / 100, constant=orders.index, scores=40, pairs=7)
    orders.loc[orders["dataset"] == "none", "pairs"] = 0
    about = SimpleNamespace(study=SimpleNamespace(orders=orders), place=place, focus="one")
    numbers = orders.set_index(["dataset", "place", "classifier", "weights"])["constant"]
    one, two = (numbers[dataset, place, "logistic", "none"] for dataset in ("one", "two"))
    expected = [["one", one / 100, one, 40], ["two", two / 100, two, 40]]
    assert decisions.orders_by_generator(about).values.tolist() == expected
    assert decisions.way_to_learn(about, place)["constant"] == one
