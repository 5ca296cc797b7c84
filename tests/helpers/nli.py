"""What the tests of nli share."""

import pytest

from uetrust.core.settings import oracles
from uetrust.models.load import load_model

MNLI = {
    0: "contradiction",
    1: "neutral",
    2: "entailment",
}  # The order of another checkpoint, put on the tiny one


@pytest.fixture(scope="module")
def triples(oracle):
    return {triple["id"]: triple for triple in oracle("metrics/triples.json")["triples"]}


@pytest.fixture(scope="module")
def nli_model(oracle):
    oracle("metrics/triples.json")
    return load_model(oracles() / "metrics/models/tiny_bert_nli")
