"""Every known fault, through the command that users type, ends in a clear error or the right answer."""

import time

import pytest

from tests.faults.harness import (
    GOOD,
    Fault,
    Outcome,
    all_faults,
    seconds_taken,
    try_fault,
    verdict,
)
from tests.helpers.forked import SERVER, start_server


@pytest.fixture(scope="module", autouse=True)
def server():
    "The process that commands are forked from, with the slow packages imported."
    start_server()


CASES = [pytest.param(case, marks=[pytest.mark.long] * case.is_further) for case in all_faults()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fault(case, tmp_path, record_property):
    folder = tmp_path / "work"
    folder.mkdir()
    outcome, found = try_fault(case, folder)
    record_property("fault", (case.suite, found))
    assert found in GOOD, f"{found} after {outcome.seconds:.1f} s, exit {outcome.code}\n{outcome.err[-2000:]}"


@pytest.mark.parametrize(
    "work, hangs", [("while True: pass", True), ("import time; time.sleep(9)", True), ("", False)]
)
def test_what_works_or_sleeps_too_long_hangs(work, hangs):
    child = SERVER.Process(target=exec, args=(work,))
    child.start()
    seconds = seconds_taken(child, time.monotonic(), 0.5)
    child.kill()
    assert (seconds >= 0.5) == hangs


@pytest.mark.parametrize(
    "wanted, code, err, seconds, expected",
    [
        ("error", 2, "uetrust: error: a.csv, line 3", 0, "clear"),
        ("error", 2, "uetrust: error: something", 0, "vague"),
        ("error", 2, "uetrust: error: a.csv: unexpected KeyError. This is a fault of uetrust", 0, "vague"),
        ("error", 0, "", 0, "silent"),
        ("error", 2, "uetrust: error: a.csv", 11, "hang"),
        ("error", 1, "Traceback (most recent call last):\n  a.csv", 0, "traceback"),
        ("error", -9, "uetrust: error: a.csv", 0, "traceback"),
        ("right", 2, "uetrust: error: a.csv", 0, "refused"),
        ("right", 0, "", 0, "right"),
        ("either", 0, "", 0, "right"),
        ("either", 2, "uetrust: error: a.csv", 0, "clear"),
    ],
)
def test_the_harness_tells_good_ends_from_bad_ones(wanted, code, err, seconds, expected):
    case = Fault("harness", "case", None, wanted, ("a.csv",))
    assert verdict(case, Outcome(code, "", err, seconds)) == expected
