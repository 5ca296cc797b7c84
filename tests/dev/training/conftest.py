"""Fixtures of several files of this folder."""

import pytest

from uetrust.dev.training import train


@pytest.fixture(scope="module")
def texts():
    return train._tokenizer_corpus()
