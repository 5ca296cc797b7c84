"""What the tests of safety_cases share."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers.command_runs import REPLIES, ROOT, write_scores
from uetrust.cli.cli import main


def pieces(key):
    return [key[i : i + 8] for i in range(len(key) - 7)]


CASES = ROOT / "../shared/cases"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_scores(tmp_path)
    shutil.copy(REPLIES, tmp_path / "replies.jsonl")
    return tmp_path


def told(capsys, line):
    "(exit code, stdout, stderr) of a command line"
    code = main(line.split() if isinstance(line, str) else list(line))
    out = capsys.readouterr()
    return code, out.out, out.err


# Notebook parameters


@pytest.fixture
def params():
    if not (CASES / "j01_params.ipynb").exists():
        pytest.skip("the shared cases are not at hand")
    return CASES / "j01_params.ipynb"


def printed(path):
    cells = json.loads(path.read_text())["cells"]
    return "".join(text for cell in cells for out in cell.get("outputs", []) for text in out.get("text", []))


def has_begun(process):
    "Whether our own code runs: it handles SIGTERM, as Python alone does not. Without /proc, after a second."
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        time.sleep(1)
        return True
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status.read_text(), re.M)
    return process.poll() is not None or not caught or int(caught[1], 16) >> (signal.SIGTERM - 1) & 1


def interrupted(at, words, delay, number=signal.SIGINT, begun=lambda process: True):
    "Outcome of a process that gets a signal some seconds after it has begun; None when it had ended before."
    env = os.environ | dict(PYTHONPATH=str(ROOT))
    begin = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process = subprocess.Popen(words, cwd=at, env=env, preexec_fn=begin, start_new_session=True, **pipes)
    while not begun(process):
        time.sleep(0.001)
    time.sleep(delay)
    if running := process.poll() is None:
        os.killpg(process.pid, number)
    out, err = process.communicate(timeout=90)
    assert "Traceback" not in err and "Exception ignored" not in err, err
    return (process.returncode, out, err) if running else None
