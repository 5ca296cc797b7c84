"""What the tests of qa share."""

import pytest

from uetrust.core.settings import oracles
from uetrust.models.load import load_model


@pytest.fixture(scope="module")
def texts(oracle):
    return {t["id"]: t for t in oracle("metrics/triples.json")["triples"]}


@pytest.fixture(scope="module")
def model(oracle):
    oracle("metrics/triples.json")
    seen = {}
    return lambda name: (
        seen[name]
        if name in seen
        else seen.setdefault(name, load_model(oracles() / "metrics" / "models" / name))
    )


@pytest.fixture(scope="module")
def asked(oracle, texts):
    return [
        (i["question"], texts[i["triple"]][i["context_field"]])
        for i in oracle("metrics/qa_span.json")["items"]
    ]


def same(a, w):
    return (a.text, a.start, a.end) == (w["answer"], w["start"], w["end"]) and a.score == pytest.approx(
        w["score"], abs=1e-6
    )
