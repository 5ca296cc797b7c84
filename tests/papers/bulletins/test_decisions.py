"""Decisions by thresholds: learned from other networks when there are two."""

import numpy as np
import pandas as pd
import pytest

from uetrust.papers.bulletins import decisions, sentences


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
    scores, averaged = decisions.focus_scores(about), decisions.averaged_sets(about)
    said = sentences.accuracy_sentences(about, scores, pd.DataFrame(), averaged)
    assert about.place == place and ("nothing is said about outdomain" in said[0]) == (place == "halves")
    assert any("On the mean of one, two" in text and sentences.LEARNED[place] in text for text in said)
    assert any("First by AUC is msp (method)" in text for text in said)
    assert sentences.left_out_sentences(about, scores, decisions.undefined_scores(about))[0].startswith(
        "By generator"
    )
