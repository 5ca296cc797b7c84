"""An assertion that a method's PRR is not worse than in a stored baseline."""

import numpy as np
import pandas as pd
import pytest

from uetrust import prr_difference
from uetrust.scoring.plugins.not_worse import assert_prr_not_worse

RNG = np.random.default_rng(0)
HUMAN = RNG.random(200)
GOOD, CHANCE = RNG.normal(size=200) - 3 * HUMAN, RNG.normal(size=200)


def table(msp, human=HUMAN):
    return pd.DataFrame(dict(human=human, msp=msp), [f"q{i}" for i in range(len(human))])


@pytest.mark.parametrize("kind", ["arrays", "frame", "file"])
def test_a_worse_method_fails_with_its_interval(kind, tmp_path):
    def stored(msp, name):
        if kind == "file":
            table(msp).to_csv(tmp_path / name, index_label="sample")
        return dict(arrays=dict(human=HUMAN, msp=msp), frame=table(msp), file=tmp_path / name)[kind]

    before, now = stored(GOOD, "before.csv"), stored(CHANCE, "now.csv")
    found = prr_difference(HUMAN, CHANCE, GOOD)
    said = rf"difference {found.value:.3f}, 95 % interval \[{found.lo:.3f}, {found.hi:.3f}\], n=200$"
    names = ("human", "msp", "sample" if kind == "file" else None)
    with pytest.raises(AssertionError, match=said):
        assert_prr_not_worse(now, before, *names)
    assert assert_prr_not_worse(before, now, *names).value == pytest.approx(-found.value)
    assert assert_prr_not_worse(now, now, *names).value == 0


def test_samples_are_joined_by_name_and_documents_are_clusters():
    before, document = table(GOOD), pd.Series(np.arange(200) // 4, table(GOOD).index)
    noisy = table(RNG.normal(size=200) - 3 * HUMAN)
    found = assert_prr_not_worse(noisy[::-1], before, "human", "msp", document=document)
    expected = prr_difference(HUMAN, noisy["msp"], GOOD, document=document)
    assert (found.value, found.se) == pytest.approx((expected.value, expected.se))
    assert found.se != pytest.approx(prr_difference(HUMAN, noisy["msp"], GOOD).se)


@pytest.mark.parametrize(
    "now, error, said",
    [
        (
            table(np.where(HUMAN > 0.9, np.nan, GOOD)),
            AssertionError,
            "msp has no value for .* of 200 samples",
        ),
        (table(GOOD, HUMAN / 2), ValueError, "'human' of 200 samples is not that of the baseline"),
        (table(GOOD)[:150], ValueError, "50 samples are missing now: q150"),
        (pd.concat([table(GOOD), table(GOOD)[:1]]), ValueError, "sample 'q0' occurs twice"),
        (table(GOOD).rename(columns=dict(msp="mps")), ValueError, "has no column 'msp'. Did you mean 'mps'"),
    ],
    ids=["lost", "labels", "missing", "twice", "name"],
)
def test_what_cannot_be_compared_is_refused(now, error, said):
    with pytest.raises(error, match=said):
        assert_prr_not_worse(now, table(GOOD), "human", "msp")


def test_too_few_samples_and_a_baseline_that_is_not_there(tmp_path):
    few = table(GOOD)[:3]
    with pytest.raises(ValueError, match="no interval from 3 samples: needs at least 4"):
        assert_prr_not_worse(few, few, "human", "msp")
    with pytest.raises(
        FileNotFoundError, match="gone.csv does not exist. Store a table of scores there once"
    ):
        assert_prr_not_worse(table(GOOD), tmp_path / "gone.csv", "human", "msp")
