"""Texts with a truth, and few labels of it."""

import numpy as np
import pandas as pd
import pytest


def labels_of(texts, n=80, seed=0):
    return texts["truth"].sample(n, random_state=seed)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=600)
    columns = dict(truth=truth, unsure=-truth + rng.normal(size=600), other=-truth + 2 * rng.normal(size=600))
    columns |= dict(close=truth + rng.normal(size=600) / 3, noise=rng.normal(size=600), constant=1.0)
    return pd.DataFrame(columns, index=[f"text {i}" for i in range(600)])
