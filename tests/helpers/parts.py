"""Two parts of the tests: `make test` runs the short one, `make test-all` what that leaves out or shortens.

`data/test_seconds.csv` says how long each test took on an idle machine with two cores; a test that is not
listed is short. A run of pytest without `--part` runs everything.
"""

import pandas as pd

from tests.helpers.paths import ROOT

SECONDS = ROOT / "data" / "test_seconds.csv"
LONG = 1.5  # Seconds above which a test runs in `make test-all` only
LISTED = 0.5  # Below, the tests of a file share one row
OTHERS = "others"
SHORTENED = {"stamped", "draws"}  # Fixtures of tests that `make test` passes over or shortens


def seconds():
    "Table with `file`, `test` and `seconds`"
    return pd.read_csv(SECONDS, keep_default_na=False) if SECONDS.exists() else _table([])


def _table(rows):
    return pd.DataFrame(rows, columns=["file", "test", "seconds"])


def _is_shortened(item):
    return not SHORTENED.isdisjoint(item.fixturenames)


def of_part(part, items):
    "The tests of a part: `short`, `rest`, or all of them"
    found = seconds()
    found = found[(found["seconds"] > LONG) & (found["test"] != OTHERS)]
    long = set(found["file"] + "::" + found["test"])
    if part == "short":
        return [item for item in items if _is_shortened(item) or item.nodeid not in long]
    if part == "rest":
        return [item for item in items if _is_shortened(item) or item.nodeid in long]
    return items


def keep(path, reports):
    "Write the seconds of the tests that ran; files of which none ran keep their rows"
    took = {}
    for report in reports:
        took[report.nodeid] = took.get(report.nodeid, 0) + report.duration
    rows = [(*name.split("::", 1), value) for name, value in took.items()]
    found = _table(rows)
    found["test"] = found["test"].where(found["seconds"] >= LISTED, OTHERS)
    found = found.groupby(["file", "test"], as_index=False)["seconds"].sum()
    before = seconds()
    table = pd.concat([before[~before["file"].isin(found["file"])], found])
    table["seconds"] = table["seconds"].round(1)
    table[table["seconds"] > 0].sort_values(["file", "test"]).to_csv(path, index=False, lineterminator="\n")
