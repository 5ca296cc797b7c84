"""Tools on the command line: exams, and parts of the bench."""

import json
import re

import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from uetrust.cli.cli import main
from uetrust.cli.command import EXAMPLES, HELP_GROUPS
from uetrust.report.lessons.exam import exam_markdown
from uetrust.scoring import drift


def test_exam_on_the_command_line(tmp_path, capsys):
    assert main(["exam", "--seed", "7", "--questions", "3"]) == 0
    assert capsys.readouterr().out == exam_markdown(7, 3)
    assert main(["exam", "--out", str(tmp_path / "a.md")]) == 0
    assert (tmp_path / "a.md").read_text() == exam_markdown(7, 10)
    assert main(["exam", "--questions", "0"]) == 2
    assert "at least 1 question" in capsys.readouterr().err


def test_the_example_files_are_written_once_and_every_command_named_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["example"]) == 0
    said = capsys.readouterr().out.splitlines()
    lines = [line.split()[1:] for line in said if line.startswith("  uetrust")]
    kept = ROOT / "data" / "examples"
    for path in kept.iterdir():
        assert (tmp_path / "data" / "examples" / path.name).read_bytes() == path.read_bytes()
    replies = tmp_path / "data" / "examples" / "replies.jsonl"
    replies.write_text("".join(replies.read_text().splitlines(keepends=True)[:3]))  # test_readme.py takes all
    assert len(lines) == 3 and [main(line) for line in lines] == [0, 0, 0]
    mine = tmp_path / "data" / "examples" / "pilot.csv"
    mine.write_text("my own scores")
    capsys.readouterr()
    assert main(["example"]) == 2 and mine.read_text() == "my own scores"
    assert "name another folder" in capsys.readouterr().err


def test_the_scores_of_today_are_a_table_that_counts_the_four_texts_from_1(tmp_path, monkeypatch):
    found = drift.drift_check({}, ["rouge_l", "chrf"])
    monkeypatch.setattr(drift, "drift_check", lambda models, progress: found)
    stored, out = tmp_path / "stored.json", tmp_path / "today.csv"
    assert main(["canaries", "--file", str(stored), "--write", "--out", str(out)]) == 0
    table = pd.read_csv(out).set_index(["metric", "text"])["value"]
    kept = json.loads(stored.read_text())["metrics"]
    assert list(table.index) == [(name, i) for name in kept for i in (1, 2, 3, 4)]
    assert table.tolist() == pytest.approx([value for about in kept.values() for value in about["values"]])


def test_every_command_stands_once_below_its_group(capsys):
    assert main(["--help"]) == 0
    shown, places = capsys.readouterr().out, []
    for title in HELP_GROUPS:
        places.append(shown.index(f"─ {title} ─"))
    assert places == sorted(places) and len(places) == 4
    parts = [shown[start:end] for start, end in zip(places, [*places[1:], shown.index("─ Everywhere ─")])]
    listed = [name for part in parts for name in re.findall(r"^│ ([a-z-]+) +[A-Z]", part, re.M)]
    stages = "generate read compare score fill export".split()
    assert sorted(listed) == sorted([*(name for name in EXAMPLES if " " not in name), "bank"])
    assert main(["bank", "--help"]) == 0
    shown = capsys.readouterr().out
    assert (
        re.findall(r"^│ ([a-z-]+) +[A-Z]", shown, re.M) == "generate read compare score fill export".split()
    )
    assert sorted(stages) == sorted("generate read compare score fill export".split())
