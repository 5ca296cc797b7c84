"""Heads on checkpoints: an answer of 1 or 0, texts as the release cleans them."""

# ruff: noqa: F811

import numpy as np

from tests.helpers.alignment import texts  # noqa: F401
from tests.helpers.heads import folder  # noqa: F401
from uetrust.models import heads as hd
from uetrust.models.load import load_model


def test_a_t5_that_answers_1_or_0(folder):
    model = load_model(folder / "tiny_t5")
    logps, cut = hd.true_nli_logp(model, [("Rain fell.", "Dogs ran."), ("Rain fell. " * 400, "Dogs ran.")])
    assert logps.shape == (2, 2) and (logps < 0).all() and cut[0] == 0 < cut[1]
    np.testing.assert_allclose(
        hd.true_nli_logp(model, [("Rain fell.", "Dogs ran.")])[0][0], logps[0], atol=1e-5
    )


def test_cleaned_texts_are_those_of_ctc(oracle, texts):
    for i, want in oracle("metrics/ctc.json")["cleaned_hypotheses"].items():
        assert hd.ctc_text(texts[i]["hypothesis"]) == (want or "")
