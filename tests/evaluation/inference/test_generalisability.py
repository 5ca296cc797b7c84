"""Variance components of rankings: found again in drawn tables, and levels that give a reliability."""

from math import inf

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.inference.generalisability import (
    _levels_needed,
    _needed_words,
    article_blocks,
    bootstrap_reliability,
    generalisability_sentence,
    needed_table,
    reliability,
    variance_components,
)
from uetrust.evaluation.prr import prr
from uetrust.papers.people.orders import people_blocks
from uetrust.papers.people.translations import JudgedTranslations

NAMES = ("method", "texts", "metrics")
SD = dict(zip(("m", "t", "k", "mt", "mk", "mtk"), (1.0, 0.7, 0.2, 0.5, 0.8, 0.4)))


def drawn(seed, shape=(40, 10, 8), names=tuple(SD)):
    "A table of PRR: sum of the named effects."
    rng = np.random.default_rng(seed)
    m, t, k = shape
    shapes = dict(m=(m, 1, 1), t=(1, t, 1), k=(1, 1, k), mt=(m, t, 1), mk=(m, 1, k), mtk=shape)
    return sum(SD[name] * rng.normal(size=shapes[name]) for name in names)


def test_components_are_unbiased():
    "Mean of 40 drawn tables against the variances that made them."
    found = [variance_components(drawn(seed), NAMES).set_index("component")["variance"] for seed in range(40)]
    mean, se = pd.concat(found, axis=1).mean(axis=1), pd.concat(found, axis=1).std(axis=1) / np.sqrt(40)
    want = dict(method=1, texts=0.49, metrics=0.04) | {"method x texts": 0.25, "method x metrics": 0.64}
    want |= {"texts x metrics": 0, "method x texts x metrics": 0.16}
    for name, variance in want.items():
        assert abs(mean[name] - variance) < 3.5 * se[name] + 1e-3, name


def test_reliability_is_the_squared_correlation_with_the_truth():
    true, r = np.random.default_rng(0).normal(size=(60, 40)), []
    for seed in range(60):
        error = drawn(seed, (40, 3, 2), ("mt", "mk", "mtk")).mean((1, 2))
        r.append(np.corrcoef(true[seed], true[seed] + error)[0, 1] ** 2)
    table = pd.DataFrame(
        dict(
            component=["method", "method x texts", "method x metrics", "method x texts x metrics"],
            variance=[1, 0.25, 0.64, 0.16],
        )
    )
    assert np.mean(r) == pytest.approx(reliability(table, dict(texts=3, metrics=2)), abs=0.03)


def test_the_levels_needed_are_the_first_that_reach_the_target():
    table = variance_components(drawn(1), NAMES)
    for facet, sizes in (
        ("texts", dict(metrics=20)),
        ("metrics", dict(texts=5)),
        ("metrics", dict(texts=40)),
    ):
        n = _levels_needed(table, facet, sizes, target=0.8)
        assert reliability(table, sizes | {facet: n}) >= 0.8
        assert n == 1 or reliability(table, sizes | {facet: n - 1}) < 0.8
    assert _levels_needed(table, "texts") == inf  # One metric is too few, however many texts
    rows = needed_table(table, dict(texts=10, metrics=8)).set_index("facet")
    assert rows.loc["texts", "with_one_other"] == inf and rows.loc["metrics", "with_others_observed"] < 8
    sentence = generalisability_sentence(table, dict(texts=10, metrics=8), 40, "An example")
    assert "differs by metrics" in sentence and "40 methods" in sentence
    assert sentence.endswith(" With one of all others, no number of texts or of metrics reaches 0.80.")
    assert _needed_words(dict(pairs=6, judges=inf)) == (
        " To reach 0.80 with one of all others it takes 6 pairs. With one of all others, no number of judges "
        "reaches 0.80."
    )


def test_gaps_and_single_levels_are_refused_and_an_interval_holds_the_value():
    values = drawn(2, (12, 6, 4))
    lo, hi = bootstrap_reliability(values, NAMES, "texts", dict(texts=6, metrics=4), draws=60)
    here = reliability(variance_components(values, NAMES), dict(texts=6, metrics=4))
    assert lo - 0.05 < here < hi + 0.05 and lo < hi
    with pytest.raises(ValueError, match="at least 2 levels"):
        variance_components(values[:, :1], NAMES)
    values[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="1 gaps"):
        variance_components(values, NAMES)


def test_blocks_of_documents_are_whole_and_give_each_method_its_prr():
    rng, documents = np.random.default_rng(0), pd.Series(np.repeat(np.arange(30), np.arange(1, 31)))
    at = article_blocks(documents, 5)
    assert (pd.Series(at).groupby(documents).nunique() == 1).all()
    assert np.ptp(np.bincount(at)) <= 3 and len(set(at)) == 5
    quality = pd.DataFrame(rng.normal(size=(len(at), 2)), columns=["person_1_z", "person_2_z"])
    scores = pd.DataFrame(dict(msp=-quality["person_1_z"], perplexity=rng.normal(size=len(at))))
    one = JudgedTranslations("xx-en", quality, scores.assign(token_count=1.0), documents, {})
    values, names = people_blocks({"xx-en": one, "yy-en": one}, list(quality), blocks=5)
    assert values.shape == (2, 5, 2, 2) and names == ["msp", "perplexity"]
    assert values[0, :, :, 0] == pytest.approx(1) and abs(values[0, :, :, 1].mean()) < 0.5
    want = prr(quality["person_2_z"][at == 3], scores["perplexity"][at == 3]).value
    assert values[1, 3, 0, 1] == pytest.approx(want)
