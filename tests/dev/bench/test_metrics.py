"""Benchmark of metrics: equal inputs and values on both sides, and the stored costs of the cards."""

import importlib
import json
import subprocess
import sys
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers.measured import warn_unmeasured
from uetrust.core.settings import root
from uetrust.dev.bench import metrics as bench
from uetrust.models import load as loading
from uetrust.report.cards import reference_text, score_card
from uetrust.scoring.metrics import compute_metrics, metric_names
from uetrust.statistics.texts.providers import shipped_models


@pytest.fixture(scope="module")
def texts():
    return bench._bench_texts(2, 3)


@pytest.fixture(scope="module")
def scripts():
    "The script of the peers, which only knows its own folder"
    sys.path.insert(0, str(root() / "scripts"))
    yield importlib.import_module("peer_metrics")
    sys.path.remove(str(root() / "scripts"))


def case(name, k=0):
    return [one for one in bench.METRIC_CASES if name in one.metrics.split()][k]


@pytest.mark.parametrize(
    "name,k", [("rouge_1", 0), ("bleu", 0), ("bart_score", 0), ("summac_zs", 0), ("summac_zs", 1)]
)
def test_peer_and_ours_say_the_same_of_the_same_texts(name, k, texts, scripts, monkeypatch):
    "Networks in float64: in float32 the order of sums differs, and tiny-nli amplifies the last digit"
    opened = scripts.opened

    def opened_in_float64(*args):
        return [part.double() if hasattr(part, "double") else part for part in opened(*args)]

    monkeypatch.setattr(scripts, "opened", opened_in_float64)
    monkeypatch.setattr(loading, "_dtype", lambda *args: torch.float64)
    settings = json.loads(json.dumps(bench._case_settings(case(name, k), texts)))
    theirs = getattr(scripts, case(name, k).who)(settings, settings["texts"])
    ours = (
        compute_metrics(texts, settings["models"], settings["metrics"], progress=False)
        .table.pivot(index="sample", columns="name", values="value")
        .loc[texts["id"]]
    )
    assert bench._farthest_values({metric: ours[metric] for metric in ours}, theirs) <= 2e-6
    assert all(np.ptp(values) > 0 for values in theirs.values())


def test_batches_of_the_peer_are_those_it_is_given(texts, scripts):
    "What is timed is the plain loop: so many calls of the network, none saved"
    real = scripts.opened

    def calls(case_):
        n, settings = [], json.loads(json.dumps(bench._case_settings(case_, texts)))
        with mock.patch.object(scripts, "opened", lambda *args: (real(*args)[0], Counted(real(*args)[1], n))):
            getattr(scripts, case_.who)(settings, settings["texts"])
        return n, settings

    assert calls(case("bart_score"))[0] == [4, 2]  # Six pairs in batches of 4
    n, settings = calls(case("summac_zs", 1))
    assert n == [1] * sum(len(source) * len(hypothesis) for source, hypothesis in settings["texts"]["grid"])


class Counted:  # A network that notes how many rows it is handed
    def __init__(self, net, n):
        self.net, self.n, self.config = net, n, net.config

    def __call__(self, **kw):
        self.n.append(len(kw["input_ids"]))
        return self.net(**kw)


def test_our_side_reads_what_is_on_disk_and_measures_itself(tmp_path, texts):
    (tmp_path / "asked.json").write_text(json.dumps(bench._case_settings(case("rouge_1"), texts)))
    got = bench.ours_case(tmp_path)
    assert (
        set(got["values"]) == {"rouge_1", "rouge_2", "rouge_l"}
        and got["seconds"] > 0
        and got["gb"] >= got["before"] > 0.02
    )
    assert (
        got["values"]["rouge_1"]
        == compute_metrics(texts, {}, ["rouge_1"], progress=False).table["value"].tolist()
    )


def test_the_script_of_the_peer_runs_as_a_process(tmp_path, texts):
    (tmp_path / "asked.json").write_text(json.dumps(bench._case_settings(case("bleu"), texts)))
    subprocess.run(
        [sys.executable, root() / "scripts" / "peer_metrics.py", "sacrebleu", "."], cwd=tmp_path, check=True
    )
    settings = json.loads((tmp_path / "result.json").read_text())
    with np.load(tmp_path / "result.npz") as arrays:
        assert (
            arrays["bleu"].tolist()
            == compute_metrics(texts, {}, ["bleu"], progress=False).table["value"].tolist()
        )
    assert set(settings) == {"seconds", "gb", "before"} and settings["gb"] >= settings["before"] > 0


def test_both_sides_alternate_and_the_faster_run_counts(texts):
    order, times = [], iter([3.0, 4.0, 2.0, 5.0])

    def side(who):
        return lambda *args, **options: (
            order.append(who) or dict(seconds=next(times), gb=0.3, before=0.2, values=dict(bleu=[1.0]))
        )

    with (
        mock.patch.object(bench, "run_ours", side("ours")),
        mock.patch.object(bench, "run_peer", side("peer")),
    ):
        got = bench._one(case("bleu"), texts, "python", 2)
    assert (
        order == ["ours", "peer"] * 2 and got["ratio"] == 2.0 and got["ours"] == 3.0 and got["theirs"] == 1.5
    )


def test_share_of_different_pairs_is_reported(texts):
    doubled = pd.concat([texts, texts.assign(id="again " + texts["id"])])
    result = dict(seconds=1.0, gb=0.3, before=0.2, values={}) | dict(values=dict(bleu=[1.0]))
    assert (
        bench._case_row(case("bleu"), doubled, result, result)["distinct"]
        == bench._case_row(case("bleu"), texts, result, result)["distinct"] / 2
    )


def test_without_its_environment_the_peer_is_requested(tmp_path):
    with pytest.raises(FileNotFoundError, match="scripts/bench_requirements.txt"):
        bench.bench_metrics(1, 1, python=tmp_path / "python")


def test_names_of_packages_stand_in_the_requirements_of_the_bench():
    lines = (root() / "scripts" / "bench_requirements.txt").read_text()
    assert (
        all(one.peer.split()[0] in lines for one in bench.METRIC_CASES if not one.plain)
        and bench.MINILM_PACKAGE.replace("_", "-") in (root() / "pyproject.toml").read_text()
    )


def test_a_case_whose_model_is_not_installed_is_left_out_and_reported():
    heard = []
    with (
        mock.patch.object(bench, "MINILM_PACKAGE", "no_such"),
        mock.patch.object(
            bench,
            "METRIC_CASES",
            [bench.MetricCase("bertscore_f1", "bert_score", "bert-score", dict(bertscore="no_such_package"))],
        ),
    ):
        df = bench.bench_metrics(1, 1, python=sys.executable, log=lambda message: heard.append(message))
    assert not len(df) and heard == ["bert-score: left out, no_such is not installed"]


# Cards
def test_a_metric_is_compared_with_the_text_that_it_sees():
    assert [
        bench._compared_text(name)
        for name in (
            "bleu",
            "bart_score",
            "summac_zs",
            "embedding_spearman",
            "ctc_embedding_relevance",
            "unieval_fluency",
        )
    ] == ["reference", "source", "source", "reference", "reference", ""]


def test_anchors_are_means_of_grades():
    table = bench._score_anchors(["bleu", "token_f1_true", "embedding_spearman"], shipped_models(), 4)
    assert (
        table["identity"].tolist() == pytest.approx([100, 1, 1], abs=1e-6)
        and (table["random"] < table["identity"]).all()
    )
    texts = bench.bulletins("test", 4)
    moved = pd.DataFrame(
        dict(id=texts["id"], hypothesis=np.roll(texts["reference"], 1), reference=texts["reference"])
    )
    assert table.at["bleu", "random"] == pytest.approx(
        compute_metrics(moved, {}, ["bleu"], progress=False).table["value"].mean(), abs=1e-12
    )


def test_costs_are_put_on_file_and_on_the_card(tmp_path):
    got = bench.metric_costs(3, ["bleu", "embedding_spearman"], shipped_models(), log=lambda message: None)
    bench.keep_costs(got, tmp_path / "costs.json")
    kept = json.loads((tmp_path / "costs.json").read_text())
    assert (
        kept == got
        and kept["metrics"]["embedding_spearman"]["read_by"] == "tiny-encoder"
        and kept["metrics"]["bleu"]["read_by"] == ""
    )
    assert "the reference in place of the summary 100;" in reference_text(
        "bleu", kept
    ) and "means over 3 bulletins by tiny-encoder" in reference_text("embedding_spearman", kept)


def test_every_metric_that_shipped_models_allow_has_costs_on_file():
    kept = json.loads((root() / bench.COSTS_FILE).read_text())["metrics"]
    warn_unmeasured(metric_names("all"), kept, "make cards")
    assert all(
        row["pairs_per_s"] > 0 and (row["random"] is not None) == bool(row["beside"]) for row in kept.values()
    )
    assert "**Speed**" in score_card(
        "rouge_l"
    ) and "**Anchors** the reference in place of the summary 1;" in score_card("rouge_l")
