"""What the tests of correlations share."""

import numpy as np

LEVEL = dict(system="system", input="per_document", **{"global": "pooled"})


def close(a, b, tol):
    np.testing.assert_allclose(np.array(a, float), np.array(b, float), rtol=0, atol=tol)
