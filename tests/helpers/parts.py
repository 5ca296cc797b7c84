"""Two parts of the tests: `make test` runs the short one, `make test-all` what that leaves out or shortens.

`data/test_seconds.csv` says how long each test took on an idle machine with two cores; a test that is not
listed is short. So is one without the marker `long`, which stands where several share a long preparation. A
run of pytest without `--part` runs everything.
"""

import pandas as pd

from tests.helpers.paths import ROOT

SECONDS = ROOT / "data" / "test_seconds.csv"
LONG = 0.5  # Seconds above which a test runs in `make test-all` only
LISTED = 0.4  # Below, the tests of a file share one row
OTHERS, LEFT_OUT = "others", "others with the marker long"
SHORTENED = {"stamped", "draws"}  # Fixtures of tests that `make test` passes over or shortens


def seconds():
    "Table with `file`, `test` and `seconds`"
    return pd.read_csv(SECONDS, keep_default_na=False) if SECONDS.exists() else _table([])


def _table(rows):
    return pd.DataFrame(rows, columns=["file", "test", "seconds"])


def _is_shortened(item):
    return not SHORTENED.isdisjoint(item.fixturenames)


def _is_long(item, listed):
    return item.nodeid in listed or item.get_closest_marker("long") is not None


def of_part(part, items):
    "The tests of a part: `short`, `rest`, or all of them"
    found = seconds()
    found = found[(found["seconds"] > LONG) & ~found["test"].isin([OTHERS, LEFT_OUT])]
    listed = set(found["file"] + "::" + found["test"])
    if part == "short":
        return [item for item in items if _is_shortened(item) or not _is_long(item, listed)]
    if part == "rest":
        return [item for item in items if _is_shortened(item) or _is_long(item, listed)]
    return items


def _row(nodeid, took, marked):
    file, test = nodeid.split("::", 1)
    return file, LEFT_OUT if nodeid in marked else test if took >= LISTED else OTHERS, took


def keep(path, reports, part=None):
    "Write the seconds of the tests that ran; tests that a part left out and other files keep theirs"
    took, marked = {}, {report.nodeid for report in reports if "long" in report.keywords}
    for report in reports:
        took[report.nodeid] = took.get(report.nodeid, 0) + report.duration
    found = _table([_row(nodeid, seconds, marked) for nodeid, seconds in took.items()])
    before, shared = seconds(), {"short": [OTHERS], "rest": [LEFT_OUT], None: [OTHERS, LEFT_OUT]}[part]
    of_files = before["file"].isin(found["file"])
    gone = (before["file"] + "::" + before["test"]).isin(list(took)) | of_files & before["test"].isin(shared)
    table = pd.concat([before[~(of_files if part is None else gone)], found])
    table = table.groupby(["file", "test"], as_index=False)["seconds"].sum()
    table["seconds"] = table["seconds"].round(1)
    table[table["seconds"] > 0].to_csv(path, index=False, lineterminator="\n")
