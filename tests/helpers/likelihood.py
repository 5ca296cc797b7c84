"""What the tests of likelihood share."""

import numpy as np
import pytest

from uetrust.core.settings import oracles
from uetrust.data.bulletins import bulletin
from uetrust.models.load import load_model

TOL = 2e-5


def close(got, want, tol=TOL):
    np.testing.assert_allclose(list(got), list(want), rtol=0, atol=tol)


@pytest.fixture(scope="module")
def reader():
    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    seen = {}
    return lambda name: seen.setdefault(
        name, load_model(oracles() / name, device="cpu") if name not in seen else None
    )


@pytest.fixture(scope="module")
def pairs(oracle):
    return {pair["id"]: pair for pair in oracle("seed_systems/pairs.json")}


@pytest.fixture(scope="module")
def bulletins():
    rng = np.random.default_rng(0)
    items = [bulletin("test", i) for i in range(6)]

    def salad(text):
        return " ".join(rng.permutation(text.split()))

    return dict(
        source=[item["source"] for item in items],
        hypothesis=[item["reference"] for item in items],
        reference=[item["paraphrase"] for item in items],
        salad=[salad(item["reference"]) for item in items],
    )
