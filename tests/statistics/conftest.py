"""Fixtures of several files of this folder."""

import pandas as pd
import pytest

from tests.helpers.compared import TEXTS
from tests.helpers.prompted import THREE, D
from uetrust.core.settings import root
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank
from uetrust.generation.local import fill_local_bank
from uetrust.models.load import load_model


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


# Hypotheses of an ensemble


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    model = load_model(root() / "data" / "models" / "tiny-bart", device="cpu")
    return model, fill_local_bank(
        tmp_path_factory.mktemp("bart") / "texts", "bulletin", "bart", THREE, model, D, progress=False
    )
