"""Harness of the fault registry: a command runs in a process of its own, and its end gets a verdict.

A suite is a module of this package. A case is a function of an empty folder: it makes the input and
returns the arguments of `uetrust`, as a user types them.

    @fault("error", "scores.csv", "line 3", "4 fields")
    def row_with_a_field_too_many(folder): ...

`error` wants exit code 2 and a message that holds every text given; `right` wants exit code 0; `either`
wants one of the two. A traceback, a hang and an error that is ours ("a fault of uetrust") are never right.
"""

import importlib
import multiprocessing
import os
import pkgutil
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 10.0  # Seconds that a refusal may take
VERDICTS = ("right", "clear", "traceback", "hang", "silent", "vague", "refused")
GOOD = ("right", "clear")


@dataclass(frozen=True)
class Outcome:
    "How a command ended."

    code: int  # Exit code; negative for a signal
    out: str
    err: str
    seconds: float


@dataclass(frozen=True)
class Fault:
    "One case of the registry."

    suite: str
    name: str
    prepare: callable  # Folder -> arguments of the command
    wanted: str  # 'error', 'right' or 'either'
    says: tuple  # What the message must hold
    options: dict = field(default_factory=dict)  # Of `run_command`, and `check(folder, outcome)`

    def __str__(self):
        return f"{self.suite}: {self.name}"


REGISTRY = {}


def fault(wanted, *says, cases=None, **options):
    "Register a case, or one for each of `cases` (name -> what the function gets beside the folder)."

    def register(prepare):
        suite = prepare.__module__.rpartition(".")[2]
        for name, given in (cases or {"": None}).items():
            label = " ".join([prepare.__name__.replace("_", " "), str(name)]).strip()
            made = prepare if cases is None else lambda folder, given=given: prepare(folder, given)
            assert (suite, label) not in REGISTRY, label
            REGISTRY[suite, label] = Fault(suite, label, made, wanted, says, options)
        return prepare

    return register


def all_faults():
    "The cases of all suites, in the order of their names."
    import faults

    for module in pkgutil.iter_modules(faults.__path__):
        importlib.import_module(f"faults.{module.name}")
    return [REGISTRY[key] for key in sorted(REGISTRY)]


# Children are forked from a process that has imported the slow packages and has one thread
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["pandas", "scipy.stats", "torch", "transformers", "uetrust.app.cli"])


def start_server():
    "Start the process that commands are forked from, and wait until it has imported what it preloads."
    first = SERVER.Process(target=os.getpid)
    first.start()
    first.join()


def _child(argv, folder, stdin, env, memory):
    os.chdir(folder)
    os.environ.update(env)
    for stream, name in (1, "out"), (2, "err"):
        os.dup2(os.open(f"{folder}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.dup2(os.open(stdin or os.devnull, os.O_RDONLY), 0)
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    from uetrust.app.cli import main

    sys.argv[:] = ["uetrust", *argv]
    sys.exit(main(argv))


def run_command(argv, folder, stdin=None, env=None, limit=LIMIT, memory=None):
    "Outcome of `uetrust argv` in a folder; what runs longer than the limit is killed."
    argv, start = [str(word) for word in argv], time.monotonic()
    child = SERVER.Process(target=_child, args=(argv, str(folder), stdin, env or {}, memory))
    child.start()
    child.join(limit)
    if child.is_alive():
        child.kill()
        child.join()
    seconds = time.monotonic() - start
    out, err = (Path(f"{folder}.{name}").read_text(errors="replace") for name in ("out", "err"))
    return Outcome(child.exitcode, out, err, seconds)


def verdict(case, outcome, limit=LIMIT):
    "What a case's outcome is worth: 'right' or 'clear' when it is good, else what is wrong."
    if outcome.seconds >= limit:
        return "hang"
    if "Traceback (most recent call last)" in outcome.err or outcome.code not in (0, 2):
        return "traceback"
    if outcome.code == 0:
        return "silent" if case.wanted == "error" else "right"
    if case.wanted == "right":
        return "refused"
    told = outcome.err.rpartition("error: ")[2]
    clear = told and "a fault of uetrust" not in told and all(text in told for text in case.says)
    return "clear" if clear else "vague"


def try_fault(case, folder):
    "Outcome and verdict of a case; `check` may look at what the command left behind."
    options = dict(case.options)
    check = options.pop("check", None)
    outcome = run_command(case.prepare(folder), folder, **options)
    found = verdict(case, outcome, options.get("limit", LIMIT))
    if check and found in GOOD:
        check(folder, outcome)
    return outcome, found
