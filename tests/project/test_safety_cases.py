"""The user's files, keys and terminal.

What a command reads it does not write, links and modes stay, no piece of a key and no character that steers
a terminal is shown, and Ctrl-C shows one line.
"""

# ruff: noqa: F811

import json
import os
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.faults.harness import start_answers, stop_answers
from tests.helpers.command_runs import APPS, BIN, ROOT, judge_server, run
from tests.helpers.safety_cases import (
    folder,  # noqa: F401
    has_begun,
    interrupted,
    params,  # noqa: F401
    pieces,
    printed,
    told,
)
from uetrust.cli.cli import main
from uetrust.cli.command import WRITTEN
from uetrust.generation.endpoint import Endpoint, ReplyCache

# What is read is not written

READS = {
    "prr": "prr scores.csv --quality rouge --uncertainty msp",
    "audit": "audit scores.csv --quality rouge --uncertainty msp",
    "next-labels": "next-labels scores.csv --metric rouge --uncertainty msp",
    "score": "score replies.jsonl",
    "judge": "judge scores.csv --endpoint http://127.0.0.1:9/v1 --model m",
    "people": "people --pair ru-en --scores scores.csv",
    "claims": "claims --tables .",
    "canaries": "canaries --file scores.csv",
}


def unchanged(folder, before):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize(
    "spelled", ["itself", "dot", "absolute", "symbolic link", "hard link", "through a folder"]
)
def test_no_command_overwrites_what_it_reads(folder, capsys, name, spelled):
    line, (kept,) = READS[name], re.findall(r"scores\.csv|replies\.jsonl|\.$", READS[name])
    if kept != "scores.csv":  # Tables are written to .csv: the input of score has another ending here
        shutil.copy("replies.jsonl", "scores.csv") if name == "score" else None
        line = line.replace("replies.jsonl", "scores.csv")
    (folder / "sub").symlink_to(".")
    (folder / "link.csv").symlink_to("scores.csv")
    os.link("scores.csv", "hard.csv")
    as_written = {"itself": "scores.csv", "dot": "./scores.csv", "absolute": str(folder / "scores.csv")}
    as_written |= {"symbolic link": "link.csv", "hard link": "hard.csv", "through a folder": "sub/scores.csv"}
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    code, out, err = told(capsys, f"{line} --out {as_written[spelled]}")
    assert code == 2 and out == "" and unchanged(folder, before)
    assert "would be overwritten by --out" in err and "choose another name for --out" in err, err


@pytest.mark.parametrize(
    "line, option",
    [
        ("audit scores.csv --quality rouge --uncertainty msp --html scores.csv", "--html"),
        ("judge scores.csv --endpoint http://127.0.0.1:9/v1 --model m --cache scores.csv", "--cache"),
        ("people --pair ru-en --scores scores.csv --texts scores.csv", "--texts"),
        ("score replies.jsonl --data scores.csv --out ./scores.csv", "--data"),
        ("score replies.jsonl --model nli=scores.csv --out scores.csv", "--model"),
    ],
)
def test_every_output_is_compared_with_every_input(folder, capsys, line, option):
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    code, _, err = told(capsys, line)
    assert code == 2 and "would be overwritten" in err and option in err and unchanged(folder, before)


@pytest.mark.parametrize(
    "line",
    [
        "audit scores.csv --quality rouge --uncertainty msp --html page.csv --out ./page.csv",
        "judge scores.csv --endpoint http://127.0.0.1:9/v1 --model m --cache x.csv --out x.csv",
    ],
)
def test_two_outputs_are_two_files(folder, capsys, line):
    code, _, err = told(capsys, line)
    assert code == 2 and "are one file" in err


def test_the_scores_of_a_bank_are_replaced_by_score_alone(folder, capsys):
    bank = folder / "bank"
    bank.mkdir()
    (bank / "bank.json").write_text("{}")
    shutil.copy("scores.csv", bank / "scores.csv")
    before = (bank / "scores.csv").read_bytes()
    line = "prr bank --quality rouge --uncertainty msp --out bank/scores.csv"
    assert "a file of FILE bank would be overwritten" in told(capsys, line)[2]
    assert (bank / "scores.csv").read_bytes() == before
    assert told(capsys, line.replace("bank/scores.csv", "bank/table.csv"))[0] == 0
    assert told(capsys, line.replace("bank/scores.csv", "bank/table.csv"))[0] == 0, "and again"
    (bank / "00000.parquet").write_bytes(b"a shard")
    assert "would be overwritten" in told(capsys, "score bank --out bank/00000.parquet")[2]
    assert "would be overwritten" not in told(capsys, "score bank --out bank/scores.csv")[2]


PATHS = {  # Parameters that take a path, and what a command does with it
    "reads": "file notebook scores tables base path data model dataset notebooks bank nli encoder source"
    " claims question",
    "fills a folder of its own": "folder",
}


def test_every_parameter_with_a_path_is_known_to_be_read_or_written():
    "A new option that names a file to write stands in WRITTEN, or this fails."
    known = {*WRITTEN, *" ".join(PATHS.values()).split()}
    found = {}
    for name, app in APPS.items():
        for argument in app.assemble_argument_collection():
            if "Path" in str(argument.hint):
                found[argument.field_info.name] = name
    assert set(found) - known == set()


def test_other_parquet_files_survive_a_new_start(folder, capsys):
    data = folder / "data"
    data.mkdir()
    pd.DataFrame(dict(id=["a"], source=["Rain."])).to_parquet(data / "00000.parquet")
    before = (data / "00000.parquet").read_bytes()
    line = f"generate data --model {ROOT}/data/models/tiny-bart --data bulletin:test:2 --no-resume"
    code, _, err = told(capsys, line)
    assert code == 2 and "did not write" in err and "00000.parquet" in err
    assert (data / "00000.parquet").read_bytes() == before


# Links and modes

PRR = "prr scores.csv --quality rouge --uncertainty msp --out"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_link_stays_and_the_file_behind_it_is_written(folder, capsys, ending):
    (folder / "far").mkdir()
    real, link = folder / "far" / f"real.{ending}", folder / f"link.{ending}"
    real.write_text("old")
    link.symlink_to(real)
    assert told(capsys, f"{PRR} {link}")[0] == 0
    assert link.is_symlink() and real.read_bytes()[:3] != b"old"
    assert [path.name for path in (folder / "far").iterdir()] == [real.name], "no scrap"


def test_a_link_to_a_file_that_is_not_there_yet(folder, capsys):
    (folder / "link.csv").symlink_to("new.csv")
    assert told(capsys, f"{PRR} link.csv")[0] == 0
    assert (folder / "link.csv").is_symlink() and (folder / "new.csv").read_text().startswith("method")


@pytest.mark.parametrize("option", ["--out", "--html"])
@pytest.mark.parametrize(
    "target, says", [("gone/x.csv", "there is no such folder"), ("x.csv", "leads back to itself")]
)
def test_a_link_to_nowhere_is_told(folder, capsys, option, target, says):
    (folder / "x.csv").symlink_to(target)
    line = f"audit scores.csv --quality rouge --uncertainty msp {option} x.csv"
    code, out, err = told(capsys, line)
    assert code == 2 and out == "" and f"{option}: x.csv is a link" in err and says in err


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444 | 0o200])
def test_the_mode_of_a_file_is_kept(folder, capsys, mode):
    table = folder / "mine.csv"
    table.touch()
    table.chmod(mode)
    assert told(capsys, f"{PRR} mine.csv")[0] == 0
    assert stat.S_IMODE(table.stat().st_mode) == mode and table.stat().st_size


@pytest.mark.parametrize("umask, mode", [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
@pytest.mark.parametrize("name", ["new.csv", "new.parquet"])
def test_a_new_file_has_what_the_umask_leaves(folder, capsys, umask, mode, name):
    before = os.umask(umask)
    try:
        assert told(capsys, f"{PRR} {name}")[0] == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / name).stat().st_mode) == mode


def test_a_secret_file_is_at_no_time_open_to_others(folder, monkeypatch):
    from uetrust.core.settings import atomic_write

    (folder / "labels.csv").touch(0o600)
    (folder / "labels.csv").chmod(0o600)
    with atomic_write(folder / "labels.csv") as partial:
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600


def test_a_page_and_an_exam_behind_links(folder, capsys):
    for name in ("page.html", "exam.md"):
        (folder / f"real-{name}").touch()
        (folder / f"real-{name}").chmod(0o600)
        (folder / name).symlink_to(f"real-{name}")
    assert told(capsys, "audit scores.csv --quality rouge --uncertainty msp --html page.html")[0] == 0
    assert told(capsys, "exam --seed 1 --questions 1 --out exam.md")[0] == 0
    for name in ("page.html", "exam.md"):
        assert (folder / name).is_symlink() and (folder / f"real-{name}").stat().st_size
        assert stat.S_IMODE((folder / f"real-{name}").stat().st_mode) == 0o600


def test_a_pipe_gets_the_page(folder):
    line = "uetrust exam --seed 1 --questions 1 --out >(cat > copy.md)"
    done = run(folder, f"{line}; sleep 0.5")
    assert done.returncode == 0 and (folder / "copy.md").stat().st_size, done.stderr


def test_the_executed_copy_goes_behind_a_link(folder, capsys, params):
    (folder / "real.ipynb").write_text("old")
    (folder / "real.ipynb").chmod(0o600)
    (folder / "x.ipynb").symlink_to("real.ipynb")
    assert told(capsys, ["run", str(params), "x.ipynb"])[0] == 0
    assert (folder / "x.ipynb").is_symlink() and "0.1 a" in printed(folder / "real.ipynb")
    assert stat.S_IMODE((folder / "real.ipynb").stat().st_mode) == 0o600


KEY = "sk-proj-Zx81/qL\"w0-Vb77'uT+93kkQ=pEe\\RtYy"


def echoes(kind, key, offset):
    "Status and body of a server that gives back the key in some place."
    pad = "x" * offset
    choice = dict(index=0, message=dict(role="assistant", content="4"), finish_reason="stop")
    reply = dict(choices=[choice])
    if kind == "error":
        return 401, f"{pad}invalid key {key}".encode()
    if kind == "json error":
        return 400, json.dumps(dict(error=dict(message=f"{pad} bad key {key}"))).encode()
    if kind == "no completion":
        return 200, json.dumps(dict(detail=f"{pad} {key}")).encode()
    if kind == "object":
        choice["message"]["content"] = dict(note=f"{pad[:30]}{key}")
    if kind == "content":
        choice["message"]["content"] = f"{pad[:50]}{key} is no grade"
    if kind == "finish":
        choice |= dict(finish_reason=f"content_filter {key}", message=dict(content=None, refusal="no"))
    return 200, json.dumps(reply).encode()


@pytest.mark.parametrize("kind", ["error", "json error", "no completion", "object", "content", "finish"])
@pytest.mark.parametrize("offset", [0, 7, 20, 45, 150, 185])
def test_a_server_that_gives_the_key_back_shows_nothing_of_it(folder, monkeypatch, capsys, kind, offset):
    monkeypatch.setenv("MY_KEY", KEY)
    url = start_answers(lambda *_: echoes(kind, KEY, offset))
    rows = [dict(id=i, hypothesis=f"It rained {i}.", source="Rain.") for i in "ab"]
    (folder / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    line = f"judge m.jsonl --endpoint {url} --model m --dims fluency --out o.csv --retries 0 --key-env MY_KEY"
    try:
        try:
            code = main(line.split())
        except SystemExit as stop:
            code = str(stop)
    finally:
        stop_answers()
    out = capsys.readouterr()
    table = (folder / "o.csv").read_text() if (folder / "o.csv").exists() else ""
    shown = f"{out.out}\n{out.err}\n{table}\n{code}"
    assert code != 0 and (out.err or code)
    for spelled in {KEY, json.dumps(KEY)[1:-1], repr(KEY)[1:-1]}:
        assert not any(piece in shown for piece in pieces(spelled)), shown


ADDRESSES = [
    "http://h/v1#KEY",
    "http://h/v1?key=KEY",
    "http://me:KEY@h/v1",
    "KEY",
    "http://h:99999/v1#KEY",
    "ftp://h/KEY",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_with_a_key_is_refused_without_showing_it(folder, monkeypatch, capsys, address):
    key = "sk-live-0123456789abcdefghijkl"
    monkeypatch.setenv("MY_KEY", key)
    (folder / "m.jsonl").write_text(json.dumps(dict(id="a", hypothesis="x", source="y")) + "\n")
    line = [
        "judge",
        "m.jsonl",
        "--endpoint",
        address.replace("KEY", key),
        "--model",
        "m",
        "--key-env",
        "MY_KEY",
    ]
    code, out, err = told(capsys, line)
    assert code == 2 and not any(piece in out + err for piece in pieces(key)), err


@pytest.mark.parametrize("given", ["sk-live-0123456789abcdefghijkl", "a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3"])
def test_a_key_in_place_of_its_variable_is_not_shown(folder, capsys, given):
    (folder / "m.jsonl").write_text(json.dumps(dict(id="a", hypothesis="x", source="y")) + "\n")
    with judge_server() as address:
        line = f"judge m.jsonl --endpoint {address}/v1 --model m --dims fluency --key-env {given}"
        code, out, err = told(capsys, line)
    assert code == 2 and not any(piece in out + err for piece in pieces(given)), err
    assert "environment variable" in err


# What a terminal is told

STEERS = dict(
    esc="\x1b[2J", bel="\x1b]0;x\x07", cr="a\rb", bidi="\u202eabc", csi="\x9b31m", isolate="\u2066x"
)
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def lines_with(odd):
    "Command lines over a table whose columns and ids hold a character."
    names = dict(q=f"human{odd}", m=f"rouge{odd}", u=f"msp{odd}", v=f"entropy{odd}", c=f"article{odd}")
    table = pd.read_csv("scores.csv").rename(
        columns=dict(
            human=names["q"], rouge=names["m"], msp=names["u"], entropy=names["v"], article=names["c"]
        )
    )
    table["sample"] += odd
    table[names["q"]] = table[names["m"]] + np.arange(len(table)) % 3
    table.to_parquet(f"t{odd}.parquet".replace("/", ""))
    file = next(path.name for path in Path().glob("t*.parquet"))
    q, m, u, v, c = names.values()
    yield ["prr", file, "--quality", q, m, "--uncertainty", u, v, "--id", "sample", "--document", c]
    yield ["audit", file, "--quality", q, m, "--uncertainty", u, v, "--id", "sample", "--document", c]
    yield ["audit", file, "--truth", q, "--quality", m, "--uncertainty", u, "--length", v]
    yield ["power", file, "--quality", q, "--uncertainty", u, v]
    yield ["guarantee", file, "--quality", q, "--uncertainty", u, v, "--tau", "0"]
    yield ["dose", file, "--truth", q, "--metric", m, "--uncertainty", u, v]
    yield ["next-labels", file, "--metric", m, "--uncertainty", u, "--id", "sample", "--n", "3"]
    yield ["prr", file, "--quality", "nothing", "--uncertainty", u]
    yield ["prr", f"no{odd}.csv", "--quality", "a", "--uncertainty", u]
    yield [odd, file]
    yield ["prr", file, f"--{odd}", "x"]


@pytest.mark.parametrize("name", STEERS)
def test_no_command_lets_names_steer_a_terminal(folder, capsys, name):
    for line in lines_with(STEERS[name]):
        _, out, err = told(capsys, line)
        assert out + err and not FORBIDDEN.search(out + err), (line[0], FORBIDDEN.findall(out + err))


@pytest.mark.parametrize("name", STEERS)
def test_scores_judges_and_banks_do_not_either(folder, capsys, name):
    odd = STEERS[name]
    rows = [
        dict(id=f"{i}{odd}", text="It rained .", source=f"Rain {i}", logprobs=[-0.1, -0.2, -0.3])
        for i in range(4)
    ]
    rows[1] |= dict(logprobs=[0.5, 0.1, 0.1])
    (folder / f"r{odd}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = [dict(id=f"{i}{odd}", hypothesis="It rained.", source="Rain.") for i in range(3)]
    (folder / f"j{odd}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in judged))
    url = start_answers(lambda asked, number: (400, f"too long {odd}".encode()) if number == 1 else good())
    bank = f"bank{odd}"
    try:
        for line in (
            ["score", f"r{odd}.jsonl", "--method", "msp", "perplexity"],
            ["score", f"r{odd}.jsonl", "--explain"],
            ["judge", f"j{odd}.jsonl", "--endpoint", url, "--model", f"m{odd}", "--dims", "fluency"],
            ["generate", bank, "--model", f"m{odd}", "--data", f"j{odd}.jsonl", "--endpoint", url],
            ["exam", "--questions", "1", "--out", f"exam{odd}.md"],
            ["canaries", "--file", f"none{odd}.json"],
        ):
            _, out, err = told(capsys, line)
            assert out + err and not FORBIDDEN.search(out + err), (line[0], out + err)
    finally:
        stop_answers()


def good():
    choice = dict(index=0, message=dict(role="assistant", content="4"), finish_reason="stop")
    return 200, json.dumps(dict(choices=[choice])).encode()


@pytest.mark.parametrize("name", STEERS)
def test_json_and_csv_for_programs_are_exact(folder, capsys, name):
    odd = STEERS[name]
    line = next(lines_with(odd))
    rows = json.loads(told(capsys, [*line, "--json"])[1])
    assert {row["method"] for row in rows} == {f"msp{odd}", f"entropy{odd}"}
    assert not FORBIDDEN.search(told(capsys, [*line, "--json"])[1])
    assert f"msp{odd}" in told(capsys, [*line, "--csv"])[1]


def test_csv_on_a_terminal_is_shown(folder):
    import pty

    line = [*next(lines_with("\x1b[2J")), "--csv"]
    outside, inside = pty.openpty()
    with subprocess.Popen([BIN / "uetrust", *line], stdout=inside, stderr=inside, cwd=folder) as process:
        os.close(inside)
        seen = b""
        try:
            while part := os.read(outside, 4096):
                seen += part
        except OSError:  # It has ended
            pass
    os.close(outside)
    assert process.returncode == 0 and b"msp\\x1b[2J" in seen and b"\x1b[2J" not in seen


def test_a_terminal_that_cannot_show_a_letter(folder):
    pd.read_csv("scores.csv").rename(columns=dict(msp="mspé")).to_csv("e.csv", index=False)
    line = "PYTHONIOENCODING=ascii uetrust prr e.csv --quality rouge --uncertainty mspé"
    done = run(folder, line)
    assert done.returncode == 0 and "msp\\xe9" in done.stdout, done.stderr


# A damaged cache


def with_row(**values):
    row = dict(key="k", request='{"path": "/chat/completions"}', reply="{}", cost=0.0) | values

    def damage(path):
        with ReplyCache(path):
            pass
        with sqlite3.connect(path) as database:
            database.execute("insert into reply values (?,?,?,?)", tuple(row.values()))

    return damage


def truncated(path):
    with ReplyCache(path) as cache:
        for i in range(200):
            cache.db.execute("insert into reply values (?,?,?,?)", (f"k{i}", "{}", "x" * 2000, 0.0))
    with open(path, "r+b") as file:
        file.truncate(8192)


DAMAGES = dict(request_null=with_row(request=None), request_list=with_row(request="[]"), truncated=truncated)
DAMAGES |= dict(
    reply_null=with_row(reply=None), reply_bytes=with_row(reply=b"\x00"), cost_null=with_row(cost=None)
)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_cache_is_named_with_the_remedy(tmp_path, name):
    path = tmp_path / "replies.sqlite"
    DAMAGES[name](path)
    with pytest.raises((ValueError, RuntimeError), match="replies.sqlite") as error:
        with ReplyCache(path) as cache:
            cache.get("k" if name != "truncated" else "k150")
            cache.spent()
    assert "unexpected" not in str(error.value) and re.search("another file|delete it", str(error.value))


def test_a_claim_of_nobody_is_told(tmp_path):
    path = tmp_path / "replies.sqlite"
    with ReplyCache(path) as cache:
        cache.db.execute("insert into pending(key, cost, owner, since) values ('k', 1, 'someone', 1)")
    with pytest.raises(ValueError, match="damaged: a claim"):
        ReplyCache(path)


# Ctrl-C

WORK = {
    "prr": "prr big.csv --quality rouge --uncertainty msp entropy",
    "audit": "audit big.csv --quality rouge --uncertainty msp entropy",
    "score": "score replies.jsonl",
    "generate": f"generate bank --model {ROOT}/data/models/tiny-bart --data bulletin:test:200 --samples 5",
    "serve": f"serve {ROOT}/data/models/tiny-llama --port 0",
    "run": f"run {ROOT}/nbs/experiments/people/01_human.ipynb x.ipynb profile=smoke draws=300000",
    "help": "prr --help",
}


@pytest.mark.parametrize("name", WORK)
def test_ctrl_c_shows_one_line_at_any_time(folder, name):
    rng = np.random.default_rng(0)
    big = pd.DataFrame(rng.normal(size=(6000, 3)), columns=["rouge", "msp", "entropy"])
    big.to_csv(folder / "big.csv", index=False)
    ends = []
    for delay in (0, 0.1, 0.3, 0.8, 1.4, 2.2):
        done = interrupted(folder, [BIN / "uetrust", *WORK[name].split()], delay, begun=has_begun)
        if done and done[0] not in (0, -signal.SIGINT):  # It had done its work and was ending
            assert done[0] == 130 and done[2].count("\n") == 1, done
            assert done[2].startswith("uetrust: stopped"), done
        ends.append(done and done[0])
    assert 130 in ends
    assert not list(folder.glob("**/.uetrust-*.ipynb")) and not (folder / "x.ipynb").exists()


BESIDE_A_NOTEBOOK = """
import os, signal, sys
from nbclient.client import NotebookClient
from uetrust.__main__ import main

async def stopped_here(self):
    os.kill(os.getpid(), signal.SIGINT)

def before_it_begins(self):
    task = stopped_here(self)
    os.kill(os.getpid(), signal.SIGINT)
    return task

NotebookClient._async_poll_kernel_alive = {when}
sys.exit(main())
"""


@pytest.mark.parametrize("when", ["stopped_here", "before_it_begins"])
def test_ctrl_c_in_a_task_beside_the_notebook_shows_one_line(folder, when):
    words = [sys.executable, "-c", BESIDE_A_NOTEBOOK.format(when=when), *WORK["run"].split()]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 130 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("uetrust: stopped") and not (folder / "x.ipynb").exists()


WHILE_TORCH_LOADS = """
import os, signal, sys
from uetrust.__main__ import main

def interrupt(frame, event, arg, called=[]):  # In Python that the C++ of torch calls
    if event == "c_call":
        called.append(arg.__name__)
    elif event == "call" and called and called[-1] == "_c10d_init":
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(interrupt)
sys.exit(main())
"""


def test_ctrl_c_while_a_library_loads_waits_until_it_has_loaded(folder):
    words = [sys.executable, "-c", WHILE_TORCH_LOADS, *WORK["score"].split()]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 130 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("uetrust: stopped")


def test_ctrl_c_ends_a_plugin_that_hangs_while_it_loads(folder):
    (folder / "hangs.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(600)\n"
    )
    code = "import sys; from uetrust.__main__ import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "methods", "--plugin", "hangs"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 130 and done.stderr.startswith("uetrust: stopped"), done.stderr


@pytest.mark.parametrize("name", ["generate", "run"])
def test_sigterm_ends_in_order_too(folder, name):
    code, _, err = interrupted(folder, [BIN / "uetrust", *WORK[name].split()], 2.5, signal.SIGTERM, has_begun)
    assert code == 143 and err.count("\n") == 1 and err.startswith("uetrust: stopped")


@pytest.mark.parametrize(
    "line", ["uetrust methods", "uetrust metrics --csv", "uetrust prr --help", "uetrust methods --json"]
)
def test_a_reader_that_leaves_is_no_error(folder, line):
    done = run(folder, f"{line} | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}")
    codes = (0, 1) if "--help" in line else (0, 141)  # rich, which prints help, ends with 1
    assert done.stderr == "" and done.returncode in codes


def test_a_full_disk_behind_stdout_is_told(folder):
    done = run(folder, "uetrust methods > /dev/full")
    assert done.returncode == 2 and done.stderr.startswith("uetrust: error: the disk is full")


def test_the_key_is_read_when_it_is_needed(monkeypatch):
    monkeypatch.setenv("MY_KEY", " sk-1 ")
    assert (
        Endpoint("https://h/v1", "m", key_env="MY_KEY").secret == "sk-1"
        and Endpoint("https://h/v1", "m").secret == ""
    )
