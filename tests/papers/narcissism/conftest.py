"""Fixtures of several files of this folder."""

import pandas as pd
import pytest

from uetrust.data.bulletins import bulletins
from uetrust.papers.narcissism import live as live
from uetrust.scoring.generators import generator_settings


@pytest.fixture(scope="module")
def judges():
    return {
        name: live.evaluator_of(generator_settings(name)) for name in ("tiny-bart", "tiny-t5", "tiny-llama")
    }


@pytest.fixture(scope="module")
def texts():
    given = bulletins("test", 4)

    def by(name, summaries):
        about = dict(document=given["id"], source=given["source"], reference=given["reference"])
        return pd.DataFrame(dict(about, generator=name, hypothesis=summaries))

    return pd.concat(
        [
            by("tiny-bart", given["reference"]),
            by("tiny-t5", given["paraphrase"]),
            by("tiny-llama", ["Rain fell.", "The town is old.", "A vote.", "No."]),
        ],
        ignore_index=True,
    )
