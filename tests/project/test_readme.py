"""README.md says what this is in a minute; its commands and those of pages beside it run as printed."""

import json
import re
import shlex

import pytest
import yaml

from tests.helpers.command_runs import ROOT, copy_replies, judge_server, run, small_project
from tests.helpers.pages import page_markdown
from uetrust.cli import cli  # noqa: F401 -- registers the subcommands
from uetrust.cli.command import APP

README = (ROOT / "README.md").read_text(encoding="utf-8")
ELSEWHERE = {  # Commands that other tests run
    "make reproduce": "test_make.py",
    "make test": "is what runs this",
    "pip install .": "test_wheel.py installs a wheel of it",
    "pip install '.[models,lexical]' ./data/models": "test_wheel.py and `make setup` install these",
    "pip install 'dist/uetrust-0.1.0-py3-none-any.whl[models,lexical]' "
    "dist/uetrust_models-0.1.0-py3-none-any.whl": "test_release.py builds and test_wheel.py installs them",
}


TEXTS = {"README": README} | {
    page: page_markdown(page)
    for page in ("index", "findings", "install", "your_own_outputs", "generate_and_read", "where_things_are")
}


def printed(text):
    "(command, output or None) of each block without a language; output follows a line that begins with $"
    blocks = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        told = re.split(r"^\$ (.*)\n", block, flags=re.M)
        if not language and len(told) > 1:
            assert not told[0], f"output without a command: {told[0]!r}"
            blocks.append([*zip(told[1::2], told[2::2])])
        elif not language:
            blocks.append([(line, None) for line in block.splitlines() if line.strip()])
    return blocks


def reads_examples(page, block):
    "Whether a block runs in the folder of the shipped examples, and not in that of a reader's own files"
    return page == "generate_and_read" or (page == "your_own_outputs" and "data/examples" in str(block))


CHAINS = {}  # (page, reads examples) -> commands that run one after the other in one folder
for name, words in TEXTS.items():
    for block in printed(words):
        of_block = [pair for pair in block if pair[0] not in ELSEWHERE]
        if of_block:
            CHAINS.setdefault((name, reads_examples(name, block)), []).extend(of_block)
RUN = [
    pytest.param(chain, *pair, marks=[] if chain[0] == "README" else [pytest.mark.long], id=pair[0])
    for chain, pairs in CHAINS.items()
    for pair in pairs
]


@pytest.fixture(scope="module")
def judge():
    with judge_server() as address:
        yield address


@pytest.fixture(scope="module")
def done(tmp_path_factory, judge):
    "Results of every command of a chain in a project outside the checkout, after those above it"
    kept = {}

    def of(chain):
        if chain not in kept:
            at = small_project(tmp_path_factory.mktemp("readme") / "project")
            write_own_files(at)
            kept[chain] = {}
            for line, _ in CHAINS[chain]:
                shown = at_hand(line).replace("http://127.0.0.1:8000", judge)
                kept[chain][line] = run(at, shown)
        return kept[chain]

    return of


def at_hand(line):
    "A command as printed; where smollm2 was not fetched, a shipped model takes its place"
    from uetrust.models.gguf import converted_folder

    if converted_folder("smollm2") is not None:
        return line
    return "uetrust models" if "models get" in line else line.replace("smollm2", "data/models/tiny-llama")


def write_own_files(at):
    "Files that the page on own outputs calls a reader's own"
    copy_replies(at)
    texts = (ROOT / "data" / "examples" / "texts.jsonl").read_text().splitlines(keepends=True)
    (at / "texts.jsonl").write_text("".join(texts[:3]))
    answers = answers_of_the_page(20)
    (at / "answers.jsonl").write_text("\n".join(map(json.dumps, answers)) + "\n")
    replies = [json.loads(line) for line in (at / "replies.jsonl").read_text().splitlines()]
    judged = [reply | dict(human=i % 3) for i, reply in enumerate(replies)]
    (at / "replies.jsonl").write_text("\n".join(map(json.dumps, judged)) + "\n")


def answers_of_the_page(questions):
    "Rows of the table of several systems that the page shows, for as many questions"
    table = re.search(r"^\| id \| system .*?\n\n", TEXTS["your_own_outputs"], re.M | re.S)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line]
    names, _, *rows = cells
    rows = [dict(zip(names, row)) for row in rows]

    def asked(i, row):
        golds, right = json.loads(row["references"]), int(row["human"]) ^ (i % 4 == 0)
        return row | dict(id=f"q{i}", references=golds, human=right)

    return [asked(i, row) for i in range(questions) for row in rows]


def test_nothing_is_left_out():
    assert {chain: len(pairs) for chain, pairs in CHAINS.items()} == {
        ("README", False): 1,
        ("your_own_outputs", True): 12,
        ("your_own_outputs", False): 6,
        ("generate_and_read", True): 6,
        ("install", False): 2,
    }
    assert set(ELSEWHERE) <= {line for text in TEXTS.values() for block in printed(text) for line, _ in block}
    assert all(line.startswith("uetrust ") for pairs in CHAINS.values() for line, _ in pairs)
    assert all(output for _, output in CHAINS["README", False])


@pytest.mark.parametrize("chain, line, output", RUN)
def test_a_command_runs_as_printed_and_prints_what_is_printed(chain, line, output, done):
    found = done(chain)[line]
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.strip() and "Traceback" not in found.stderr
    assert output is None or found.stdout == output


def test_a_block_with_output_is_read_as_command_and_output():
    text = "```\n$ uetrust a\n1 2\n\n$ uetrust b\n3\n```\n```\nmake c\n```\n```json\n{}\n```\n"
    assert printed(text) == [[("uetrust a", "1 2\n\n"), ("uetrust b", "3\n")], [("make c", None)]]
    with pytest.raises(AssertionError, match="output without a command"):
        printed("```\n1 2\n$ uetrust a\n```\n")


def verdicts(found):
    "Output of the audits of a chain"
    return [one.stdout for line, one in found.items() if line.startswith("uetrust audit")]


@pytest.mark.long
def test_answers_of_systems_end_in_a_verdict_and_texts_of_a_model_in_a_file(done):
    found = done(("your_own_outputs", False))
    (audit,) = verdicts(found)
    assert "May be quoted" in audit
    assert "runs/mine/scores.csv" in found["uetrust score runs/mine"].stdout


@pytest.mark.long
def test_replies_end_in_a_verdict_by_every_method_that_they_allow(done):
    found = done(("your_own_outputs", True))
    (audit,) = verdicts(found)
    assert "May be quoted" in audit
    (scored,) = [
        line for line in found if "examples/replies.jsonl" in line and "--out scores.parquet" in line
    ]
    assert int(re.search(r"(\d+) methods", found[scored].stdout)[1]) >= 37


def inline(text):
    return re.findall(r"`(uetrust [^`]+)`", text)


@pytest.mark.parametrize("line", [line for text in TEXTS.values() for line in inline(text)])
def test_a_command_within_a_sentence_is_one_that_the_parser_takes(line):
    words = shlex.split(re.sub(r"\bFILE\b", "x.csv", line))[1:]
    group, names = (APP["bank"], words[1:]) if words[0] == "bank" else (APP, words)
    if len(names) == 1:
        assert names[0] in group or names[0] == "--version"
    else:
        APP.parse_args(words, exit_on_error=False, print_error=False)


def test_the_files_that_the_texts_name_are_there():
    named = {
        name for text in TEXTS.values() for name in re.findall(r"data/examples/\S+?\.(?:csv|jsonl)", text)
    }
    assert named and all((ROOT / name).is_file() for name in named)


# The first minute
def numbers(text):
    "Numbers as a reader sees them: without addresses of links, comments, and names such as F1"
    seen = re.sub(r"\]\([^)]*\)|<!--.*?-->", "", text, flags=re.S)
    return re.findall(r"(?<![A-Za-z])\d[\d,.]*", seen)


def test_the_readme_is_read_in_a_minute():
    before = README[: README.index("```")]
    assert len(README.splitlines()) <= 80
    assert len(numbers(before)) <= 10 and len(before.split()) <= 200
    assert [line for line in README.splitlines() if len(line.split()) > 75] == []


def test_numbers_are_counted_as_a_reader_sees_them():
    assert numbers("<!-- 1 --> F1 of GPT-3.5: 0.05 [-0.01, 1,234](x_7.csv)") == [
        "3.5",
        "0.05",
        "0.01,",
        "1,234",
    ]


def test_the_bibtex_entry_is_that_of_the_citation_file():
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    entry = dict(re.findall(r"^  (\w+) = \{+(.*?)\}+,?$", README, re.M))
    author = " and ".join(author["name"] for author in told["authors"])
    year = str(told["date-released"])[:4]
    assert entry == dict(title=told["title"], author=author, year=year, version=told["version"])
