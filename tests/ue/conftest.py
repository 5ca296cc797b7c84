"""Fixtures of several files of this folder."""

import numpy as np
import pytest

from tests.helpers.density import FULL, THIN, Case
from uetrust.core.settings import oracles


@pytest.fixture(scope="module")
def cases(oracle):
    got = oracle("uncertainty.json")["density"]
    assert {case["name"] for case in got} == {*FULL, THIN}
    arrays = np.load(oracles() / "uncertainty.npz")
    return {case["name"]: Case(case, arrays) for case in got}
