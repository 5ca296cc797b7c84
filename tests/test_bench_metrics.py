"""The bench of metrics compares equal things and keeps what cards say. Nothing here depends on a clock or on a peer that is installed."""

import importlib
import json
import subprocess
import sys
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from uetrust.bench import metrics as b
from uetrust.core.settings import root
from uetrust.models import load as loading
from uetrust.report.cards import anchored, card
from uetrust.scoring.drift import KEPT
from uetrust.scoring.metrics import grade
from uetrust.scoring.providers import shipped


@pytest.fixture(scope="module")
def x():
    return b.texts(2, 3)


@pytest.fixture(scope="module")
def scripts():
    "The script of the peers, which only knows its own folder"
    sys.path.insert(0, str(root() / "scripts"))
    yield importlib.import_module("peer_metrics")
    sys.path.remove(str(root() / "scripts"))


def case(name, k=0):
    return [c for c in b.CASES if name in c.metrics.split()][k]


@pytest.mark.parametrize(
    "name,k", [("rouge_1", 0), ("bleu", 0), ("bart_score", 0), ("summac_zs", 0), ("summac_zs", 1)]
)
def test_peer_and_ours_say_the_same_of_the_same_texts(name, k, x, scripts, monkeypatch):
    "Networks in float64: in float32 the two sum in other orders, and tiny-nli makes much of a last digit"
    opened = scripts.opened
    monkeypatch.setattr(
        scripts, "opened", lambda *a: [x.double() if hasattr(x, "double") else x for x in opened(*a)]
    )
    monkeypatch.setattr(loading, "_dtype", lambda *a: torch.float64)
    j = json.loads(json.dumps(b.asked(case(name, k), x)))
    theirs = getattr(scripts, case(name, k).who)(j, j["texts"])
    ours = (
        grade(x, j["models"], j["metrics"], progress=False)
        .pivot(index="sample", columns="name", values="value")
        .loc[x["id"]]
    )
    assert b.farthest({m: ours[m] for m in ours}, theirs) <= 2e-6
    assert all(np.ptp(v) > 0 for v in theirs.values())


def test_batches_of_the_peer_are_those_it_is_told(x, scripts):
    "What is timed is the plain loop: so many calls of the network, none saved"
    real = scripts.opened

    def calls(c):
        n, j = [], json.loads(json.dumps(b.asked(c, x)))
        with mock.patch.object(scripts, "opened", lambda *a: (real(*a)[0], Counted(real(*a)[1], n))):
            getattr(scripts, c.who)(j, j["texts"])
        return n, j

    assert calls(case("bart_score"))[0] == [4, 2]  # Six pairs in batches of 4
    n, j = calls(case("summac_zs", 1))
    assert n == [1] * sum(len(s) * len(h) for s, h in j["texts"]["grid"])


class Counted:  # A network that notes how many rows it is handed
    def __init__(self, net, n):
        self.net, self.n, self.config = net, n, net.config

    def __call__(self, **kw):
        self.n.append(len(kw["input_ids"]))
        return self.net(**kw)


def test_our_side_reads_what_is_on_disk_and_measures_itself(tmp_path, x):
    (tmp_path / "asked.json").write_text(json.dumps(b.asked(case("rouge_1"), x)))
    got = b.ours_case(tmp_path)
    assert (
        set(got["values"]) == {"rouge_1", "rouge_2", "rouge_l"}
        and got["seconds"] > 0
        and got["gb"] >= got["before"] > 0.02
    )
    assert got["values"]["rouge_1"] == grade(x, {}, ["rouge_1"], progress=False)["value"].tolist()


def test_the_script_of_the_peer_runs_as_a_process(tmp_path, x):
    (tmp_path / "asked.json").write_text(json.dumps(b.asked(case("bleu"), x)))
    subprocess.run(
        [sys.executable, root() / "scripts" / "peer_metrics.py", "sacrebleu", "."], cwd=tmp_path, check=True
    )
    told = json.loads((tmp_path / "result.json").read_text())
    with np.load(tmp_path / "result.npz") as z:
        assert z["bleu"].tolist() == grade(x, {}, ["bleu"], progress=False)["value"].tolist()
    assert set(told) == {"seconds", "gb", "before"} and told["gb"] >= told["before"] > 0


def test_both_sides_alternate_and_the_faster_run_counts(x):
    said, times = [], iter([3.0, 4.0, 2.0, 5.0])

    def side(who):
        return lambda *a, **k: (
            said.append(who) or dict(seconds=next(times), gb=0.3, before=0.2, values=dict(bleu=[1.0]))
        )

    with mock.patch.object(b, "ours", side("ours")), mock.patch.object(b, "peer", side("peer")):
        got = b._one(case("bleu"), x, "python", 2)
    assert (
        said == ["ours", "peer"] * 2 and got["ratio"] == 2.0 and got["ours"] == 3.0 and got["theirs"] == 1.5
    )


def test_share_of_different_pairs_is_told(x):
    d = pd.concat([x, x.assign(id="again " + x["id"])])
    a = dict(seconds=1.0, gb=0.3, before=0.2, values={}) | dict(values=dict(bleu=[1.0]))
    assert b.compared(case("bleu"), d, a, a)["distinct"] == b.compared(case("bleu"), x, a, a)["distinct"] / 2


def test_without_its_environment_the_peer_is_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match="scripts/bench_requirements.txt"):
        b.bench(1, 1, python=tmp_path / "python")


def test_names_of_packages_stand_in_the_requirements_of_the_bench():
    lines = (root() / "scripts" / "bench_requirements.txt").read_text()
    assert (
        all(c.peer.split()[0] in lines for c in b.CASES if not c.plain)
        and b.MINILM.replace("_", "-") in (root() / "pyproject.toml").read_text()
    )


def test_a_case_whose_model_is_not_installed_is_left_out_and_said():
    heard = []
    with (
        mock.patch.object(b, "MINILM", "no_such"),
        mock.patch.object(
            b,
            "CASES",
            [b.Case("bertscore_f1", "bert_score", "bert-score", dict(bertscore="no_such_package"))],
        ),
    ):
        df = b.bench(1, 1, python=sys.executable, log=lambda s: heard.append(s))
    assert not len(df) and heard == ["bert-score: left out, no_such is not installed"]


# Cards
def test_a_metric_is_put_beside_the_text_that_it_sees():
    assert [
        b.beside(n)
        for n in (
            "bleu",
            "bart_score",
            "summac_zs",
            "embedding_spearman",
            "ctc_embedding_relevance",
            "unieval_fluency",
        )
    ] == ["reference", "source", "source", "reference", "reference", ""]


def test_anchors_are_means_of_grades():
    t = b.anchors(["bleu", "token_f1_true", "embedding_spearman"], shipped(), 4)
    assert (
        t["identity"].tolist() == pytest.approx([100, 1, 1], abs=1e-6) and (t["random"] < t["identity"]).all()
    )
    x = b.bulletins("test", 4)
    moved = pd.DataFrame(dict(id=x["id"], hypothesis=np.roll(x["reference"], 1), reference=x["reference"]))
    assert t.at["bleu", "random"] == pytest.approx(
        grade(moved, {}, ["bleu"], progress=False)["value"].mean(), abs=1e-12
    )


def test_costs_are_put_on_file_and_on_the_card(tmp_path):
    got = b.costs(3, ["bleu", "embedding_spearman"], shipped(), log=lambda s: None)
    b.keep_costs(got, tmp_path / "costs.json")
    kept = json.loads((tmp_path / "costs.json").read_text())
    assert (
        kept == got
        and kept["metrics"]["embedding_spearman"]["read_by"] == "tiny-encoder"
        and kept["metrics"]["bleu"]["read_by"] == ""
    )
    assert "the reference in place of the summary 100;" in anchored(
        "bleu", kept
    ) and "means over 3 bulletins by tiny-encoder" in anchored("embedding_spearman", kept)


def test_every_metric_that_shipped_models_allow_has_costs_on_file():
    kept, known = (json.loads((root() / f).read_text())["metrics"] for f in (b.COSTS_KEPT, KEPT))
    assert set(known) <= set(kept) <= set(b.scores_asked("all")), (
        "after a new metric: uetrust bench --part costs"
    )
    assert all(
        r["pairs_per_s"] > 0 and (r["random"] is not None) == bool(r["beside"])
        for n, r in kept.items()
        if n not in UNDEFINED
    )
    assert "**Speed**" in card("rouge_l") and "**Anchors** the reference in place of the summary 1;" in card(
        "rouge_l"
    )


UNDEFINED = set()  # Metrics that give no number to these texts
