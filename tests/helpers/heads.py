"""What the tests of heads share."""

import pytest

from uetrust.core.settings import oracles


@pytest.fixture(scope="module")
def folder(oracle):
    oracle("metrics/triples.json")
    return oracles() / "metrics/models"
