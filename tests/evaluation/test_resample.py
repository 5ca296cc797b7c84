"""Resampling: deleting and counting equal the closed forms."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.prr_cases import AREAS, scores, split
from uetrust.evaluation.prr import prr, prr_bootstrap
from uetrust.evaluation.resample import (
    bootstrap_counts,
    delete_cluster_areas,
    delete_one_areas,
    delete_one_counts,
    resampled_areas,
)
from uetrust.evaluation.weights import tie_order


@given(scores, st.sampled_from(AREAS))
def test_deleting_by_counting_equals_the_closed_form(pairs, area_and_rejection):
    quality, uncertainty = split(pairs)
    area, max_rejection = area_and_rejection
    if int(max_rejection * (len(quality) - 1)) < 2:
        return
    one_left_out = 1 - np.eye(len(quality), dtype=int)
    np.testing.assert_allclose(
        resampled_areas(tie_order(uncertainty), one_left_out, quality[:, None], area, max_rejection),
        delete_one_areas(tie_order(uncertainty), quality[:, None], area, max_rejection),
        atol=1e-10,
    )


@given(scores, st.sampled_from(AREAS), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_deleting_clusters_without_counts_equals_counting(pairs, area_and_rejection, units, seed):
    quality, uncertainty = split(pairs)
    ids = np.unique(np.random.default_rng(seed).integers(units, size=len(quality)), return_inverse=True)[1]
    area, max_rejection = area_and_rejection
    if int(max_rejection * (len(ids) - np.bincount(ids).max())) < 2:
        return
    order, risk = tie_order(uncertainty), np.stack([quality, quality[::-1] ** 2], 1)
    np.testing.assert_allclose(
        delete_cluster_areas(order, ids, risk, area, max_rejection),
        resampled_areas(order, delete_one_counts(ids), risk, area, max_rejection),
        atol=1e-12 * (1 + np.abs(risk).max()) * (len(ids) if area == "sum" else 1),
    )


def test_documents_of_a_quality_of_two_values_need_no_counts():
    "A document may lie whole in the last block of ties; 3,000 documents are too many for counts."
    rng = np.random.default_rng(0)
    quality, ids = (rng.normal(size=9000) > 0).astype(float), np.arange(9000) // 3
    order, risk = tie_order(-quality), quality[:, None] ** 2
    some = np.r_[0:50, 2950:3000]
    areas = delete_cluster_areas(order, ids, risk)
    np.testing.assert_allclose(
        areas[some], resampled_areas(order, delete_one_counts(ids, some), risk), atol=1e-12
    )
    assert np.isfinite(prr(quality, rng.normal(size=9000), document=ids).se)


def test_bootstrap_is_seeded_and_clusters_move_together():
    quality, uncertainty = (
        pd.DataFrame({"q": [1.0, 2, 3, 4, 5, 6]}),
        pd.DataFrame({"u": [6.0, 5, 3, 4, 1, 2]}),
    )
    assert (
        prr_bootstrap(quality, uncertainty, 20, seed=5) == prr_bootstrap(quality, uncertainty, 20, seed=5)
    ).all()
    counts = bootstrap_counts(6, 50, np.random.default_rng(0), np.array([0, 0, 1, 1, 2, 2]))
    assert (counts[:, ::2] == counts[:, 1::2]).all() and counts.sum(1).max() == 6
