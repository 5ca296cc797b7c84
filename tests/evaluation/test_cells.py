"p, null interval, joint p and power where texts share documents"

import itertools
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.audit_edges import judged
from tests.helpers.prr_cases import AREAS, scores, split
from uetrust import prr, prr_table
from uetrust.core.settings import root
from uetrust.evaluation import cells as cell_maths
from uetrust.evaluation.cells import (
    PRRCells,
    deletion_counts,
    joint_p,
    permutation_p,
    prr_null_sd,
    prr_p_values,
    prr_replicates,
    prr_standard_error,
)
from uetrust.evaluation.definitions import released_prr
from uetrust.evaluation.inference.power import power_table
from uetrust.evaluation.resample import cluster_ids
from uetrust.evaluation.weights import rank_weights

SHARED = root().parent / "shared" / "cases"


def drawn(sizes, share, seed, unsure_share=None):  # Quality, uncertainty and documents without a relation
    rng, ids = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)

    def scores(share):
        return np.sqrt(share) * rng.normal(size=len(sizes))[ids] + np.sqrt(1 - share) * rng.normal(
            size=len(ids)
        )

    return scores(share), scores(share if unsure_share is None else unsure_share), ids


def orders_of_documents(groups, size):  # Every order of whole documents with every order inside them
    inside = list(permutations(range(size)))
    for documents in permutations(range(groups)):
        for orders in product(inside, repeat=groups):
            yield np.concatenate([size * g + np.array(order) for g, order in zip(documents, orders)])


@pytest.mark.parametrize("groups, size", [(3, 2), (4, 2), (3, 3)])
def test_the_null_is_that_of_all_orders_of_whole_documents(groups, size):
    quality, uncertainty, ids = drawn([size] * groups, 0.5, groups)
    cells = PRRCells(quality[:, None], uncertainty[:, None], clusters=ids)
    areas = np.array([cells.weights[0] @ cells.risk[order, 0] for order in orders_of_documents(groups, size)])
    assert areas.mean() == pytest.approx(0, abs=1e-12)
    assert prr_null_sd(cells)[0, 0] == pytest.approx(areas.std() / cells.gap[0], abs=1e-12)


def test_p_is_the_share_of_orders_where_documents_have_one_uncertainty():
    rng, ids = np.random.default_rng(1), np.repeat(np.arange(6), 2)
    quality, unsure = rng.normal(size=12), rng.normal(size=6)
    cells = PRRCells(quality[:, None], unsure[ids][:, None], clusters=ids)
    means = cells.risk[:, 0].reshape(6, 2).sum(1)
    weights = cells.weights[0].reshape(6, 2)[:, 0]
    areas = np.array([weights @ means[list(order)] for order in permutations(range(6))])
    share = (np.abs(areas) >= abs(weights @ means) - 1e-12).mean()
    assert prr_p_values(cells)[0, 0] == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("share, unsure_share", [(0.5, 0.5), (0.3, 1.0), (1.0, 0.3), (0.0, 0.0)])
def test_p_is_near_that_of_orders_that_move_documents_and_shuffle_their_texts(share, unsure_share):
    quality, uncertainty, ids = drawn([5] * 20, share, 3, unsure_share)
    cells = PRRCells(quality[:, None], uncertainty[:, None], clusters=ids)
    rng, risk, weights = np.random.default_rng(0), cells.risk[:, 0].reshape(20, 5), cells.weights[0]
    areas = np.array(
        [weights @ rng.permuted(risk[rng.permutation(20)], axis=1).ravel() for _ in range(20_000)]
    )
    want = (np.abs(areas) >= abs(weights @ cells.risk[:, 0])).mean()
    assert prr_p_values(cells)[0, 0] == pytest.approx(want, abs=0.02)
    assert prr_null_sd(cells)[0, 0] * cells.gap[0] == pytest.approx(areas.std(), rel=0.03)


def test_documents_of_one_text_change_nothing():
    quality, uncertainty, ids = drawn([1] * 60, 0, 0)
    found, want = prr(quality, uncertainty, document=ids), prr(quality, uncertainty)
    assert found[:-1] == pytest.approx(want[:-1], abs=1e-12) and found.p == want.p


def test_the_order_of_rows_and_the_names_of_documents_do_not_matter():
    quality, uncertainty, ids = drawn([1, 2, 3, 4, 10, 5, 5, 6], 0.5, 2)
    order = np.random.default_rng(0).permutation(len(ids))
    want = prr(quality, uncertainty, document=ids)
    found = prr(quality[order], uncertainty[order], document=[f"d{9 - ids[i]}" for i in order])
    assert (found.null_sd, found.p, found.value) == pytest.approx(
        (want.null_sd, want.p, want.value), abs=1e-9
    )


@pytest.mark.parametrize("sizes", [(5,) * 20, (1, 2, 3, 4, 6, 8, 12, 20, 30)])
def test_constant_quality_and_equal_uncertainties_keep_their_p(sizes):
    quality, uncertainty, ids = drawn(sizes, 0.5, 5)
    assert np.isnan(prr(np.ones(len(ids)), uncertainty, document=ids).p)
    assert prr(quality, np.ones(len(ids)), document=ids).p == prr(quality, np.ones(len(ids))).p == 1


def test_three_raters_of_forty_texts():
    "Golden values: 20,000 permutations of the documents gave .181 and p .0008."
    df = pd.read_csv(SHARED / "c18_rows_per_rater.csv")
    found = prr(df["human"], df["u"], document=df["id"])
    assert found.null_sd == pytest.approx(0.181, abs=0.003) and 0.0004 < found.p < 0.002
    by_rows = prr(df["human"], df["u"])
    assert by_rows.null_sd == pytest.approx(0.1114, abs=1e-4) and by_rows.p < 1e-6
    found = judged(df, "u", "human", document="id")
    assert "On these 120 texts of 40 documents" in found.quote and "of ±0.36 that" in found.quote
    withheld = judged(df, "u", "human")
    assert withheld.quote.startswith("nothing yet, because these 120 rows are 40 different texts")
    assert "--document" in withheld.quote and "40 different texts" in withheld.no_quote


def test_the_sentence_counts_the_texts_and_documents_that_it_rests_on():
    quality, uncertainty, ids = drawn([3] * 30, 0.5, 0)
    df = pd.DataFrame(dict(human=quality, u=uncertainty, doc=ids))
    df.loc[:8, "human"], df.loc[87:, "u"] = np.nan, np.nan
    assert "On these 78 texts of 26 documents" in judged(df, "u", "human", document="doc").quote
    alone = judged(df.assign(doc=np.arange(90)), "u", "human", document="doc").quote
    assert "On these 78 texts, judged by" in alone and "that random orders give" in alone


def test_q_is_by_documents_too():
    quality, uncertainty, ids = drawn([16] * 12, 0.5, 8)
    frames = pd.DataFrame(dict(a=quality, b=-quality)), pd.DataFrame(dict(u=uncertainty, v=-uncertainty))
    by_rows, by_documents = (prr_table(*frames, document=clusters) for clusters in (None, ids))
    assert (by_documents["p"] > by_rows["p"]).all() and (by_documents["q"] >= by_documents["p"]).all()


@pytest.mark.parametrize("sizes", [(5,) * 20, (1,) * 20 + (3,) * 10 + (10,) * 5 + (30,)])
def test_the_joint_p_moves_documents_of_any_size(sizes):
    rejected = []
    for seed in range(120):
        quality, uncertainty, ids = drawn(sizes, 0.6, seed)
        cells = PRRCells(np.c_[quality, quality**3], np.c_[uncertainty, -uncertainty], clusters=ids)
        rejected.append(joint_p(cells, draws=99)[0] <= 0.05)
    assert np.mean(rejected) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
    quality, _, ids = drawn(sizes, 0.6, 0)
    assert joint_p(PRRCells(quality[:, None], -quality[:, None], clusters=ids), draws=99)[0] == 0.01


def test_a_plan_against_chance_uses_the_null_of_documents():
    quality, uncertainty, ids = drawn([10] * 60, 0.6, 4)
    scores = pd.DataFrame(dict(u=uncertainty - 0.6 * quality))
    plan = power_table(quality, scores, ids).iloc[0]
    cells = PRRCells(quality[:, None], scores.to_numpy(), clusters=ids)
    assert plan["null_sd"] == pytest.approx(prr_null_sd(cells)[0, 0] * np.sqrt(60))
    assert plan["texts"] > power_table(quality, scores).iloc[0]["texts"]


def test_a_normal_part_inside_documents_smooths_the_permutations():
    weights, risk = np.array([[0.0, 1, 2, 5]]), np.array([3.0, 0, 0, 1])
    exact = permutation_p(weights, risk)
    assert permutation_p(weights, risk, inside=np.array([1e-9])) == pytest.approx(exact)
    wide = permutation_p(weights, risk, inside=np.array([1e6]))
    assert wide == pytest.approx([1.0], abs=1e-4)


def test_documents_of_one_mean_differ_inside_only():
    "Quality differs within documents and not between them: the part inside decides p."
    rng, ids = np.random.default_rng(0), np.repeat(np.arange(12), 2)
    found = prr(np.tile([0.0, 1.0], 12), rng.normal(size=24), document=ids)
    assert 0 < found.p <= 1 and found.null_sd > 0


# -- resampling
@given(scores, st.sampled_from(AREAS), st.sampled_from(["average", "input", "best", "worst"]))
def test_delete_one_is_exact(pairs, area_and_rejection, ties):
    quality, uncertainty = split(pairs)
    area, max_rejection = area_and_rejection
    if int(max_rejection * (len(quality) - 1)) < 2:
        return
    group = PRRCells(quality[:, None], uncertainty[:, None], area, ties, max_rejection)
    for i, got in enumerate(prr_replicates(group)[:, 0, 0]):
        want = prr(np.delete(quality, i), np.delete(uncertainty, i), area, ties, max_rejection).value
        assert got == pytest.approx(want, abs=1e-10, nan_ok=True)


@pytest.mark.parametrize("ties", ["average", "input", "best", "worst"])
@pytest.mark.parametrize("area, max_rejection", AREAS)
@pytest.mark.parametrize("most", [1, 3, 40])
def test_standard_errors_of_clusters_do_not_depend_on_how_they_are_summed(
    monkeypatch, area, max_rejection, ties, most
):
    "A work array of one number: nothing is counted unless few clusters are as large."
    rng = np.random.default_rng(most)
    ids = cluster_ids(np.repeat(np.arange(200), rng.integers(1, most + 1, 200))[:200], 200)
    quality, uncertainty = rng.normal(size=(200, 2)), rng.integers(0, 60, (200, 2))
    cells = PRRCells(quality, uncertainty, area, ties, max_rejection, clusters=ids)
    counted = prr_standard_error(cells)
    assert deletion_counts(cells) is not None
    monkeypatch.setattr("uetrust.evaluation.cells.WORK_ARRAY_SIZE", 1)
    monkeypatch.setattr("uetrust.evaluation.resample.WORK_ARRAY_SIZE", 1)
    assert deletion_counts(cells) is None
    np.testing.assert_allclose(prr_standard_error(cells), counted, rtol=1e-11)


# -- chance
@pytest.mark.parametrize("area", ["mean", "sum"])
@pytest.mark.parametrize("uncertainty", [np.arange(6.0), np.array([0.0, 0, 1, 1, 1, 2])])
def test_null_moments_over_all_orders(area, uncertainty):
    quality = np.array([0.0, 0, 1, 3, 3, 4])
    every = np.array(
        [
            PRRCells(quality[list(order)][:, None], uncertainty[:, None], area).value[0, 0]
            for order in itertools.permutations(range(6))
        ]
    )
    group = PRRCells(quality[:, None], uncertainty[:, None], area)
    sd = (
        np.sqrt(((group.weights - group.weights.mean()) ** 2).sum() * (group.risk**2).sum() / 5)
        / group.gap[0]
    )
    assert (every.mean(), every.std()) == pytest.approx((0, sd), abs=1e-12)
    if len(set(uncertainty)) == 6:
        assert prr_null_sd(group)[0] == pytest.approx(sd, abs=1e-12)


def test_recorded_null_sd(oracle):
    "Simulated qualities of the same law: the recorded null SD is one draw, so 15 % off at most."
    rng = np.random.default_rng(0)
    for row in oracle("evaluation.json")["prr_null"]["monte_carlo_error_alpha1000"]:
        if row["dist"] not in ("uniform", "normal"):
            continue
        quality = getattr(rng, {"uniform": "random", "normal": "standard_normal"}[row["dist"]])(row["N"])
        for area in ("mean", "sum"):
            assert prr_null_sd(PRRCells(quality[:, None], quality[:, None], area))[0] == pytest.approx(
                row[f"{area}_null_sd"], rel=0.15
            )
            assert prr_null_sd(PRRCells(quality[:, None], quality[:, None], area))[0] / np.sqrt(
                1000
            ) == pytest.approx(row[f"{area}_mc_sd_at_prr0"], rel=0.15)


def test_permutation_p_of_few_orders_is_exact():
    quality, uncertainty = np.r_[np.zeros(2), np.ones(10)], np.r_[11.0, 6.5, np.arange(10)]
    weights = rank_weights(12)

    def distance(i, j):
        return abs(weights[i] + weights[j] - 2 * weights.mean())

    every = [distance(i, j) for i, j in itertools.permutations(range(12), 2)]
    observed = distance(*np.argsort(np.argsort(uncertainty))[:2])
    assert prr_p_values(PRRCells(quality[:, None], uncertainty[:, None]))[0, 0] == pytest.approx(
        np.mean(np.array(every) >= observed - 1e-12), abs=1e-12
    )


def test_drawn_permutations_approach_the_exact_p():
    rng = np.random.default_rng(0)
    weights, risk = rng.random((1, 22)), np.r_[np.zeros(19), 1, 2, 4.0]
    exact = permutation_p(weights, risk)[0]
    drawn = permutation_p(weights, risk, draws=4000)[0]
    assert abs(drawn - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000) and drawn != exact


def test_no_draw_depends_on_global_state():
    weights, risk = np.random.default_rng(0).random((2, 30)), np.r_[np.zeros(27), 1.0, 2, 3]
    np.random.seed(1)
    first = permutation_p(weights, risk)
    np.random.seed(2)
    assert (first == permutation_p(weights, risk)).all()
    state = np.random.get_state()[1].copy()
    released_prr([1, 2, 3], [3, 2, 1])
    assert (state == np.random.get_state()[1]).all()


def test_deletions_follow_the_clusters():
    group = PRRCells(np.arange(4.0)[:, None], np.arange(4.0)[:, None], clusters=np.array([0, 0, 1, 2]))
    assert deletion_counts(group).tolist() == [[0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    assert deletion_counts(PRRCells(np.arange(4.0)[:, None], np.arange(4.0)[:, None])) is None
    assert prr_standard_error(PRRCells(np.arange(3.0)[:, None], np.arange(3.0)[:, None])).shape == (1, 1)


@pytest.mark.parametrize("documents", [False, True])
def test_the_joint_p_of_many_texts_is_that_of_random_orders(documents, monkeypatch):
    "From `MANY_ITEMS` on orders are drawn from their limit: the same mean, spread and correlation of areas."
    quality, uncertainty, ids = drawn((2,) * 150, 0.3, 5)
    both = np.stack([quality, quality + np.sin(np.arange(300))], 1), np.stack([uncertainty, -quality], 1)
    cells = PRRCells(*both, clusters=ids if documents else None)
    found = []
    for many in (10**9, 0):
        monkeypatch.setattr(cell_maths, "MANY_ITEMS", many)
        draw = cell_maths._random_areas(cells, np.random.default_rng(0))
        found.append(np.array([draw().ravel() for _ in range(4000)]))
    exact, limit = found
    spread = exact.std(0)
    assert abs(exact.mean(0) - limit.mean(0)).max() < 4 * spread.max() * np.sqrt(2 / 4000)
    assert np.allclose(limit.std(0) / spread, 1, atol=0.05)
    assert np.allclose(np.corrcoef(exact.T), np.corrcoef(limit.T), atol=0.06)
