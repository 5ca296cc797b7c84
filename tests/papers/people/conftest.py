"""Fixtures of several files of this folder."""

import pytest

from tests.helpers.regret import DOCUMENTS, NOISY, QUALITY
from uetrust.papers.people.regret import people_choice_regret


@pytest.fixture(scope="module")
def made():
    return people_choice_regret(QUALITY, NOISY, DOCUMENTS, "people", (50, None), draws=60, boots=80)
