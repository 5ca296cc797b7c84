"""Harness of the fault registry: a command runs in a process of its own, and its end gets a verdict.

A suite is a module of this package. A case is a function of an empty folder: it makes the input and
returns the arguments of `uetrust`, as a user types them.

    @fault("error", "scores.csv", "line 3", "4 fields")
    def row_with_a_field_too_many(folder): ...

`error` wants exit code 2 and a message that holds every text given; `right` wants exit code 0; `either`
wants one of the two. A traceback, a hang and an error that is ours ("a fault of uetrust") are never right.
"""

import ctypes
import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.helpers.forked import SERVER, begin

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
    is_further: bool = False  # After the first two of its function: `make test-all` tries it

    def __str__(self):
        return f"{self.suite}: {self.name}"


REGISTRY = {}


def fault(wanted, *says, cases=None, **options):
    "Register a case, or one for each of `cases` (name -> what the function gets beside the folder)."

    def register(prepare):
        suite = prepare.__module__.rpartition(".")[2]
        for i, (name, given) in enumerate((cases or {"": None}).items()):
            label = " ".join([prepare.__name__.replace("_", " "), str(name)]).strip()
            made = prepare if cases is None else lambda folder, given=given: prepare(folder, given)
            assert (suite, label) not in REGISTRY, label
            REGISTRY[suite, label] = Fault(suite, label, made, wanted, says, options, i > 1)
        return prepare

    return register


def all_faults():
    "The cases of all suites, in the order of their names."
    from tests import faults

    for module in pkgutil.iter_modules(faults.__path__):
        importlib.import_module(f"tests.faults.{module.name}")
    return [REGISTRY[key] for key in sorted(REGISTRY)]


class _Answers(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.calls.append(asked | dict(idempotency=self.headers["Idempotency-Key"]))
        reply = self.server.answer(asked, len(self.server.calls))
        if reply is None:
            return self.connection.close()
        status, body = reply
        self.send_response(status)
        self.end_headers()
        for part in [body] if isinstance(body, bytes) else body:
            self.wfile.write(part)


class _AnswerServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args):  # A client that left
        pass


SERVERS = []  # Of the case that is tried


def start_answers(answer):
    "Address of a server; `answer(asked, number)` gives status and bytes (or parts), or None for a reset."
    server = _AnswerServer(("127.0.0.1", 0), _Answers)
    server.answer, server.calls, server.lock = answer, [], threading.Lock()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    SERVERS.append(server)
    return f"http://127.0.0.1:{server.server_port}/v1"


def stop_answers():
    while SERVERS:
        server = SERVERS.pop()
        server.shutdown()
        server.server_close()


def _obey_modes():
    "Let the modes of files count for root as well, as a read-only disk does."
    libc, head, rights = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522), (ctypes.c_uint32 * 6)()
    assert libc.capget(head, rights) == 0
    for kind in (0, 1):  # Effective and permitted CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER
        rights[kind] &= ~0b1110
    assert libc.capset(head, rights) == 0


def _set_writable(folder, writable):
    for path in [Path(folder), *Path(folder).rglob("*")]:
        if not path.is_symlink():
            path.chmod((0o755 if writable else 0o555) if path.is_dir() else (0o644 if writable else 0o444))


def _child(argv, folder, stdin, env, memory, disk, readonly):
    written = (os.open(f"{folder}.{end}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for end in ("out", "err"))
    begin(folder, os.environ | env, [os.open(stdin or os.devnull, os.O_RDONLY), *written])
    if readonly:
        _obey_modes()
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if disk:
        resource.setrlimit(resource.RLIMIT_FSIZE, (disk, disk))
    from uetrust.cli.cli import main

    sys.argv[:] = ["uetrust", *argv]
    sys.exit(main(argv))


def _seconds_in_line(pid):
    "Seconds that a process was ready while the processors worked for others."
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):  # It has ended, or the system does not say
        return 0.0


def seconds_taken(child, start, limit):
    "Seconds until a process ended or took longer than the limit; a busy machine is not its fault."
    waited = 0.0
    while (seconds := time.monotonic() - start - waited) < limit:
        child.join(min(limit - seconds, 0.1))
        if not child.is_alive():
            return time.monotonic() - start - waited
        waited = _seconds_in_line(child.pid)
    return seconds


def run_command(
    argv,
    folder,
    stdin=None,
    env=None,
    limit=LIMIT,
    memory=None,
    disk=None,
    meanwhile=None,
    readonly=False,
):
    """Outcome of `uetrust argv` in a folder; killed after the limit; `disk`: most bytes of a file.

    With `readonly` nothing in the folder can be written, also not by root.

    `meanwhile(folder)` is called while it runs; then it is interrupted, as with Ctrl-C.
    """
    argv, start = [str(word) for word in argv], time.monotonic()
    limits = memory, disk, readonly
    child = SERVER.Process(target=_child, args=(argv, str(folder), stdin, env or {}, *limits))
    if readonly:
        _set_writable(folder, False)
    child.start()
    try:
        if meanwhile:
            meanwhile(folder)
            os.kill(child.pid, signal.SIGINT)
        seconds = seconds_taken(child, start, limit)
    except BaseException:
        child.kill()
        raise
    if child.is_alive():
        child.kill()
        child.join()
    if readonly:
        _set_writable(folder, True)  # So that it can be removed
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
    try:
        outcome = run_command(case.prepare(folder), folder, **options)
        found = verdict(case, outcome, options.get("limit", LIMIT))
        if check and found in GOOD:
            check(folder, outcome)
    finally:
        stop_answers()
    return outcome, found
