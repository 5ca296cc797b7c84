"""What the tests of tables share."""

import json

import pytest

from tests.helpers.paths import ROOT
from uetrust.cli.cli import main

CASES = ROOT.parent / "shared" / "cases"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is not at hand")


def call(capsys, *argv):
    code = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    return code, out, err


def prr_of(capsys, file, *argv):
    "First row of `uetrust prr FILE`, and what it said beside it"
    code, out, err = call(capsys, "prr", file, *argv, "--json")
    assert code == 0, err
    return json.loads(out)[0], err


# The same through every command, with files of our own
U = [1.2, 0.9, 1.1, 0.4, 0.7, 0.8, 0.3, 0.5, 0.1, 0.2, -0.3, 0]
ROWS = [dict(id=f"s{i}", rouge=i / 16, u=u, v=i * 7 % 5 / 5) for i, u in enumerate(U)]
