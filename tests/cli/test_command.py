"""Every subcommand has examples that its help shows and the parser takes; test_examples.py runs them."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
import pandas as pd
import pytest

from tests.helpers.command_runs import APPS, judge_server, run, write_scores, write_summaries
from tests.helpers.endpoints import SAMPLES, SETTINGS, endpoint, server, written
from uetrust import __version__
from uetrust.cli import command
from uetrust.cli.cli import main
from uetrust.cli.command import APP, EXAMPLES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    "The files that the examples name"
    at, rng = tmp_path_factory.mktemp("examples"), np.random.default_rng(0)
    truth = rng.normal(size=40)
    df = pd.DataFrame(dict(sample=[f"s{i}" for i in range(40)], human=truth, rouge=truth))
    df = df.assign(judge=np.clip(np.round(5 + truth), 1, 10), words=rng.integers(5, 30, 40))
    df = df.assign(msp=rng.normal(size=40) - truth, entropy=rng.normal(size=40))
    df.to_csv(at / "scores.csv", index=False)
    return at


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_of_a_command_shows_examples_that_the_parser_takes(name, capsys):
    for example in EXAMPLES[name]:
        words = shlex.split(example)
        assert " ".join(words).startswith(f"uetrust {name}")
        APP.parse_args(words[1:], exit_on_error=False, print_error=False)
    assert main([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert all("".join(f"example: {one}".split()) in "".join(shown.split()) for one in EXAMPLES[name])
    assert max(map(len, shown.splitlines())) <= 80


def counted_command(
    file: str,  # Table that is read
):
    "Count rows."


def summed_command(
    file: str,  # Table that is summed
):
    "Sum rows."


@dataclass
class Shared:
    "Options of several subcommands."

    most: int = 3  # Rows at most


def test_comments_become_the_help_of_the_subcommand_that_is_named_and_of_shared_options(monkeypatch):
    monkeypatch.setattr(command, "_SHOWN", waiting := [counted_command, Shared, summed_command])
    monkeypatch.setattr(command, "_RUNS", {counted_command: "counted", summed_command: "summed"})
    command.document(["counted"])
    assert "Table that is read" in counted_command.__doc__ and "Rows at most" in Shared.__doc__
    assert summed_command.__doc__ == "Sum rows." and waiting == [summed_command]
    command.document(["summed", "--help"])
    assert "Table that is summed" in summed_command.__doc__ and waiting == []


@pytest.mark.parametrize("names", [["rouge", "judge"], ["rouge,judge"], ["rouge, judge"]])
def test_lists_are_written_with_spaces_or_commas(folder, names, capsys):
    words = ["prr", str(folder / "scores.csv"), "--uncertainty", "msp", "--json"]
    assert main([*words, "--quality", *names]) == 0
    assert [row["metric"] for row in json.loads(capsys.readouterr().out)] == ["rouge", "judge"]


def test_a_confidence_is_an_uncertainty_turned_round(folder, tmp_path, capsys):
    df = pd.read_csv(folder / "scores.csv").assign(sure=lambda df: -df["msp"])
    df.to_csv(tmp_path / "s.csv", index=False)
    long = df.melt("sample", ["rouge", "sure"], "name", "value")
    long.to_csv(tmp_path / "long.csv", index=False)
    found = []
    for file, by in (
        ("s.csv", "--uncertainty=msp"),
        ("s.csv", "--confidence=sure"),
        ("long.csv", "--confidence=sure"),
    ):
        assert main(["prr", str(tmp_path / file), "--quality", "rouge", by, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)[0]["value"])
    assert found[0] == found[1] == found[2] and found[0] > 0.2


@pytest.mark.parametrize(
    "words,says",
    [
        (["prr", "F", "--quality", "rouge", "--uncertanty", "msp"], "Did you mean --uncertainty?"),
        (["prr", "F", "--quality", "rouge", "--area", "men"], 'Did you mean "mean"?'),
        (["scroe", "F"], 'Did you mean "score"?'),
        (["prr", "F", "more", "--quality", "rouge"], "did not expect 'more'"),
        (["prr", "--quality", "rouge"], "FILE"),
        (["prr", "F", "--quality"], "--quality"),
        (["prr", "F", "--quality", ","], "got none"),
        (["prr", "F", "--quality", "rouge", "--max-rejection", "x"], "--max-rejection"),
        (["prr", "F", "--quality", "rouge", "--out", "/no/where.csv"], "there is no folder"),
        (["audit", "F", "--quality", "rouge", "--out", "x.txt"], ".parquet or .csv"),
        (["claims", "--out", "x.txt"], ".parquet or .csv"),
        (
            ["prr", "F", "--quality", "rouge", "--clusters", "doc"],
            "Unknown option: --clusters. Use --document.",
        ),
        (
            ["next-labels", "F", "--metrics=rouge", "--labels", "human"],
            "Unknown option: --metrics=rouge. Use --metric.",
        ),
        (["score", "F", "--methods", "msp"], "Unknown option: --methods. Use --method."),
        (["audit", "F", "--human", "rouge"], "Unknown option: --human. Use --truth."),
        (["audit", "F", "--method", "msp"], "Unknown option: --method. Use --uncertainty."),
        (["methods", "nosuch"], "No name is near. `uetrust methods` lists all"),
        (["metrics", "rogue"], "Did you mean 'rouge_l', 'rouge_2' or 'rouge_1'? `uetrust metrics` lists all"),
        (["score", "F", "--metric", "rogue_l"], "Did you mean 'rouge_l'"),
        (["plan", "demoo"], "settings.ini has no profile 'demoo'. Did you mean 'demo'?"),
        (["plan", "smoke", "--card", "h10"], "Did you mean 'h100'?"),
        (["cells", "--where", "paper=FFM"], "paper is never 'FFM'. Did you mean 'FFLM'?"),
        (["claims", "--section", "9"], "there are sections 1, 3-C, 3.1"),
        (["guarantee", "F", "--quality", "judge", "--scale", "1:10"], "COLUMN=LOWEST:HIGHEST"),
        (["guarantee", "F", "--quality", "judge", "--scale", "rouge=1:10"], "--scale names ['rouge']"),
        (["audit", "--quality", "rouge"], "FILE goes first: `uetrust audit FILE ...`"),
        (["audit", "--uncertainty", "msp", "nofile.csv"], "FILE goes first: `uetrust audit FILE ...`"),
        (["bank", "compar", "F"], 'Did you mean "compare"?'),
    ],
)
def test_wrong_words_are_answered_in_one_line(folder, words, says, capsys):
    assert main([str(folder / "scores.csv") if word == "F" else word for word in words]) == 2
    told = capsys.readouterr()
    assert says in told.err and told.err.count("\n") == 1 and not told.out


@pytest.mark.parametrize(
    "line",
    [
        "prr --quality rouge --uncertainty msp entropy F",
        "prr --quality rouge --uncertainty msp entropy F --json",
        "prr --uncertainty msp entropy F --quality rouge",
        "prr F --uncertainty msp entropy --quality rouge",
    ],
)
def test_a_list_of_columns_does_not_take_the_file_behind_it(folder, line, capsys):
    words = line.replace("F", str(folder / "scores.csv")).split()
    assert main([*words, *["--json"] * ("--json" not in words)]) == 0
    assert [row["method"] for row in json.loads(capsys.readouterr().out)] == ["msp", "entropy"]


def test_a_file_to_write_is_not_taken_for_the_file_to_read(folder, tmp_path, capsys):
    (tmp_path / "old.csv").write_text("kept")
    assert main(["prr", "--quality", "rouge", "--out", str(tmp_path / "old.csv")]) == 2
    assert "FILE goes first" in capsys.readouterr().err and (tmp_path / "old.csv").read_text() == "kept"


@pytest.mark.parametrize("name", "generate read compare fill export".split())
def test_a_stage_answers_to_its_former_name_which_no_help_lists(name, capsys):
    assert main([name, "--help"]) == 0
    former = capsys.readouterr().out
    assert main(["bank", name, "--help"]) == 0
    assert (
        former.replace(f"Usage: uetrust {name}", "").split()
        == capsys.readouterr().out.replace(f"Usage: uetrust bank {name}", "").split()
    )
    assert main(["--help"]) == 0
    assert f"│ {name} " not in capsys.readouterr().out


def test_no_exhibit_of_a_number_is_answered_with_the_numbers_that_there_are(capsys):
    with pytest.raises(SystemExit, match="matches 'figure 99 of ice'; ICE has figures 1 to 4$"):
        main(["find", "figure", "99", "of", "ice"])
    with pytest.raises(SystemExit, match="try a number or an author"):
        main(["find", "qqqq"])


def test_the_version_and_the_completion_of_a_shell(tmp_path, capsys):
    assert main(["--version"]) == 0 and __version__ in capsys.readouterr().out
    script = tmp_path / "uetrust.bash"
    assert main(["--install-completion", "--shell", "bash", "--output", str(script)]) == 0
    assert "uncertainty" in script.read_text()


def test_every_list_takes_spaces_and_commas():
    "Only words that are typed by themselves keep their commas, and one number that may be left out."
    kept = []
    for name, app in APPS.items():
        for argument in app.assemble_argument_collection():
            if "list" in str(argument.hint) and argument.parameter.converter is None:
                kept.append((name, argument.name))
    found = [("bank generate", "--logprobs"), ("find", "WORDS"), ("run", "PARAMS"), ("slides", "NOTEBOOKS")]
    assert sorted(kept) == found


@pytest.mark.parametrize(
    "words",
    [
        "generate F/bank --model x --data bulletin:test:2",
        "read F/bank --model x --data bulletin:test:2",
        "compare F/bank --nli x",
        "run nbs/experiments/people/01_human.ipynb F/x/human.ipynb",
        "export smoke --out F/x",
        "canaries --out F/x.csv",
    ],
)
def test_what_cannot_be_written_is_refused_before_work(words, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(words.replace("F/", f"{tmp_path}/file/").split()) == 2
    assert f"{tmp_path}/file" in (told := capsys.readouterr()).err and not told.out


def test_colour_is_for_terminals(folder):
    words = [f"{sys.prefix}/bin/uetrust", "--help"]
    assert b"\x1b" not in subprocess.run(words, capture_output=True).stdout


ASK = "judge mine.jsonl --model my-judge --families wi_in --dims consistency --out scores.csv --endpoint"


def test_a_judge_whose_replies_are_of_no_use_ends_with_1(tmp_path):
    write_summaries(tmp_path, "mine.jsonl")
    with judge_server("I cannot say.") as address:
        done = run(tmp_path, f"uetrust {ASK} {address}/v1")
    assert done.returncode == 1 and "no text has a score" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        f"uetrust {ASK} ADDRESS",
        "uetrust generate bank --model m --data bulletin:test:2 --endpoint ADDRESS",
    ],
)
def test_a_server_that_is_not_there_is_said_at_once(tmp_path, line):
    write_summaries(tmp_path, "mine.jsonl")
    with socket.socket() as free:  # Bound, so that nobody else takes it, but not listening
        free.bind(("127.0.0.1", 0))
        start = monotonic()
        done = run(tmp_path, line.replace("ADDRESS", f"http://127.0.0.1:{free.getsockname()[1]}/v1"))
    assert done.returncode == 2 and "refused" in done.stderr.lower()
    assert not (tmp_path / "scores.csv").exists()
    busy = os.getloadavg()[0] / os.cpu_count()  # Others that compute at the same time
    assert monotonic() - start < 5 * max(busy, 1)


@pytest.mark.parametrize("faults, lost", [([], 0), ([(504, {}, "")], 1)], ids=["all answered", "one lost"])
def test_what_was_paid_and_what_may_have_been_is_said(tmp_path, capsys, faults, lost):
    "2 a token that is read and 3 a token that is written, by the million, as the server counted them"
    from uetrust.generation.endpoint import EndpointError, ReplyCache, generate_remotely, text_requests

    with server(faults) as (url, log), ReplyCache(tmp_path / "replies") as cache:
        toy = endpoint(url, price_in=2e6, price_out=3e6, concurrency=1, retries=0)
        ask = replace(SETTINGS, samples=0)
        for i in range(3):  # One that is lost is not asked again
            with suppress(EndpointError):
                generate_remotely(toy, SAMPLES[i : i + 1], ask, cache)
        most = toy.cost(*text_requests(toy, SAMPLES[:1], ask)[0].most_tokens)
    assert len(log["served"]) == 3 - lost
    command.print_spending(toy, tmp_path / "replies")
    told = capsys.readouterr()
    paid = sum(2 * 30 + 3 * len(written(asked, 0)) for asked in log["served"])
    more = f"; up to {most:.6g} may have been spent for 1 request that got no reply" * lost
    assert (told.out, told.err) == ("", f"spent {paid:g} in all{more}\n")
    command.print_spending(endpoint(url), tmp_path / "replies")
    assert capsys.readouterr() == ("", "")


def test_json_of_a_table_has_every_digit_and_names_as_they_are(capsys):
    values = [1e-20, 0.1 + 0.2, np.nan, np.inf]
    df = pd.DataFrame(dict(name=["é", "\x9b", "", None], value=values, n=range(4)))
    df["mixed"] = pd.Series([1e-12, "text", True, np.nan], dtype=object)
    command.print_table(df, command.Output(json=True))
    out = capsys.readouterr().out
    rows = json.loads(out)
    assert [row["value"] for row in rows] == [1e-20, 0.1 + 0.2, None, None]
    assert "é" in out and "\x9b" not in out and [row["n"] for row in rows] == [0, 1, 2, 3]
    assert [row["name"] for row in rows] == ["é", "\x9b", "", None]
    assert [row["mixed"] for row in rows] == [1e-12, "text", True, None]


SLOW = set("torch transformers sklearn scipy.stats numpy.f2py matplotlib nltk IPython".split())
LOADS = {  # What a command imports of all that a user waits for, and how many modules at most
    "--help": ({"numpy", "pandas"} | SLOW, 320),
    "prr scores.csv --quality human --uncertainty msp entropy": (SLOW, 1000),
    "audit scores.csv --quality human --uncertainty msp entropy": (SLOW, 1000),
    "claims": (SLOW, 1000),
}


@pytest.mark.parametrize("line", LOADS)
def test_a_command_imports_what_it_uses(line, tmp_path):
    "Seconds depend on the machine, modules do not."
    write_scores(tmp_path)
    code = "import json, sys; from uetrust.__main__ import main; main(); print(json.dumps([*sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *line.split()], cwd=tmp_path, capture_output=True, text=True
    )
    loaded, (never, most) = json.loads(done.stdout.splitlines()[-1]), LOADS[line]
    assert not never.intersection(loaded) and len(loaded) < most


REMOVED = """
import time
from uetrust.cli.command import _stoppable

class Removed:
    def __del__(self):
        raise KeyboardInterrupt

stopped = []
try:
    with _stoppable(stopped):
        for _ in range(3):
            Removed()
        time.sleep(600)
except KeyboardInterrupt:
    print("stopped", set(stopped))
"""


def test_ctrl_c_while_an_object_is_removed_still_stops_the_command():
    done = subprocess.run([sys.executable, "-c", REMOVED], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == (f"stopped {{{int(signal.SIGINT)}}}\n", "")
