"""Fixtures of several files of this folder."""

import pytest

from uetrust.papers.ledger import cells as ledger


@pytest.fixture(scope="module")
def led():
    return ledger.cell_ledger()
