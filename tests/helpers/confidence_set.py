"""What the tests of confidence_set share."""

import numpy as np
import pandas as pd


def methods(n=240, noises=(1.0, 1.2, 5.0), seed=0, documents=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    ids = np.arange(n) * documents // n if documents else np.arange(n)
    shared = rng.normal(size=(ids.max() + 1, len(noises)))[ids] if documents else 0
    noise = 0.6 * shared + rng.normal(size=(n, len(noises)))
    return pd.Series(truth), pd.DataFrame(-truth[:, None] + noises * noise, columns=list("abc")), ids
