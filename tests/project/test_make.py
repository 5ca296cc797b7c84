"""`make reproduce` when something breaks.

The rest is made, the report marks the gap, and the next run makes only what is not there.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from tests.helpers.paths import ROOT


@pytest.fixture
def project(tmp_path):
    "The project with profiles of two studies and of none; environment and data are those of the checkout"
    for f in ("Makefile", "pyproject.toml"):
        shutil.copy2(ROOT / f, tmp_path / f)
    for f in ("scripts", "nbs", "pins"):
        shutil.copytree(ROOT / f, tmp_path / f)
    for f in ("data", "uetrust"):
        (tmp_path / f).symlink_to(ROOT / f)
    (tmp_path / ".venv").mkdir()
    for f in ("bin", "lib", "pyvenv.cfg"):
        (tmp_path / ".venv" / f).symlink_to(Path(sys.prefix) / f)
    (tmp_path / ".venv" / ".ready").touch()  # Newer than what it depends on
    (tmp_path / "settings.ini").write_text(
        (ROOT / "settings.ini").read_text()
        + "\n[profile.two]\nprinted_pairs =\nstudies = human wrong_documents\n"
        + "\n[profile.none]\nprinted_pairs =\nstudies =\n"
    )
    return tmp_path


def quiet():
    return {k: v for k, v in os.environ.items() if not k.startswith("MAKE")} | dict(
        UETRUST_MIRROR=str(ROOT / "../shared/data")
    )


def make(at, profile="two"):
    return subprocess.run(
        ["make", "reproduce", f"PROFILE={profile}"], cwd=at, capture_output=True, text=True, env=quiet()
    )


def assert_pages_run_alone_are_the_same(at):
    for page in ("people/01_human", "ice/02_wrong_documents"):
        words = [f"nbs/experiments/{page}.ipynb", "alone.ipynb", "profile=two", "out=alone"]
        subprocess.run([".venv/bin/uetrust", "run", *words], cwd=at, check=True, env=quiet())
    tables = [path.relative_to(at / "alone") for path in (at / "alone").rglob("*.csv")]
    assert len(tables) > 3
    for path in tables:
        assert (at / "alone" / path).read_bytes() == (at / "runs" / "two" / path).read_bytes(), path


def test_a_broken_notebook_stops_no_other(project):
    "Mended, it is the only one that runs; a run alone gives the same tables; a third run makes nothing."
    page, out = project / "nbs/experiments/people/01_human.ipynb", project / "runs" / "two"
    good = page.read_text()
    nb = nbformat.reads(good, 4)
    nb.cells.append(nbformat.v4.new_code_cell("import os\nprint(os.environ['HF_HUB_OFFLINE'])\n1/0"))
    page.write_text(nbformat.writes(nb))
    got = make(project)
    assert got.returncode != 0 and "FAILED human.ipynb: ZeroDivisionError" in got.stderr + got.stdout
    failed = nbformat.read(out / "notebooks" / "human.failed.ipynb", 4)
    assert failed.cells[-1].outputs[0].text == "1\n", "no page of this profile asks the hub"
    other = out / "notebooks" / "wrong_documents.ipynb"
    assert (
        other.exists()
        and not (out / "notebooks" / "human.ipynb").exists()
        and (out / "notebooks" / "human.failed.ipynb").exists()
    )
    assert {"1", "2"} <= set(re.findall(r"\((\d) of 2 notebooks, about \d+ s left\)", got.stdout))
    first, html = other.stat().st_mtime_ns, (out / "report" / "index.html")
    assert html.exists()
    page.write_text(good)
    got = make(project)
    assert "(1 of 1 notebooks, about" in got.stdout, "the other page was there"
    assert (
        got.returncode == 0
        and other.stat().st_mtime_ns == first
        and not (out / "notebooks" / "human.failed.ipynb").exists()
    )
    assert (
        "is up to date" in (again := make(project)).stdout
        and "running" not in again.stdout
        and again.returncode == 0
    )
    assert_pages_run_alone_are_the_same(project)


def test_a_second_run_waits_for_the_first(project):
    lock = project / "runs" / "none" / ".lock"
    lock.parent.mkdir(parents=True)
    first = subprocess.Popen([sys.executable, str(ROOT / "scripts" / "alone.py"), str(lock), "sleep", "600"])
    while not lock.exists() or "python" in Path(f"/proc/{first.pid}/cmdline").read_text():
        time.sleep(0.02)
    second = subprocess.Popen(
        ["make", "reproduce", "PROFILE=none"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=quiet(),
    )
    said = next(line for line in second.stdout if "another run" in line)
    assert (
        "runs/none/.lock" in said
        and second.poll() is None
        and not (project / "runs" / "none" / "report").exists()
    )
    first.kill()  # As a run that is killed: the lock goes with it
    assert "is up to date" in second.stdout.read() and second.wait() == 0
    assert (project / "runs" / "none" / "report" / "index.html").exists()


def processes(variable):
    "Command lines of the living processes that have an environment variable."
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if variable in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes())
        except OSError:  # It ended, or is another user's
            continue
    return [command for command in found if command]


def test_a_killed_run_leaves_no_process_behind(project):
    page = project / "nbs/experiments/people/01_human.ipynb"
    nb = nbformat.read(page, 4)
    nb.cells.append(nbformat.v4.new_code_cell("import time\ntime.sleep(600)"))
    nbformat.write(nb, page)
    mark = f"UETRUST_TEST_RUN={project}"
    env = quiet() | dict([mark.split("=", 1)])
    command = [sys.executable, "scripts/reproduce.py", "two", "2"]
    run = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True, env=env)
    while not (project / "runs/two/pages/human.json").exists():
        time.sleep(0.2)
    assert len(processes(mark.encode())) > 3
    run.kill()
    run.wait()
    deadline = time.monotonic() + 20
    while (left := processes(mark.encode())) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left


def test_chapters_do_without_the_truth(project):
    "Real e-mails: nobody knows which summary errs, so methods and metrics are held against each other only"
    (project / "settings.ini").write_text(
        (project / "settings.ini").read_text()
        + "\n[profile.mail]\nprinted_pairs =\nstudies =\nbanks = aeslc--tiny-bart\n"
        + "items = 12\ntrain_items = 120\n"
    )
    got = make(project, "mail")
    assert got.returncode == 0, got.stdout[-2000:] + got.stderr[-2000:]
    out = project / "runs" / "mail"
    assert {p.name.split("--")[0] for p in (out / "notebooks").glob("*.ipynb")} == {
        "bank",
        "quality",
        "methods",
        "cross",
    }
    text = " ".join(
        json.loads((out / "pages" / f"{k}--aeslc--tiny-bart.json").read_text())["text"][-1]
        for k in ("quality", "methods", "cross")
    )
    assert "truth" not in text
    t = pd.read_csv(out / "tables" / "cross--aeslc--tiny-bart_prr.csv")
    assert (
        "rouge_l" in set(t["metric"])
        and "truth" not in set(t["metric"])
        and {"msp", "eigv"} <= set(t["method"])
    )


def test_every_run_keeps_its_bytecode(project):
    show = subprocess.run(
        ["make", "-s", "--eval", "show: ; @env", "show"],
        cwd=project,
        capture_output=True,
        text=True,
        env=quiet() | dict(PYTHONDONTWRITEBYTECODE="1"),
    ).stdout
    assert "PYTHONHASHSEED=0" in show and "PYTHONDONTWRITEBYTECODE" not in show


SAYS = 'echo "$@" >> {log}; case "$*" in *tools.pin*) {tools};; *) exit 0;; esac\n'


def set_up(at, tools, uv=None):
    "Outcome of `make setup` where Python and uv are stand-ins; what they were told is in said.txt"
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy2(ROOT / name, at / name)
    shutil.copytree(ROOT / "pins", at / "pins")
    (at / "scripts").mkdir()
    shutil.copy2(ROOT / "scripts" / "ipython_kernel_config.json", at / "scripts")
    (at / ".venv" / "bin").mkdir(parents=True)
    for name, script in (("python", SAYS.format(log="said.txt", tools=tools)), ("uv", uv)):
        if script:
            (at / ".venv" / "bin" / name).write_text(f"#!/bin/bash\n{script}")
            (at / ".venv" / "bin" / name).chmod(0o755)
    return subprocess.run(["make", "setup"], cwd=at, capture_output=True, text=True, env=quiet())


MISMATCH = "echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES' >&2; exit 1"
NO_UV = "echo 'ERROR: No matching distribution found for uv==0.13.9' >&2; exit 1"


@pytest.mark.parametrize(
    "tools, uv", [(MISMATCH, None), (MISMATCH, "exit 0"), ("exit 0", "echo Hash mismatch >&2; exit 2")]
)
def test_setup_stops_at_a_hash_that_does_not_match(tmp_path, tools, uv):
    done = set_up(tmp_path, tools, uv)
    assert done.returncode and "MATCH" in done.stderr.upper()
    assert not (tmp_path / ".venv" / ".ready").exists()
    assert (tmp_path / "said.txt").read_text().count("\n") == 1, "nothing else is installed"


def test_setup_without_uv_keeps_every_hash(tmp_path):
    done = set_up(tmp_path, NO_UV)
    assert done.returncode == 0 and (tmp_path / ".venv" / ".ready").exists(), done.stderr
    _, builder, hashed, last = (tmp_path / "said.txt").read_text().splitlines()
    assert all("--require-hashes --no-deps" in said for said in (builder, hashed))
    tools = re.findall(r"^([\w-]+)==", (tmp_path / ".venv" / "builder.txt").read_text(), re.M)
    assert {"hatchling", "setuptools"} <= set(tools) and "uv" not in tools
    pins = (ROOT / "pins" / "constraints.txt").read_text()
    kept, bare = ((tmp_path / ".venv" / f"{name}.txt").read_text() for name in ("hashed", "bare"))
    assert kept.count("--hash=") == pins.count("--hash=") and "--hash" not in bare
    named = set(re.findall(r"^([\w.-]+)==", bare, re.M))
    assert "torch" in named and all(re.match("torch|triton|nvidia-|cuda-", name) for name in named)
    assert "-c .venv/bare.txt -e" in last


def test_setup_with_uv_asks_for_hashes(tmp_path):
    done = set_up(tmp_path, "exit 0", 'echo "uv $@" >> said.txt')
    assert done.returncode == 0
    assert "-c pins/constraints.txt" in (tmp_path / "said.txt").read_text().splitlines()[1]


def test_a_reproduction_takes_eight_minutes():
    "By the seconds of its last run from an empty folder, three pages at a time on two cores."
    seconds = pd.read_csv(ROOT / "data" / "reproduce_seconds.csv")["seconds"]
    assert len(seconds) == 87 and seconds.sum() / 3 <= 480


MOST_CHARACTERS = 200  # Of a line about a file that is not at hand


def offline(at, profile):
    "`make reproduce` without network, mirror and cache: lines of the terminal, pages that ended early"
    env = quiet() | dict(
        UETRUST_OFFLINE="1", UETRUST_MIRROR=str(at / "none"), UETRUST_CACHE=str(at / "cache"), CI="1"
    )
    got = subprocess.run(
        ["make", "reproduce", f"PROFILE={profile}"], cwd=at, capture_output=True, text=True, env=env
    )
    assert got.returncode == 0, got.stdout[-2000:] + got.stderr[-2000:]
    early = {f.name.split(".")[0] for f in (at / "runs" / profile / "notebooks").glob("*.missing.txt")}
    return got.stdout.splitlines() + got.stderr.splitlines(), early


def missing_lines(html):
    "Lines of a page, without its marks, about files that are not at hand"
    return [line for line in re.sub(r"<[^>]*>", "\n", html).splitlines() if "not at hand" in line]


def assert_people_are_shown(at, profile, said):
    "The first page has the figure of this run; what is missing is said in short lines"
    report = at / "runs" / profile / "report"
    first = (report / "index.html").read_text()
    opening = first[first.index('<section class="opening">') : first.index('<h2 id="start">')]
    assert "<figure" in opening and "Not shown" not in opening
    assert (at / "runs" / profile / "figures" / "people_overview.png").stat().st_size > 10_000
    pages = [line for page in report.glob("*.html") for line in missing_lines(page.read_text())]
    about = [line for line in said if "not at hand" in line or "ended early" in line]
    assert pages and about and max(map(len, pages + about)) <= MOST_CHARACTERS


def test_without_network_and_mirror_the_report_begins_with_people(project):
    "Pages about files that may not be copied into the repository end early, in one short line each."
    (project / "settings.ini").write_text(
        (ROOT / "settings.ini").read_text() + "\n[profile.two]\nprinted_pairs =\npair = all\n"
        "studies = people_overview biographies people_regret faithbench generalisability\n"
    )
    said, early = offline(project, "two")
    assert early == {"faithbench", "generalisability"}
    assert_people_are_shown(project, "two", said)


@pytest.mark.own_target
def test_without_network_and_mirror_at_most_twelve_pages_of_the_demo_end_early(project):
    "Ten minutes"
    said, early = offline(project, "demo")
    assert len(early) <= 12 and not early & {"people_overview", "answers", "biographies", "hallucinations"}
    assert_people_are_shown(project, "demo", said)
