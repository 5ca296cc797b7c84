"""What tests of commands as they are printed share: the real `uetrust`, folders outside the checkout, files
that the commands name, and a judge behind a local server."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import reduce
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd

from tests.helpers.forked import run_forked
from tests.helpers.paths import ROOT
from uetrust.cli import cli  # noqa: F401 -- registers the subcommands
from uetrust.cli.command import APP, EXAMPLES
from uetrust.data.bulletins import bulletins

BIN = Path(sys.executable).parent
REPLIES = ROOT / "tests" / "fixtures" / "outputs" / "openai_batch_output.jsonl"
SETTINGS = (ROOT / "settings.ini").read_text()
APPS = {name: reduce(lambda app, word: app[word], name.split(), APP) for name in EXAMPLES}  # By name
SHELL = set("|&;<>()$`*?[#~={}!\n")  # Signs that a shell reads
SMALL = """printed_pairs =
pair =
studies = human
banks = bulletin--tiny-bart
chapters = methods quality
metric_models =
items = 8
train_items = 12
"""


def run(at, line):
    "A line of a shell with the `uetrust` of this environment; alone it runs as a copy of a warm process"
    env = os.environ | dict(PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    env.pop("TQDM_DISABLE", None)
    env.setdefault("UETRUST_MIRROR", str((ROOT / "../shared/data").resolve()))
    if line.startswith("uetrust ") and not set(line) & SHELL:
        return run_forked(shlex.split(line)[1:], at, env)
    return subprocess.run(["bash", "-c", line], cwd=at, env=env, capture_output=True, text=True)


def small_project(at):
    "A project outside the checkout, whose profile smoke is one bank and one study"
    at.mkdir(exist_ok=True)
    ignored = shutil.ignore_patterns(".*")
    shutil.copytree(ROOT / "nbs", at / "nbs", ignore=ignored)  # A page runs in its own folder
    (at / "data").mkdir()
    for path in (ROOT / "data").iterdir():
        if path.name == "examples":  # What a command writes beside its file stays here
            shutil.copytree(path, at / "data" / path.name)
        else:
            (at / "data" / path.name).symlink_to(path)
    text, n = re.subn(r"(?<=\[profile.smoke\]\n).*?\n(?=\[)", SMALL + "\n", SETTINGS, flags=re.S)
    assert n == 1
    (at / "settings.ini").write_text(text)
    return at


def score_table(n=160):
    "Scores of n texts under every name that the commands print; people have judged half of them"
    rng = np.random.default_rng(0)
    truth = rng.normal(size=n)
    human = np.where(np.arange(n) % 4 < 2, np.clip(np.round(3 + truth, 1), 1, 5), np.nan)
    columns = dict(human=human, rouge=truth + rng.normal(size=n))
    columns |= dict(nli=truth + rng.normal(size=n), judge=np.clip(np.round(5 + truth), 1, 10))
    columns |= dict(words=rng.integers(5, 30, n), article=[f"a{i // 2}" for i in range(n)])
    columns |= dict(msp=rng.normal(size=n) - 2 * truth, entropy=rng.normal(size=n) - truth)
    return pd.DataFrame(dict(sample=[f"s{i}" for i in range(n)]) | columns)


def claim_table(n=60):
    "Claims of n articles by two systems; the last fifth has no labels"
    rng = np.random.default_rng(1)
    article = np.repeat(np.arange(n), 3)
    right = rng.random(3 * n) > 0.2
    known = np.where(article < 0.8 * n, right, np.nan)
    columns = dict(article=[f"a{i}" for i in article], system=np.array(["one", "two"])[article % 2])
    columns |= dict(claim=[f"claim {i}" for i in range(3 * n)], right=known)
    columns |= {name: rng.random(3 * n) - gain * right for name, gain in dict(msp=0.6, entropy=0.2).items()}
    return pd.DataFrame(columns)


def write_scores(at):
    "scores.csv, pilot.csv and claims.csv; scores.parquet has a column human"
    claim_table().to_csv(at / "claims.csv", index=False)
    table = score_table()
    table.to_csv(at / "scores.csv", index=False)
    table.to_csv(at / "pilot.csv", index=False)
    table.to_parquet(at / "scores.parquet")


def write_summaries(at, name):
    "Summaries with source and reference, of three bulletins"
    table = bulletins("test", 3)[["id", "source", "reference"]]
    table.assign(hypothesis=table["reference"]).to_json(at / name, orient="records", lines=True)


def copy_replies(at):
    shutil.copy(REPLIES, at / "replies.jsonl")


def save_published_bart(at):
    "bart_score.pth as it was published, and the folder of the checkpoint that it was trained from"
    import torch

    from uetrust.models.load import load_model

    tiny, folder = ROOT / "data" / "models" / "tiny-bart", at / "models" / "bart-large-cnn"
    shutil.copytree(tiny, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    for file in (at / "bart_score.pth", folder / "pytorch_model.bin"):
        torch.save(load_model(str(tiny)).model.state_dict(), file)


class Judge(BaseHTTPRequestHandler):
    "A server that gives every question the same answer"

    answer = "4"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        message = dict(role="assistant", content=self.answer)
        usage = dict(prompt_tokens=9, completion_tokens=1)
        body = json.dumps(dict(choices=[dict(index=0, message=message, finish_reason="stop")], usage=usage))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *given):
        pass


@contextmanager
def judge_server(answer="4"):
    "Address up to and without /v1"
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Judge", (Judge,), dict(answer=answer)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
