"""One thread or two: every file and every printed line is the same, byte for byte."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers.paths import ROOT
from uetrust.data.datasets import load_samples
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import fill_local_bank
from uetrust.models.load import load_model
from uetrust.statistics.bank import compute_statistic

MODELS = ROOT / "data" / "models"
DATA = "bulletin:test:66"  # Two shards
BART, NLI, ENCODER = (str(MODELS / f"tiny-{name}") for name in ("bart", "nli", "encoder"))
METHODS = ["u0", "u1", "u2", "u3"]
# Subcommands that run one after the other in one process, as a user types them; what each prints is kept
SCRIPT = """
import contextlib, json, sys
from uetrust.cli.cli import main
for name, argv in json.loads(sys.argv[1]).items():
    with open(f"{name}.out", "w") as out, contextlib.redirect_stdout(out):
        assert main(argv) == 0, argv
"""
NUMBERS = dict(
    prr=["prr", "scores.csv", "--quality", "truth", "metric", "other", "--document", "doc"],
    audit=["audit", "scores.csv", "--quality", "truth", "--document", "doc", "--json"],
    dose=["dose", "scores.csv", "--truth", "truth", "--metric", "metric", "--json"],
    labels=["next-labels", "scores.csv", "--metric", "metric", "other", "--truth", "human"],
    power=["power", "scores.csv", "--quality", "truth", "--json"],
    guarantee=["guarantee", "scores.csv", "--quality", "truth", "--json"],
)
BANK = dict(
    generate=["generate", "bank", "--model", BART, "--data", DATA, "--samples", "2"],
    read=["read", "bank", "--model", BART, "--data", DATA],
    dropout=["read", "bank", "--model", BART, "--data", DATA, "--read", "mc_dropout"],
    compare=["compare", "bank", "--nli", NLI, "--encoder", ENCODER],
    score=["score", "bank", "--method", "all", "--out", "bank.csv"],
)
REPLIES = str(ROOT / "data" / "examples" / "replies.jsonl")
FILES = dict(
    methods=["score", REPLIES, "--method", "msp", "eigv", "ccp", "--out", "methods.csv"],
    metrics=["score", str(ROOT / "data" / "examples" / "summaries.jsonl"), "--format", "own", "--metric"],
)


def commands():
    "The subcommands, with the options that several share"
    for name in ("prr", "audit", "dose", "labels"):
        NUMBERS[name] += ["--uncertainty", *METHODS]
    NUMBERS["power"] += ["--uncertainty", *METHODS[:2]]
    NUMBERS["guarantee"] += ["--uncertainty", "u0"]
    for name in ("prr", "labels"):
        NUMBERS[name] += ["--out", f"{name}.csv"]
    BANK["generate"] += ["--max-new-tokens", "20"]
    FILES["metrics"] += ["rouge_l", "bertscore_f1", "bart_score", "--out", "metrics.csv"]
    return NUMBERS, BANK | FILES


NUMBERS, MODELLED = commands()


def start(at, commands, threads):
    "A process of its own with so many threads for torch and for numpy"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    env = os.environ | dict.fromkeys(names, str(threads)) | dict(PYTHONPATH=str(ROOT))
    return subprocess.Popen([sys.executable, "-c", SCRIPT, json.dumps(commands)], cwd=at, env=env)


def outcome(at, commands, threads):
    "Bytes of all files after the subcommands"
    process = start(at, commands, threads)
    assert process.wait() == 0
    return files(at)


def files(at):
    return {str(path.relative_to(at)): path.read_bytes() for path in sorted(at.rglob("*")) if path.is_file()}


@pytest.fixture
def two(tmp_path):
    "Two empty folders"
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
    return folders


def scores(n=3000):
    "Enough documents, columns and rows that products of matrices are divided over threads"
    rng = np.random.default_rng(5)
    truth = np.repeat(rng.normal(size=n // 3), 3) + rng.normal(size=n)
    table = dict(doc=np.arange(n) // 3, truth=truth > 0, metric=truth + rng.normal(size=n))
    table |= dict(other=rng.random(n) * (truth > 0), human=np.where(rng.random(n) < 0.5, truth > 0, np.nan))
    table |= {name: -truth + (k + 1) * rng.normal(size=n) for k, name in enumerate(METHODS)}
    return pd.DataFrame(table).astype(float)


def test_numbers_of_a_table_are_the_same_on_one_and_on_two_threads(two):
    for folder in two:
        scores().to_csv(folder / "scores.csv", index=False)
    found = [outcome(folder, NUMBERS, threads) for threads, folder in enumerate(two, 1)]
    assert {"prr.csv", "labels.csv", "audit.out"} <= set(found[0]) and found[0] == found[1]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    "A bank and scores, made on one thread without a stop"
    return outcome(tmp_path_factory.mktemp("quiet"), MODELLED, 1)


def test_a_bank_and_scores_of_files_are_the_same_on_one_and_on_two_threads(quiet, tmp_path):
    assert outcome(tmp_path, MODELLED, 2) == quiet
    assert sum(name.endswith(".parquet") for name in quiet) == 12 and b"nan" not in quiet["metrics.csv"]


def test_killed_on_one_thread_and_resumed_on_two_the_bytes_are_the_same(quiet, tmp_path):
    def shards():
        return sum(not path.name.startswith(".") for path in tmp_path.rglob("*.parquet"))

    for n, threads in ((1, 1), (4, 2), (7, 1)):
        process = start(tmp_path, BANK, threads)
        while shards() < n and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -9 and n <= shards() < 12, "it was to be killed before it ended"
    torn = outcome(tmp_path, BANK, 2)
    assert torn == {name: quiet[name] for name in torn} and "bank.csv" in torn


def test_a_library_that_uses_two_threads_writes_the_same_bank_and_keeps_its_threads(two):
    rows, settings = load_samples("bulletin:test:20"), Decoding(samples=2, max_new_tokens=20)
    before = torch.get_num_threads()
    try:
        for threads, folder in enumerate(two, 1):
            torch.set_num_threads(threads)
            fill_local_bank(folder / "b", "d", "g", rows, load_model(BART), settings, progress=False)
            compute_statistic("entailments", folder / "e", folder / "b", load_model(NLI), progress=False)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert files(two[0]) == files(two[1])
