"""Progress of long work: a bar on a terminal, elsewhere at most one line a minute, through the command."""

import os
import pty
import re
import subprocess
import termios
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from tqdm import tqdm

from tests.helpers.command_runs import BIN, judge_server, small_project, write_summaries
from uetrust.core.progress import progress_options

WORK = "generate bank --model data/models/tiny-bart --data bulletin:test:4 --samples 1 --max-new-tokens 8"
ASK = "judge mine.jsonl --model my-judge --families wi_in --dims consistency --endpoint"
PAGE = "run nbs/experiments/people/01_human.ipynb human.ipynb profile=smoke draws=20"


def progress_lines(at, words, seconds=None, stderr=subprocess.PIPE):
    "What a command writes to standard error, with so many seconds between two lines"
    env = {name: value for name, value in os.environ.items() if not name.startswith("TQDM_")}
    env |= {} if seconds is None else dict(TQDM_MININTERVAL=str(seconds))
    command = [str(BIN / "uetrust"), *words.split()]
    done = subprocess.run(command, cwd=at, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_lines_elsewhere_say_how_much_is_done(tmp_path):
    lines = progress_lines(tmp_path, WORK, seconds=0).splitlines()
    found = [line for line in lines if re.fullmatch(r".+: \d+ of 4 sources, about \d+ s left", line)]
    assert found and "4 of 4 sources" in found[-1]
    assert not any("%|" in line for line in lines)


def test_the_time_left_follows_the_mean_speed_and_is_printed_at_most_once_a_while(monkeypatch, capsys):
    "By a clock of ours: ten texts, of which the first is slow; a line after 30 seconds or more"
    clock = [1000.0]
    monkeypatch.setattr("tqdm.std.time", lambda: clock[0])
    monkeypatch.setenv("TQDM_MININTERVAL", "30")
    with tqdm(total=10, desc="texts", unit="text", disable=False, **progress_options()) as bar:
        for took in (40, 2, 2, 2, 34, 4, 2, 1, 1, 2):
            clock[0] += took
            bar.update()
    assert [line for line in capsys.readouterr().err.splitlines() if line] == [
        "texts: 1 of 10 texts, about 6 min left",  # 9 of 40 s
        "texts: 5 of 10 texts, about 80 s left",  # 5 of (40 + 2 + 2 + 2 + 34) / 5 = 16 s
    ]


@pytest.fixture
def ask(tmp_path):
    "Arguments that ask a judge about three texts"
    write_summaries(tmp_path, "mine.jsonl")
    with judge_server() as address:
        yield f"{ASK} {address}/v1"


def test_short_work_is_silent_elsewhere(tmp_path, ask):
    assert progress_lines(tmp_path, ask) == ""
    (tmp_path / "mine.jsonl.replies.sqlite").unlink()
    assert "judge my-judge: 3 of 3 requests, about" in progress_lines(tmp_path, ask, seconds=0)


def test_a_terminal_shows_the_bar(tmp_path, ask):
    main, side = pty.openpty()
    termios.tcsetwinsize(side, (24, 80))
    with ThreadPoolExecutor() as pool:  # Who writes to a terminal waits for its reader
        shown = pool.submit(_all_of, main)
        progress_lines(tmp_path, ask, stderr=side)
        os.close(side)
        assert re.search(r"judge my-judge: 100%\|.* 3/3 ", shown.result())


def _all_of(descriptor):
    parts = []
    with suppress(OSError):  # The end of a terminal
        while part := os.read(descriptor, 4096):
            parts.append(part)
    return b"".join(parts).decode()


@pytest.mark.parametrize("seconds", [0, None])
def test_a_notebook_counts_its_cells(tmp_path, seconds):
    printed = progress_lines(small_project(tmp_path), PAGE, seconds)
    assert bool(re.search(r"^human: \d+ of \d+ cells, about", printed, re.M)) == (seconds == 0)
