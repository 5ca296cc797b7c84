"""What the tests of generations share."""

import os
from pathlib import Path

import pandas as pd

from uetrust.cli.cli import main
from uetrust.core.settings import root

CASES = Path(os.environ.get("UETRUST_CASES", root() / ".." / "shared" / "cases"))


def scored(capsys, tmp_path, name, *options, code=0):
    "Scores of a case, by item, and what was said on stderr."
    out = tmp_path / "scores.csv"
    try:
        assert main(["score", str(CASES / name), *options, "--out", str(out), "--csv"]) == code
    except SystemExit as stopped:
        assert code == 1 and "no text has a value" in str(stopped)
    printed = capsys.readouterr()
    return pd.read_csv(out, dtype=dict(id=str)).set_index("id") if code < 2 else None, printed.err
