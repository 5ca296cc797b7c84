"""Types of the public functions, as a type checker of a user sees them."""

import sys

import pytest

from tests.helpers.environments import UV, sh
from tests.helpers.paths import ROOT
from uetrust.cli.public import PUBLIC

RIGHT = """
import numpy as np
import pandas as pd

from uetrust import auroc, prr, prr_table, read_outputs, score_outputs

value: float = prr([0.9, 0.2, 0.6], np.array([0.2, 0.9, 0.1])).value
table: pd.DataFrame = prr_table(pd.DataFrame(dict(q=[0.9])), pd.DataFrame(dict(u=[0.2])))
area: float = auroc([1, 0, 1], [0.1, 0.9, 0.2])
wide: pd.DataFrame = score_outputs("replies.jsonl", ["msp"]).wide
notes: list = read_outputs("replies.jsonl").notes
"""
WRONG = """
from uetrust import prr, prr_tabel, read_outputs

name: str = prr([0.9, 0.2, 0.6], [0.2, 0.9, 0.1]).value
notes: int = read_outputs("replies.jsonl").notes
"""


def stub():
    lines = [
        f"from .{module} import {name} as {name}"
        for module, names in sorted(PUBLIC.items())
        for name in names.split()
    ]
    return "\n".join(
        ["# Where the public names stand, for type checkers", "", *lines, "", "__version__: str", ""]
    )


def test_type_checkers_find_every_public_name():
    assert (ROOT / "uetrust" / "__init__.pyi").read_text() == stub()


# Nothing public has a type of torch or transformers, which take mypy half a minute
CONFIG = """
[mypy]
ignore_missing_imports = True
[mypy-torch.*,transformers.*]
follow_imports = skip
"""


@pytest.mark.long
def test_a_type_checker_accepts_right_calls_and_refuses_wrong_ones(tmp_path):
    mypy = [UV, "run", "-q", "--no-project", "--isolated", "--with", "mypy", "mypy"]
    options = ["--python-executable", sys.executable, "--config-file", "mypy.ini"]
    (tmp_path / "mypy.ini").write_text(CONFIG)
    for name, text in dict(right=RIGHT, wrong=WRONG).items():
        (tmp_path / f"{name}.py").write_text(text)
    assert "Success" in sh(tmp_path, *mypy, *options, "right.py").stdout
    assert "Found 3 errors in 1 file" in sh(tmp_path, *mypy, *options, "wrong.py").stdout
