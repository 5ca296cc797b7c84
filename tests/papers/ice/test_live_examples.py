"""Examples for an in-context judge: the original code, the published files, and a full coverage."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.ice import FOLD_0
from uetrust.data.loaders import summeval
from uetrust.papers.ice.live import (
    ICE_DIMENSIONS,
    _article_folds,
    _assigned_quarters,
    _quarter_cells,
    _quarter_coverage,
    _select_examples,
    quarters,
)


def close_to_file(df):  # As the original code reads its pool
    return pd.DataFrame(
        [
            dict(item=r["example_idx"], doc=r["id"], **{d: r[f"expert_{d}_mean"] for d in ICE_DIMENSIONS})
            for r in df
        ]
    )


@pytest.fixture(scope="module")
def trace(oracle):
    return close_to_file(oracle("seed_systems/ice_pool.json")), [
        r for r in oracle("seed_systems/ice_selection.json")["trace"]["runs"] if r["mode"] == "single"
    ]


@pytest.fixture(scope="module")
def real():
    "SummEval's summaries with the scores of the paper: the mean of three people on [0,1], to two digits"
    df = summeval()
    return df[["item", "doc"]].assign(**{d: ((df[d] - 1) / 4).round(2) for d in ICE_DIMENSIONS})


def test_choices_are_those_of_the_original_code(trace):
    pool, runs = trace
    assert len(runs) == 6
    for r in runs:
        s = _select_examples(
            pool, dict(uniform="uniform", stratified="as_coded")[r["sampling"]], r["fold_group_seed"]
        )
        assert [list(g["doc"]) for _, g in s[s["dim"] == ICE_DIMENSIONS[0]].groupby("fold")] == r["folds"]
        for dim, want in r["picks"].items():
            assert [list(g["item"]) for _, g in s[s["dim"] == dim].groupby("fold")] == want, (
                r["fold_group_seed"],
                r["sampling"],
                dim,
            )


def test_cells_are_given_to_articles_as_in_the_original_code(trace):
    pool, runs = trace
    gaps = set()
    for r in (r for r in runs if r["stratified_detail"]):
        for dim, by_fold in r["stratified_detail"].items():
            for f, want in enumerate(by_fold):
                cells = _quarter_cells(pool, r["folds"][f], dim)
                (at, n), (_, full) = _assigned_quarters(cells, cover=False), _assigned_quarters(cells)
                assert (
                    [[len(c) for c in row] for row in cells] == want["counts"]
                    and at.tolist() == want["assigned_bucket_per_text"]
                    and n.tolist() == want["assigned_counts"]
                )
                assert (full > 0).all() == want["full_assignment_exists"] and (full > 0).sum() >= (
                    n > 0
                ).sum()
                if want["empty_cells_chosen"] and want["full_assignment_exists"]:
                    gaps.add((r["fold_group_seed"], dim, f))
    assert gaps == {(1, "relevance", 1), (7, "relevance", 0)}


@pytest.mark.parametrize("how", FOLD_0)
def test_the_published_examples_are_chosen_again(real, how):
    s = _select_examples(real, how)
    assert len(s) == 25 * 4 * 4
    for dim, want in FOLD_0[how].items():
        got = s[(s["dim"] == dim) & (s["fold"] == 0)]
        assert dict(zip(got["item"], got["score"])) == want, dim


def test_what_a_full_cover_changes_on_real_data(real):
    chosen = _select_examples(real, "stratified")
    there = {
        k: _quarter_cells(real, list(g["doc"]), k[0]) for k, g in chosen.groupby(["dim", "fold"], sort=False)
    }
    missed = (
        pd.Series(
            {
                k: (_assigned_quarters(c)[1] > 0).all()
                and not (_assigned_quarters(c, cover=False)[1] > 0).all()
                for k, c in there.items()
            }
        )
        .groupby(level=0)
        .sum()
    )
    assert missed.to_dict() == dict(coherence=0, consistency=0, fluency=1, relevance=9)
    coded, full = (_quarter_coverage(real, _select_examples(real, how)) for how in ("as_coded", "stratified"))
    assert (full["used"] == full["possible"]).all() and full["used"].sum() > coded["used"].sum()
    sizes = {d: np.bincount(quarters(real[d]), minlength=4).tolist() for d in ICE_DIMENSIONS}
    assert sizes == dict(
        coherence=[241, 413, 441, 505],
        consistency=[98, 56, 15, 1431],
        relevance=[69, 269, 674, 588],
        fluency=[38, 75, 84, 1403],
    )


def test_the_uniform_examples_of_consistency_all_say_one(real):
    s = _select_examples(real, "uniform")
    assert s[(s["dim"] == "consistency") & (s["fold"] == 0)]["score"].eq(1).all()


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=4, max_size=4), st.integers(0, 5))
def test_a_full_cover_uses_as_many_quarters_as_any_choice(articles, seed):
    from itertools import product

    rows = [(f"d{i}", s) for i, a in enumerate(articles) for s in a]
    pool = pd.DataFrame(dict(item=range(len(rows)), doc=[d for d, _ in rows], fluency=[s for _, s in rows]))
    most = max(len(set(quarters(list(c)))) for c in product(*articles))
    s = _select_examples(pool, "stratified", seed, ["fluency"])
    assert len(set(quarters(s["score"]))) == most == _quarter_coverage(pool, s)["possible"][0] and sorted(
        s["doc"]
    ) == ["d0", "d1", "d2", "d3"]


def test_folds_hold_every_article_once():
    import random

    f = _article_folds([f"d{i // 3}" for i in range(36)], random.Random(1))
    assert [len(x) for x in f] == [4, 4, 4] and len({d for x in f for d in x}) == 12


@pytest.mark.parametrize(
    "kw,says",
    [
        (dict(how="best"), "how is one of"),
        (dict(dims=["beauty"]), r"scores in \[0,1\] for beauty"),
        (dict(size=2), "four quarters"),
    ],
)
def test_an_impossible_choice_is_an_error(real, kw, says):
    with pytest.raises(ValueError, match=says):
        _select_examples(real, **kw)
