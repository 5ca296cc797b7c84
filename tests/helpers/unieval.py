"""What the tests of unieval share."""

import numpy as np
import pytest

from uetrust.core.registry import reg
from uetrust.core.run import ScoreRun
from uetrust.core.segmentation import split_sentences
from uetrust.core.settings import oracles
from uetrust.generation.decoding import HE2024_DECODING
from uetrust.models.likelihoods import unieval_answers
from uetrust.models.load import load_model

DIMS = ("coherence", "consistency", "fluency", "relevance")
PREFIX = HE2024_DECODING.prompt.removesuffix("{source}")


@pytest.fixture(scope="module")
def t5():
    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    return load_model(oracles() / "metrics/models/tiny_t5", device="cpu")


@pytest.fixture(scope="module")
def run(oracle, t5):
    "All leaves of all items, in one run"
    rec = oracle("metrics/unieval.json")
    docs = {
        triple["id"]: triple
        for triple in oracle("metrics/triples.json")["triples"]
        if triple["id"] in rec["he_variant"]
    }
    texts = {
        key: [doc[key] for doc in docs.values()] for key in ("hypothesis", "source", "reference")
    } | dict(sentence=[split_sentences(doc["hypothesis"]) for doc in docs.values()])
    plain, cut = unieval_answers(t5, DIMS, texts)
    fact, _ = unieval_answers(t5, ["consistency"], texts, "yes_no_fact")
    he, _ = unieval_answers(t5, ["coherence", "consistency"], texts, "yes_no_{}_he2024", PREFIX)
    bare, _ = unieval_answers(t5, ["coherence", "consistency"], texts, "yes_no_{}_he2024")
    return (
        rec,
        texts,
        cut,
        ScoreRun(list(docs), reg, **plain | fact | he),
        ScoreRun(list(docs), reg, **plain | bare),
    )


def near(got, want, tol=2e-5):
    np.testing.assert_allclose(got, want, rtol=0, atol=tol)
