"""A scorer and metrics for tasks of Inspect, run by Inspect itself with its mock model."""

import pandas as pd
import pytest

from tests.helpers.clients import programs, run_client
from tests.helpers.paths import ROOT
from uetrust import auroc, prr
from uetrust.cli.cli import main

pytestmark = pytest.mark.long
RIGHT, SURPRISAL = [1.0, 0.0, 1.0, 0.0, 1.0], [0.1, 2.0, 0.5, 1.0, 1.5]


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    return run_client(programs(), "run_inspect.py", folder, PYTHONPATH=str(ROOT), HOME=str(folder))


def test_inspect_shows_prr_with_its_interval_and_auroc(task):
    found = prr(RIGHT, SURPRISAL)
    expected = dict(prr=found.value, auroc=auroc(RIGHT, SURPRISAL), prr_lo=found.lo, prr_hi=found.hi)
    assert task["metrics"] == pytest.approx(expected)


def test_a_method_that_no_reply_allows_is_refused_before_the_task(task):
    assert "missing are {'lex_sim'" in task["refused"]


def test_score_and_audit_read_the_log(task, tmp_path, capsys):
    out = tmp_path / "scores.csv"
    assert main(["score", task["log"], "--method", "msp", "--out", str(out)]) == 0
    table = pd.read_csv(out, index_col="id").loc[[f"q{i}" for i in range(6)]]
    assert table["uetrust.quality"].tolist() == [*RIGHT, 1.0]
    assert table["uetrust.msp"].tolist()[:5] == table["msp"].tolist()[:5] == SURPRISAL
    assert table[["uetrust.msp", "msp"]].iloc[5].isna().all()
    capsys.readouterr()
    assert main(["audit", str(out), "--truth", "uetrust.quality", "--uncertainty", "uetrust.msp"]) == 0
    assert "Under uetrust.quality, uetrust.msp is first" in capsys.readouterr().out
