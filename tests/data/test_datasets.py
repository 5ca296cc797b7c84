"""Data sets by name: the subjects of people stand beside the senders."""

import pandas as pd
import pytest

from uetrust.core.settings import mirror
from uetrust.data.datasets import load_samples
from uetrust.scoring.metrics import compute_metrics

real = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")


@real
def test_the_subjects_of_people_stand_beside_the_senders():
    known, more = load_samples("aeslc:test:40"), load_samples("aeslc-annotated:test:40")
    assert (
        more.drop(columns="references").equals(known)
        and more["references"].str.len().eq(4).all()
        and (more["references"].str[0] == known["reference"]).all()
    )
    table = compute_metrics(
        pd.DataFrame(
            dict(
                id=more["id"],
                hypothesis=[row[2] for row in more["references"]],
                references=more["references"],
            )
        ),
        {},
        ["rouge_l"],
        progress=False,
    ).table
    assert (
        (table["value"] == 1) | table["note"].str.startswith("the reference has no word")
    ).all() and table["value"].notna().sum() > 35
    with pytest.raises(
        ValueError, match="e-mails of 'train' as they are here have no annotated subjects: aeslc:train:N"
    ):
        load_samples("aeslc-annotated:train:3")
