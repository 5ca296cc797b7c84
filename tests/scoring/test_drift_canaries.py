"""Metric drift: shipped metrics give their stored values, and score shuffled words below the reference."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.laws import check_law
from tests.helpers.measured import warn_unmeasured
from uetrust.core.settings import root
from uetrust.data.bulletins import bulletins
from uetrust.scoring.drift import DRIFT_FILE, drift_check, metric_drift
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts.providers import shipped_models

reg = load_scores()


@pytest.fixture(scope="module")
def found():
    return drift_check(shipped_models())


@pytest.fixture(scope="module")
def kept():
    return json.loads((root() / DRIFT_FILE).read_text())


# Canaries
def test_the_metrics_say_what_is_on_file(found, kept):
    "After a change that is meant: uetrust canaries --write"
    assert metric_drift(kept, found) == []
    warn_unmeasured(found["metrics"], kept["metrics"], "make cards")
    assert len(kept["metrics"]) >= 76
    assert all(len(stored["values"]) == 4 for stored in kept["metrics"].values())


def test_the_fingerprints_on_file_are_those_of_the_shipped_weights(found, kept):
    for name, stored in kept["metrics"].items():
        assert stored["read_by"] == found["metrics"][name]["read_by"], name


@pytest.mark.parametrize(
    "change,says",
    [
        (
            lambda stored: stored["metrics"]["bart_score"]["values"].__setitem__(1, -9.0),
            ["bart_score: other was -9"],
        ),
        (
            lambda stored: stored["metrics"]["rouge_l"]["values"].__setitem__(0, None),
            ["rouge_l: good was None"],
        ),
        (
            lambda stored: stored["metrics"].update(gone=dict(values=[1] * 4, read_by=[])),
            ["gone: is not computed"],
        ),
        (lambda stored: stored.update(texts="x"), ["the four texts have changed"]),
    ],
)
def test_what_moved_is_named(kept, change, says):
    other = copy.deepcopy(kept)
    change(other)
    assert [
        sentence.startswith(beginning)
        for sentence, beginning in zip(metric_drift(other, kept), says, strict=True)
    ] == [True]


def test_a_change_of_libraries_is_named_beside_the_score(kept):
    other = copy.deepcopy(kept)
    other["metrics"]["bart_score"]["values"][0] += 1
    other["made_with"]["torch"] = "1.0"
    (sentence,) = metric_drift(other, kept)
    assert f"torch 1.0 is now {kept['made_with']['torch']}" in sentence
    assert "the code has changed" in metric_drift(dict(other, made_with=kept["made_with"]), kept)[0]


# Sense


def disordered(
    n, metrics="all"
):  # References and their words in random order, graded: sample x score, and the texts
    b, rng = bulletins("test", n), np.random.default_rng(0)
    salad = [" ".join(rng.permutation(r.split())) for r in b["reference"]]
    texts = pd.DataFrame(
        dict(
            id=[f"{stored}{i}" for stored in ("ref", "salad") for i in range(n)],
            hypothesis=[*b["reference"], *salad],
            source=[*b["source"]] * 2,
            reference=[*b["reference"]] * 2,
        )
    )
    return compute_metrics(texts, shipped_models(), metrics, progress=False).table.pivot(
        index="sample", columns="name", values="value"
    ), texts


@pytest.fixture(scope="module")
def pairs():
    return disordered(12)


def sides(w, n):
    v, salad = w[n] * reg[n].sign, w.index.str.startswith("salad")
    return v[~salad].to_numpy(), v[salad].to_numpy()


def test_the_reference_beats_its_words_in_disorder(pairs):
    assert len(pairs[0].columns) >= 76
    for name in pairs[0]:
        ref, salad = sides(pairs[0], name)
        check_law(reg[name], "shuffled_may_win", (salad > ref).any() or not ref.mean() > salad.mean())


def test_no_answer_of_tiny_unieval_prefers_disorder():
    "Weights that knew more about facts failed here, which twelve texts hardly showed"
    names = [
        f"unieval_{d}{end}"
        for d in ("consistency", "coherence", "fluency", "overall")
        for end in ("", "_he2024")
    ]
    w, _ = disordered(100, names)
    assert set(w) == set(names) and not [n for n in w for ref, salad in [sides(w, n)] if (salad >= ref).any()]


def test_a_text_has_the_same_score_whichever_texts_are_scored_with_it(pairs):
    w, texts = pairs
    back = compute_metrics(texts.iloc[::-3], shipped_models(), progress=False).table.pivot(
        index="sample", columns="name", values="value"
    )
    for n in back:
        same = np.allclose(back[n], w.loc[back.index, n], atol=4e-6, rtol=4e-6, equal_nan=True)
        check_law(reg[n], "other_texts_matter", not same)
