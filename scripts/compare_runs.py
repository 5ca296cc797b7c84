"""compare_runs.py OLD NEW: are the tables, figures and scores of two runs the same, byte by byte?

OLD and NEW are folders such as runs/demo. All CSV files are compared as bytes, all tables of scores value by
value; files of one run only, and files that differ, are listed with their first difference.
"""

import sys
from itertools import zip_longest
from pathlib import Path

import pandas as pd


def files(run):
    found = [*Path(run).rglob("*.csv"), *(Path(run) / "scores").glob("*.parquet")]
    return {path.relative_to(run).as_posix() for path in found}


def lines(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_csv(float_format="%r").splitlines()
    return path.read_bytes().splitlines()


def first_difference(old, new):
    "'' when there is none"
    pairs = enumerate(zip_longest(lines(old), lines(new), fillvalue="(no line)"), 1)
    number, (was, now) = next(((i, pair) for i, pair in pairs if pair[0] != pair[1]), (0, ("", "")))
    return f"line {number}: {was[:100]!r} was, {now[:100]!r} is" if number else ""


def main(old, new):
    before, after = files(old), files(new)
    report = [f"only in {old}: {name}" for name in sorted(before - after)]
    report += [f"only in {new}: {name}" for name in sorted(after - before)]
    both = {name: first_difference(Path(old) / name, Path(new) / name) for name in sorted(before & after)}
    report += [f"{name}: {why}" for name, why in both.items() if why]
    equal = sum(not why for why in both.values())
    print("\n".join([*report, f"{equal} of {len(before | after)} files are equal"]))
    return bool(report)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
