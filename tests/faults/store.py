"""Folders that another process fills, that a killed run left, or that cannot be written."""

import fcntl
import os
import threading

from faults.harness import fault
from faults.settings import FILL, INI, project

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
