"""What the tests of sentences share."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.scores import Scores
from uetrust.papers.bulletins import inputs

BANK = "bulletin--tiny-bart"


def tidy(name, values):
    texts = [f"t{i}" for i in range(len(values))]
    return pd.DataFrame(dict(sample=texts, name=name, value=values, note=""))


@pytest.fixture
def toy_bank(tmp_path, monkeypatch):
    "Scores of twelve texts in the folder of a profile; making anything of a bank is an error"
    monkeypatch.setattr(inputs, "out_dir", lambda profile: tmp_path)
    rng = np.random.default_rng(0)
    truth = pd.Series(rng.random(12), [f"t{i}" for i in range(12)], name="truth")
    methods = pd.concat([tidy("msp", -truth.to_numpy()), tidy("mte", rng.random(12)), tidy("md", [1.0] * 12)])
    metrics = pd.concat([tidy("rouge_l", truth.to_numpy() ** 2), tidy("bert_score_f1", rng.random(12))])
    metrics = metrics[metrics["name"].isin(list(inputs.reg))]
    monkeypatch.setattr(inputs, "greedy_texts", lambda *_: pd.DataFrame(dict(text=truth.index)))
    stored = {}

    def shipped(name, _, modules, make, live=False):
        return stored.setdefault(name, make()) if live or name not in stored else stored[name]

    monkeypatch.setattr(inputs, "shipped_scores", shipped)
    monkeypatch.setattr(inputs, "bank_about", lambda folder, samples, kind, reg: dict(kind=kind, scores={}))
    monkeypatch.setattr(inputs, "score_methods", lambda plan: Scores(methods, dict(p_true=["own"])))
    lacks = dict(ctc=["a model", "a reference"])
    monkeypatch.setattr(inputs, "score_metrics", lambda plan, models: Scores(metrics, lacks))
    plan = inputs.bank_plan("smoke", BANK)
    monkeypatch.setattr(inputs, "readable_bank", lambda *names: plan)
    rows = pd.DataFrame(dict(sample=truth.index, kind="greedy", k=0, text=truth.index))
    monkeypatch.setattr(inputs, "read_bank", lambda folder: rows)
    for scores in (inputs.method_scores, inputs.quality_scores):
        scores("smoke", BANK)
    monkeypatch.setattr(inputs, "score_methods", lambda plan: pytest.fail("methods are computed again"))
    monkeypatch.setattr(inputs, "score_metrics", lambda *given: pytest.fail("metrics are computed again"))
    monkeypatch.setattr(inputs, "truth_of", lambda plan: truth)
    return tmp_path, truth


def paired_scores_of_the_toy():
    return inputs.paired_scores(
        inputs.method_scores("smoke", BANK).table, inputs.quality_scores("smoke", BANK).table
    )
