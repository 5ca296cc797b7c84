"""What the tests of alignment share."""

import pytest


@pytest.fixture(scope="module")
def texts(oracle):
    return {text["id"]: text for text in oracle("metrics/triples.json")["triples"]}
