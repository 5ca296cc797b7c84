"""What the tests of measures share."""

import numpy as np
import pytest
from hypothesis import strategies as st

near = lambda x, tol=1e-12: pytest.approx(x, rel=0, abs=tol, nan_ok=True)
# ---- what was recorded from peers' code
RANKED = "continuous20", "tied_uncertainty50", "binary40", "ice_coherence128"


def cases(oracle, group):  # name -> (quality, uncertainty, recorded outputs)
    return {
        c["name"]: (
            *(np.array([float(v) for v in c["inputs"][k]]) for k in ("target", "estimator")),
            c["outputs"],
        )
        for c in oracle("uncertainty.json")[group]
    }


eighths = st.integers(0, 8).map(lambda k: k / 8)  # few levels, so that ties are common
samples = st.lists(st.tuples(eighths, eighths), min_size=2, max_size=14).map(lambda p: np.array(p).T.copy())
