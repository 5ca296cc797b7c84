"""The run of a profile stops without a traceback."""

# ruff: noqa: F811

import re
import signal
import subprocess
import sys
import time

import pytest

from tests.helpers.command_runs import ROOT
from tests.helpers.safety_cases import (
    folder,  # noqa: F401
    interrupted,
    params,  # noqa: F401
)
from uetrust.cli import reproduce
from uetrust.cli.notebooks import Job


@pytest.fixture
def two(tmp_path):
    "A project with a profile of two studies, and the command that runs it."
    for name in ("nbs", "data", "uetrust"):
        (tmp_path / name).symlink_to(ROOT / name)
    text = "\n[profile.two]\nprinted_pairs =\nstudies = human wrong_documents\n"
    (tmp_path / "settings.ini").write_text((ROOT / "settings.ini").read_text() + text)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".library").touch()
    return tmp_path, [str(ROOT / "scripts" / "reproduce.py"), "two", "2"]


@pytest.mark.parametrize("delay", [1.0, 4.0, 8.0])
def test_a_stopped_reproduction_shows_no_traceback(two, delay):
    at, words = two
    done = interrupted(at, [sys.executable, *words], delay)
    if done:
        assert done[0] == 130 and "stopped; the same command goes on" in done[2], done


LOST = """
import os, runpy, signal, sys

class Loses:
    def find_spec(self, name, *more):
        if name == "uetrust.cli.reproduce":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except BaseException:
                pass

sys.meta_path.insert(0, Loses())
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_ctrl_c_that_a_library_loses_while_it_is_imported_stops_a_reproduction(two):
    at, words = two
    listens = dict(preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    command = [sys.executable, "-c", LOST, *words]
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, **listens)
    assert done.returncode == 130 and "stopped; the same command goes on" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (at / "runs" / "two").exists()


def lines_of_a_run(monkeypatch, capsys, fills, seconds=2.5):
    "What a run of one page prints; `fills`: whether the page makes a bank"

    def slow(words, context):
        time.sleep(seconds)
        return 0, "ok slow.ipynb"

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(reproduce, "MOST_SILENCE", 0)
    monkeypatch.setattr(reproduce, "_run_in_process", slow)
    page = Job("slow", "slow.ipynb", dict(bank="none"), (), fills)
    monkeypatch.setattr(reproduce, "due_jobs", lambda name, again: [page])
    for name in ("warm_context", "_write_seconds"):
        monkeypatch.setattr(reproduce, name, lambda *given: None)
    assert reproduce.run_profile("demo") == []
    return capsys.readouterr().out.splitlines()


def test_a_run_that_makes_a_bank_for_the_first_time_promises_no_minutes(monkeypatch, capsys):
    lines = lines_of_a_run(monkeypatch, capsys, True, 0)
    assert lines[0] == "1 notebook; then runs/demo/report/index.html is written"
    assert lines[-1].endswith("(1 of 1 notebooks)") and "about" not in " ".join(lines)


def test_a_run_says_first_how_long_it_takes_and_then_that_it_goes_on(monkeypatch, capsys):
    first, *lines = lines_of_a_run(monkeypatch, capsys, False)
    assert re.fullmatch(r"1 notebook, about \d+ s; then runs/demo/report/index.html is written", first)
    assert lines[0] == "running slow" and lines[1].startswith("still running slow (0 of 1 notebooks, about")
    assert lines[-1].startswith("ok slow.ipynb (1 of 1 notebooks, about")
