"""The examples of every subcommand run as they are printed: with the real `uetrust`, outside the checkout."""

import os
import shlex
import subprocess
import urllib.error
import urllib.request
from time import monotonic, sleep

import pandas as pd
import pytest

from tests.helpers.command_runs import (
    BIN,
    ROOT,
    copy_replies,
    judge_server,
    run,
    save_published_bart,
    small_project,
    write_scores,
    write_summaries,
)
from uetrust.cli import cli  # noqa: F401 -- registers the subcommands
from uetrust.cli.command import EXAMPLES
from uetrust.core.registry import _unit_scale
from uetrust.core.roles import declared_scale
from uetrust.core.settings import mirror
from uetrust.models.gguf import converted_folder
from uetrust.papers.he2024.own_tables import write_synthetic_run

# In a project; others in an empty folder
PROJECT = ["expected", "run", "report", "plan", "bank export", "bank fill", "slides"]
BEFORE = {
    "bank read": ["bank generate"],
    "bank compare": ["bank generate"],
    "bank score": ["bank read", "bank compare"],
    "report": ["bank fill", "run"],
    "bank export": ["bank fill"],
}
PUBLIC = ["cells", "people"]  # Some of their data are public and not in the repository
WROTE = {  # What the examples leave, relative to their folder
    "audit": "audit.html",
    "refine": "refined.html",
    "expected": "expected.csv",
    "score": "scores.parquet",
    "bank generate": "my-bank/bank.json",
    "bank read": "my-bank/unconditional",
    "bank compare": "my-bank/entailments",
    "bank score": "my-bank/scores.csv",
    "convert": "models/bartscore-para/model.safetensors",
    "bank fill": "runs/smoke/banks/bulletin--tiny-bart/texts/bank.json",
    "run": "runs/smoke/notebooks/human.ipynb",
    "report": "runs/smoke/report/index.html",
    "bank export": "runs/smoke-export/README.md",
}


WATCHED = "bank generate", "score", "audit"  # They may write nothing into the checkout


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    "Function that runs the examples of a subcommand once, after those that it needs"
    folders = dict(outside=tmp_path_factory.mktemp("outside"), project=tmp_path_factory.mktemp("project"))
    small_project(folders["project"])
    write_scores(folders["outside"])
    write_summaries(folders["outside"], "mine.jsonl")
    done = {}

    def once(name):
        if name not in done:
            for other in BEFORE.get(name, []):
                once(other)
            at = folders["project" if name in PROJECT else "outside"]
            if name in ("report", "bank export"):  # `make reproduce` runs the pages of the bank
                _run_pages(at)
            if name == "expected":
                write_synthetic_run(at / "runs" / "paper-50", banks=["aeslc--gpt-3.5"])
            if name == "convert":
                save_published_bart(at)
            if name in ("score", "split"):  # The --out of score is the input of audit
                at = tmp_path_factory.mktemp("replies")
                copy_replies(at)
            do = _asked_judge if name in ("judge", "split") else run
            done[name] = [(example, do(at, example)) for example in EXAMPLES[name]], at
        return done[name]

    return once


def _run_pages(at):
    for page in ("02_methods", "03_quality"):
        name = page[3:] + "--bulletin--tiny-bart"
        if (at / f"runs/smoke/notebooks/{name}.ipynb").exists():
            continue
        told = "profile=smoke bank=bulletin--tiny-bart"
        done = run(
            at, f"uetrust run nbs/experiments/banks/{page}.ipynb runs/smoke/notebooks/{name}.ipynb {told}"
        )
        assert done.returncode == 0, done.stderr


def _asked_judge(at, line):
    with judge_server() as address:
        assert "http://127.0.0.1:8000" in line
        return run(at, line.replace("http://127.0.0.1:8000", address))


LONG = "bank fill", "run", "report", "bank export", "slides"  # They make a bank, its pages, or all slides
NAMES = [
    pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in EXAMPLES if name != "serve"
]


@pytest.mark.parametrize("name", [name for name in NAMES if name.values != ("serve",)])
def test_the_examples_run_as_printed(name, ran, monkeypatch):
    if name in PUBLIC and mirror() is None:
        pytest.skip("public data are not at hand")
    if name == "models" and converted_folder("smollm2") is None:
        pytest.skip("smollm2 was not fetched: `make smollm2` fetches it")
    monkeypatch.setenv("BROWSER", "true")  # What `--open` starts
    before = _changes() if name in WATCHED else None
    examples, at = ran(name)
    assert before is None or before == _changes(), "an example wrote into the checkout"
    for example, done in examples:
        if "MingZhong" in example:  # Tests never reach the hub
            assert done.returncode == 2 and "cannot be fetched: HF_HUB_OFFLINE is set" in done.stderr
            continue
        assert done.returncode == 0, (example, done.stderr[-2000:])
        assert done.stdout.strip() and "Traceback" not in done.stderr, example
        assert not any(sign in example for sign in "<>|$*")
    if name == "score":
        assert len(pd.read_parquet(at / "scores.parquet")) == 4
    if name in WROTE:
        assert (at / WROTE[name]).exists(), WROTE[name]


def _changes():
    git = ["git", "-C", str(ROOT), "status", "--porcelain", "--ignored"]
    return subprocess.run(git, capture_output=True, text=True).stdout


def test_every_command_has_two_to_four_examples():
    assert not {name: examples for name, examples in EXAMPLES.items() if not 2 <= len(examples) <= 4}


def test_the_example_of_serve_answers(tmp_path):
    words = shlex.split(EXAMPLES["serve"][0].replace("--port 8000", "--port 0"))
    assert words[-2:] == ["--port", "0"]
    env = os.environ | dict(PYTHONUNBUFFERED="1")
    server = subprocess.Popen([str(BIN / words[0]), *words[1:]], cwd=tmp_path, env=env, stdout=-1, text=True)
    try:
        address = server.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:") and _answers(f"{address}/models")
    finally:
        server.terminate()
        server.wait()


def _answers(address, seconds=20):
    end = monotonic() + seconds
    while monotonic() < end:
        try:
            return b"tiny-llama" in urllib.request.urlopen(address, timeout=5).read()
        except urllib.error.URLError:
            sleep(0.1)
    return False


# What a column of the pilot holds, where its name alone does not say
UNITS = dict(rouge="[0,1]", nli="[0,1]", judge="[1,10]", msp="[0,inf]", entropy="[0,inf]", human="likert 1-5")


def test_every_number_of_an_example_file_is_one_that_its_score_can_take():
    "A score that a tool of the registry knows lies on the scale that it declares."
    known = 0
    for path in sorted((ROOT / "data" / "examples").glob("*.csv")):
        for name, values in pd.read_csv(path).items():
            scales = [declared_scale(name), _unit_scale(UNITS[name]) if name in UNITS else None]
            for low, high in filter(None, scales):
                known += 1
                assert values.dropna().between(low, high).all(), (path.name, name, low, high)
    assert known >= len(UNITS)
