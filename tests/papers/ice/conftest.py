"""Fixtures of several files of this folder."""

import pytest

from tests.helpers import endpoints as te
from tests.helpers.ice import TRUTH, numbers
from uetrust.papers.ice import live as st
from uetrust.papers.ice.live import ICE_DIMENSIONS


@pytest.fixture(scope="module")
def pool():
    return st.scored_summaries("bulletin:test:12")


@pytest.fixture
def knowing(pool, monkeypatch):
    monkeypatch.setattr(te, "completion", numbers)
    TRUTH.update(
        {
            f"{r.hypothesis}\n{d.capitalize()}:": getattr(r, d)
            for r in pool.itertuples()
            for d in ICE_DIMENSIONS
        }
    )
