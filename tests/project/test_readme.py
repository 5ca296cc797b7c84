"""The commands that README.md and the page on own outputs print run as they are printed, in their order."""

import json
import re
import shlex
import shutil

import pytest

from tests.helpers.command_runs import ROOT, copy_replies, judge_server, run, small_project
from uetrust.cli import cli  # noqa: F401 -- registers the subcommands
from uetrust.cli.command import APP

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = json.loads((ROOT / "nbs" / "your_own_outputs.ipynb").read_text(encoding="utf-8"))["cells"]
ELSEWHERE = {  # Commands that other tests run
    "make reproduce": "test_make.py",
    "make test": "is what runs this",
    "pip install 'uetrust-0.1.0-py3-none-any.whl[models,lexical]'": "test_wheel.py installs a wheel",
    "uetrust audit scores.csv --quality human --uncertainty msp": "test_wheel.py runs it from a wheel",
}


def printed(markdown):
    "Commands of the fenced blocks that name no language"
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", markdown, re.M | re.S)
    return [line for language, block in blocks if not language for line in block.splitlines() if line.strip()]


def inline(markdown):
    return re.findall(r"`(uetrust [^`]+)`", markdown)


COMMANDS = [line for line in printed(README) if line not in ELSEWHERE]
PAGE_TEXT = "\n".join("".join(cell["source"]) for cell in PAGE if cell["cell_type"] == "markdown")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A small project outside the checkout; commands that follow each other run in it"
    return small_project(tmp_path_factory.mktemp("readme"))


@pytest.fixture(scope="module")
def judge():
    with judge_server() as address:
        yield address


def test_nothing_is_left_out():
    assert len(COMMANDS) == 19 and set(ELSEWHERE) <= set(printed(README))
    assert all(line.startswith("uetrust ") for line in COMMANDS)


def at_hand(line):
    "A command as printed; where smollm2 was not fetched, a shipped model takes its place"
    from uetrust.models.gguf import converted_folder

    if converted_folder("smollm2") is not None:
        return line
    return "uetrust models" if "models get" in line else line.replace("smollm2", "data/models/tiny-llama")


@pytest.fixture(scope="module")
def done(project, judge):
    "Every command of README.md, after those above it"
    return {line: run(project, at_hand(line.replace("http://127.0.0.1:8000", judge))) for line in COMMANDS}


@pytest.mark.long
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_readme_runs_as_printed(line, done):
    found = done[line]
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.strip() and "Traceback" not in found.stderr


@pytest.mark.long
def test_the_chain_of_the_readme_ends_in_a_verdict(done):
    (audit,) = [line for line in COMMANDS if line.startswith("uetrust audit")]
    assert "May be quoted" in done[audit].stdout
    (scored,) = [line for line in COMMANDS if "examples/replies.jsonl" in line]
    assert int(re.search(r"(\d+) methods", done[scored].stdout)[1]) >= 37


def answers_of_the_page(questions):
    "Rows of the table of several systems that the page shows, for as many questions"
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE_TEXT.splitlines()
        if line.startswith("|")
    ]
    names, _, *rows = cells
    rows = [dict(zip(names, row)) for row in rows]

    def asked(i, row):
        golds, right = json.loads(row["references"]), int(row["human"]) ^ (i % 4 == 0)
        return row | dict(id=f"q{i}", references=golds, human=right)

    return [asked(i, row) for i in range(questions) for row in rows]


def test_the_page_on_own_outputs_runs_as_printed(tmp_path):
    copy_replies(tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "data")
    shutil.copy(ROOT / "data" / "examples" / "texts.jsonl", tmp_path)
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, answers_of_the_page(20))) + "\n")
    replies = [json.loads(line) for line in (tmp_path / "replies.jsonl").read_text().splitlines()]
    judged = [reply | dict(human=i % 3) for i, reply in enumerate(replies)]
    (tmp_path / "replies.jsonl").write_text("\n".join(map(json.dumps, judged)) + "\n")
    lines = printed(PAGE_TEXT)
    assert len(lines) == 8
    for line in lines:
        found = run(tmp_path, at_hand(line))
        assert found.returncode == 0, found.stderr[-2000:]
        if line.startswith("uetrust audit"):
            assert "May be quoted" in found.stdout
    assert (tmp_path / "runs" / "mine" / "scores.csv").is_file()


@pytest.mark.parametrize("line", [*inline(README), *inline(PAGE_TEXT)])
def test_a_command_within_a_sentence_is_one_that_the_parser_takes(line):
    words = shlex.split(re.sub(r"\bFILE\b", "x.csv", line))[1:]
    if len(words) == 1:
        assert words[0] in APP or words[0] == "--version"
    else:
        APP.parse_args(words, exit_on_error=False, print_error=False)


def test_the_files_that_it_names_are_there():
    named = set(re.findall(r"data/examples/\S+?\.(?:csv|jsonl)", README))
    assert named and all((ROOT / name).is_file() for name in named)
