"""What the tests of regret share."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.settings import mirror

real = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")
RNG = np.random.default_rng(3)
TRUTH = RNG.normal(size=600)
DOCUMENTS = pd.Series(np.arange(600) // 6)
NOISY = pd.DataFrame({f"m{sd}": -TRUTH + sd * RNG.normal(size=600) for sd in (1, 2, 4)})
QUALITY = pd.DataFrame(dict(people=TRUTH, turned=-TRUTH, constant=1.0))
