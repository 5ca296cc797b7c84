"""Folders that another process fills, that a killed run left, or that cannot be written."""

import fcntl
import os
import threading

from tests.faults.harness import fault
from tests.faults.settings import FILL, INI, REPOSITORY, project

SLOW = 60  # Seconds for what loads a model
HELD = []  # Descriptors of locks, held until the tests end


def hold(folder):
    "Hold the lock of the bank, as a running `fill` does."
    place = folder / "runs" / "p" / "banks" / "mine--toy"
    place.mkdir(parents=True)
    descriptor = os.open(place / ".uetrust-lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, b"4711")
    HELD.append(descriptor)
    return place


@fault("error", "mine--toy", "process 4711", "wait", limit=SLOW)
def a_second_run_that_would_begin_anew(folder):
    project(folder, INI)
    hold(folder)
    return [*FILL, "--no-resume"]


def waited(folder, outcome):
    assert "process 4711" in outcome.err and "This run waits for it" in outcome.err


@fault("right", limit=SLOW, check=waited)
def a_second_run_that_goes_on(folder):
    project(folder, INI)
    hold(folder)
    threading.Timer(SLOW / 4, os.close, [HELD.pop()]).start()  # The other run ends while this one waits
    return FILL


@fault("right", limit=SLOW)
def a_lock_that_a_dead_process_left(folder):
    project(folder, INI)
    os.close(hold(folder).parent.exists() and HELD.pop())
    return FILL


def no_scraps(folder, outcome):
    assert not list(folder.rglob(".uetrust-*"))


@fault("right", limit=SLOW, check=no_scraps)
def scraps_of_killed_runs(folder):
    project(folder, INI)
    texts = folder / "runs" / "p" / "banks" / "mine--toy" / "texts"
    texts.mkdir(parents=True)
    for name in ("00000-abc.parquet", "bank-def.json"):
        (texts / f".uetrust-{name}").write_text("half")
    return FILL


@fault("error", "runs", "folder", limit=SLOW)
def a_file_in_the_place_of_the_runs(folder):
    project(folder, INI)
    (folder / "runs").write_text("no folder")
    return FILL


# Tables that are written beside, behind and onto what is there

ROWS = "id,quality,msp\na,0.9,0.1\nb,0.2,0.8\nc,0.6,0.3\nd,0.4,0.5\ne,0.7,0.2\n"
PRR = ["prr", "scores.csv", "--quality", "quality", "--uncertainty", "msp", "--out"]


def scores(folder):
    (folder / "scores.csv").write_text(ROWS)
    (folder / "sub").symlink_to(".")
    (folder / "link.csv").symlink_to("scores.csv")
    os.link(folder / "scores.csv", folder / "hard.csv")
    return PRR


def kept(folder, outcome):
    assert (folder / "scores.csv").read_text() == ROWS


INPUTS = {name: name for name in ("scores.csv", "./scores.csv", "sub/scores.csv", "link.csv", "hard.csv")}


@fault("error", "scores.csv would be overwritten by --out", check=kept, cases=INPUTS)
def an_output_that_is_the_input(folder, out):
    return [*scores(folder), out]


def behind(folder, outcome):
    assert (folder / "far.csv").is_symlink() and (folder / "real.csv").read_text().startswith("method")
    assert os.stat(folder / "real.csv").st_mode & 0o777 == 0o600


@fault("right", check=behind)
def a_link_to_a_table_that_only_its_owner_reads(folder):
    (folder / "real.csv").touch()
    (folder / "real.csv").chmod(0o600)
    (folder / "far.csv").symlink_to("real.csv")
    return [*scores(folder), "far.csv"]


@fault("error", "--out: x.csv is a link", cases=dict(gone="gone/y.csv", ring="x.csv"))
def a_link_that_leads_nowhere(folder, target):
    (folder / "x.csv").symlink_to(target)
    return [*scores(folder), "x.csv"]


def shard_kept(folder, outcome):
    assert (folder / "data" / "00000.parquet").read_bytes() == b"mine"


@fault("error", "00000.parquet", "did not write", check=shard_kept)
def a_new_start_in_a_folder_of_other_files(folder):
    (folder / "data").mkdir()
    (folder / "data" / "00000.parquet").write_bytes(b"mine")
    model = str(REPOSITORY / "data" / "models" / "tiny-llama")
    return ["generate", "data", "--model", model, "--data", "bulletin:test:2", "--no-resume"]
