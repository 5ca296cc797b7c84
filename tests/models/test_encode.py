"""Encoders: what cannot encode is refused, and what does not fit is counted."""

import pytest

from tests.helpers.writers import tiny
from uetrust.models.encode import embed_texts


def test_a_language_model_is_no_encoder():
    with pytest.raises(ValueError, match="bart is a seq2seq model"):
        embed_texts(tiny("bart"), ["w1"])
