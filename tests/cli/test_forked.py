"""Forked kernels: a copy of this process runs a function, with what is imported here, and ends as told."""

import os
import signal
import sys
import time

from uetrust.cli.forked import _ForkedProcess


def test_a_copy_has_what_is_imported_and_changes_nothing_here(tmp_path):
    here = {}

    def run(at):
        here["changed"] = True
        at.write_text(f"{os.getpid()} {'pytest' in sys.modules}")

    process = _ForkedProcess(run, tmp_path / "said")
    assert process.wait() == 0 == process.poll() and here == {}
    assert (tmp_path / "said").read_text() == f"{process.pid} True" and process.pid != os.getpid()


def test_an_exit_code_is_passed_on():
    assert _ForkedProcess(sys.exit, 3).wait() == 3


def test_it_is_ended_by_the_signal_that_was_sent():
    for end, number in (("terminate", signal.SIGTERM), ("kill", signal.SIGKILL)):
        process = _ForkedProcess(time.sleep, 60)
        assert process.poll() is None
        getattr(process, end)()
        assert process.wait() == -number
