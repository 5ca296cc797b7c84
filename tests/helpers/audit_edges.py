"""What the tests of audit_edges share."""

import numpy as np

from uetrust.report import audit_planning
from uetrust.report.audit import audit
from uetrust.report.pitfalls import Audited


# Which methods are the best
def pairs(n, methods=2, seed=0):
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=n)
    return quality, {f"u{i}": -quality + (i + 1) * rng.normal(size=n) for i in range(methods)}


# What to do next
def panel(find, df, methods, quality, document=None):
    unsure = df[methods].astype(float)
    document = None if document is None else df[document]
    return getattr(audit_planning, find)(
        Audited(df[quality].astype(float), unsure, quality[0], document=document)
    )


def judged(df, uncertainty, quality=(), **columns):
    "Audit of named columns of a table"
    return audit(df, quality=quality, uncertainty=uncertainty, **columns)
