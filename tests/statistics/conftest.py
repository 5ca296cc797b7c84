"""Fixtures of several files of this folder."""

import pandas as pd
import pytest

from tests.helpers.compared import TEXTS
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank


@pytest.fixture
def repeated(tmp_path):
    samples = pd.DataFrame(dict(id=list(TEXTS), source="x"))
    return fill_bank(
        tmp_path / "bank",
        samples,
        bank_provenance("toy", "echo", "echo", "", {}, dict(greedy=1, sample=3)),
        lambda part: [
            bank_row(source, "sample" if i else "greedy", max(i - 1, 0), text)
            for source in part["id"]
            for i, text in enumerate(TEXTS[source])
        ],
        progress=False,
    )
