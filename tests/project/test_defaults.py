"""Defaults, written a second time: what a call does when it says nothing changes on purpose or not at all."""

import inspect
from dataclasses import FrozenInstanceError, fields

import pytest

from uetrust.core.store import Store, lock_folder
from uetrust.evaluation import agreement, prr, resample, significance, thresholds
from uetrust.evaluation import definitions as he2024
from uetrust.report.pitfalls import Panel
from uetrust.scoring import cache, drift, methods, metrics, pipeline
from uetrust.scoring.pipeline import StageRun
from uetrust.statistics import judges

HE2024 = dict(area="mean", max_rejection=1.0)
DRAWN = dict(draws=9999, seed=0)
DEFAULTS = [
    (Store.fill, dict(worker=(0, 1), progress=True)),
    (lock_folder, dict(wait=False)),
    (prr.prr, HE2024 | dict(ties="average", compat=None, document=None, scale=None)),
    (prr.prr_table, HE2024 | dict(ties="average", compat=None, adjust="holm")),
    (prr.prr_difference, dict(area="mean")),
    (prr.prr_bootstrap, dict(draws=1000, seed=0, area="mean")),
    (he2024.shuffled_weights, HE2024 | dict(draws=1000, seed=42)),
    (he2024.released_prr, HE2024),
    (resample.delete_one_areas, HE2024),
    (resample.resampled_areas, HE2024),
    (resample.delete_cluster_areas, HE2024),
    (agreement.agreement, dict(between="columns", coef="spearman", adjust="bh")),
    (agreement.critical_rho, dict(alpha=0.05)),
    (agreement.kendall_w, dict(seed=0)),
    (agreement.rank_intervals, dict(draws=2000, seed=0)),
    (significance.bootstrap_sample, dict(paired=True)),
    (
        significance.bootstrap_interval,
        DRAWN | dict(level="system", coef="pearson", units="documents", confidence=0.95, paired=True),
    ),
    (significance.bootstrap_difference, DRAWN | dict(level="system", coef="pearson", confidence=0.95)),
    (significance.swap_test, DRAWN | dict(swap="rows_columns", alternative="two-sided", plus_one=True)),
    (significance.subset_wins, dict(coef="spearman", share=0.8, draws=1000, seed=0)),
    (significance.sign_flip_p, dict(draws=1000, seed=4)),
    (significance.soft_pairwise_accuracy, dict(draws=1000, seed=4)),
    (thresholds.fit_logistic, dict(scale=True)),
    (thresholds.fit_isotonic, dict(clip=True)),
    (thresholds.fit_classifier, dict(preset="principled")),
    (thresholds.expected_accuracy, dict(mode="xdomain", classifier="logistic", repeats=100, seed=0)),
    (thresholds.learn_thresholds, dict(classifier="logistic", balanced=False)),
    (methods.score_generations, dict(methods="all", progress=True, errors="raise")),
    (metrics.compute_metrics, dict(metrics="all", progress=True, errors="raise")),
    (cache.cached_metrics, dict(metrics="all", progress=True)),
    (cache.cached_metrics_of_bank, dict(metrics="all", progress=True)),
    (drift.drift_check, dict(metrics="all", progress=False)),
    (judges.run_local_judge, dict(batch=32)),
    (judges.judge_requests, dict(variant="texts_first", top=0)),
    (judges.remote_judge_statistics, dict(variant="texts_first", top=0)),
    (judges.judge_scores, dict(variants=("texts_first",), top=0, progress=True)),
    (judges.request_completions, dict(send=True, progress=True)),
    (
        pipeline.run_pipeline,
        dict(progress=True, resume=True, stages=("texts", "passes", "comparisons"), worker=(0, 1)),
    ),
    (StageRun, dict(worker=(0, 1), progress=True, device=None, dtype=None)),
]


@pytest.mark.parametrize("function, named", DEFAULTS, ids=lambda value: getattr(value, "__qualname__", ""))
def test_a_default_changes_only_on_purpose(function, named):
    found = {name: known.default for name, known in inspect.signature(function).parameters.items()}
    assert {name: found[name] for name in named} == named
    assert all(type(found[name]) is type(value) for name, value in named.items())


VALUES = [
    Store("folder", "bank"),
    StageRun(),
    he2024.definition_of("he2024"),
    judges.JudgeServer("generator", "replies.sqlite"),
    Panel("Title", None, "Said."),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_does_not_change(value):
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(value)[0].name, "other")


def test_a_definition_of_prr_says_what_is_special_about_it_and_nothing_else():
    known = {name: found for name, found in he2024.PRR_DEFINITIONS.items() if name != "he2024"}
    ours = he2024.definition_of("he2024")
    assert (ours.labels_only, ours.percent, ours.drawn, ours.area) == (False, False, False, dict(area="mean"))
    for special in ("labels_only", "percent", "drawn"):
        assert 0 < sum(getattr(found, special) for found in known.values()) < len(known)
    with pytest.raises(ValueError, match="compat must be None or one of he2024, .*, got 'he2023'"):
        he2024.definition_of("he2023")
