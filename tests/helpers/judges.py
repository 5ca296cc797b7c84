"""Texts to be judged."""

import pandas as pd

MANY = pd.DataFrame(
    dict(
        id=[f"t{i}" for i in range(24)],
        hypothesis=["It rained" + "." * i for i in range(24)],
        reference="Rain fell.",
    )
)
