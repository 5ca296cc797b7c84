"""Blocks of texts: what generators have in common, a PRR of each block, and blocks without a gap."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.prr import prr
from uetrust.papers.bulletins.blocks import common_columns, one_per_family, prr_blocks, without_gaps


def scored(seed, texts, methods, metrics):
    rng, index = np.random.default_rng(seed), [f"t{i}" for i in texts]
    table = lambda names: pd.DataFrame(rng.normal(size=(len(index), len(names))), index, names)
    return SimpleNamespace(quality=table(metrics), choices=table(methods))


@pytest.fixture
def two():
    return dict(
        one=scored(1, range(0, 60), ["u", "v", "w"], ["truth", "rouge_1", "bleu"]),
        other=scored(2, range(50, 5, -1), ["w", "v"], ["bleu", "truth", "ter"]),
    )


def test_what_is_common_keeps_the_order_of_the_first(two):
    texts, methods, metrics = common_columns(two)
    assert list(texts) == [f"t{i}" for i in range(6, 51)]
    assert methods == ["v", "w"] and metrics == ["bleu"], "the truth is no metric"


def test_a_block_has_the_prr_of_its_texts(two):
    values, methods = prr_blocks(two, ["truth", "bleu"], block=20)
    assert values.shape == (2, 2, 2, 2) and methods == ["v", "w"]
    rows = [f"t{i}" for i in range(26, 46)]
    for m, method in enumerate(methods):
        for g, one in enumerate(two.values()):
            expected = prr(one.quality.loc[rows, "bleu"], one.choices.loc[rows, method]).value
            assert values[m, 1, g, 1] == pytest.approx(expected)


def test_a_block_in_which_one_quality_is_constant_is_left_out(two):
    two["other"].quality.loc[[f"t{i}" for i in range(6, 26)], "bleu"] = 1.0
    values, _ = prr_blocks(two, ["truth", "bleu"], block=20)
    assert np.isnan(values[:, 0]).any() and without_gaps(values).shape == (2, 1, 2, 2)
    assert np.array_equal(without_gaps(values)[:, 0], values[:, 1])


def test_a_family_has_one_witness():
    names = one_per_family(["rouge_1", "rouge_2", "rouge_l", "bart_score"])
    assert names[0] == "rouge_1" and names[1:] == ["bart_score"]
