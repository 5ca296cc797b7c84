"""The bench compares equal things: the published procedure restated, its values, its arithmetic. Nothing here depends on a clock."""

import socket
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uetrust.bench import evaluation as b
from uetrust.evaluation.he2024 import released_prr
from uetrust.evaluation.prr import prr, prr_table

pairs = st.lists(st.tuples(st.integers(-8, 8), st.integers(-5, 5)), min_size=3, max_size=25).filter(
    lambda p: len({q for q, _ in p}) > 1
)


@settings(max_examples=20)
@given(pairs)
def test_peer_equals_released_with_the_same_shuffles(pairs):
    q, u = np.array(pairs, float).T
    assert tuple(b.peer_prr(q, u)) == pytest.approx(tuple(released_prr(q, u)), abs=1e-12)


def test_peer_equals_released_on_the_data_of_the_bench():
    s, u = b.simulated(150)
    for m, k in (("method 1", "metric 1"), ("method 14", "metric 31")):
        assert b.peer_prr(s[k], u[m]).value == pytest.approx(released_prr(s[k], u[m]).value, abs=1e-12)


def test_peer_differs_from_ours_by_its_dice_only():
    "38 lengths have 38 independent sets of shuffles: the largest distance is below 6 SDs, and the mean square near 1."
    z = np.array(
        [b.side_by_side(*b.simulated(n, 1, 1, seed=n), draws=200).apart.iloc[0] for n in range(12, 50)]
    )
    assert np.abs(z).max() < 6
    assert 0.5 < (z**2).mean() < 1.7


def test_shuffles_of_the_peer_are_counted():
    with mock.patch.object(b, "peer_area", return_value=0.5) as area:
        with pytest.raises(ZeroDivisionError):
            b.peer_prr([1, 2, 3], [3, 2, 1], draws=17)
    assert area.call_count == 17 + 2


def test_we_sort_once_per_method_and_once_per_metric():
    "Another, shorter argsort corrects the p-values of the table. Tied methods need their best and worst order per metric as well."
    s, u = b.simulated(60, 5, 7)
    with (
        mock.patch("numpy.argsort", wraps=np.argsort) as argsort,
        mock.patch("numpy.lexsort", wraps=np.lexsort) as lexsort,
    ):
        prr_table(s, u)
    long = sum(len(c.args[0]) == 60 for c in argsort.call_args_list)
    assert long == 5 + 7 and lexsort.call_count <= 2 * 7


def test_data_have_the_published_shape():
    s, u = b.simulated(3000)
    judge = [c for c in s if set(s[c]) <= set(range(1, 11))]
    assert s.shape == (3000, 31) and u.shape == (3000, 14) and len(judge) == 20
    assert set(u["method 14"]) <= set(range(1, 21)) and all(u[c].is_unique for c in u.columns[:-1])
    assert 0 < prr(s["metric 1"], u["method 1"]).value < 0.9


def test_extrapolations_multiply_one_cell_and_say_so():
    got = b.rows(50, 10, dict(cell=1, table=2, cell_boot=3, table_boot=4, peer=5.0, apart=0))
    assert [(r["ours"], r["peer"]) for r in got] == [(1, 5), (4, 55), (2, 5 * 434), (6, 5 * 434 * 11)]
    assert [r["basis"] for r in got] == [
        "measured",
        "extrapolated: 11 x one cell",
        "extrapolated: 434 x one cell",
        "extrapolated: 434 x 11 x one cell",
    ]


@pytest.fixture(scope="module")
def tiny():
    said = []
    with mock.patch.object(b, "GROWTH", (150, 300, 600)):
        df = b.bench(sizes=(150,), draws=20, full=False, log=said.append)
    return df, said


def test_a_tiny_bench_measures_everything(tiny):
    df, said = tiny
    a, g = df[df.part == "against"], df[df.part == "growth"]
    assert a.n.tolist() == [150] * 4 and g.n.tolist() == [150, 300]
    assert (df.ours > 0).all() and (a.peer > 0).all() and (g.gb > 0.03).all()
    assert a.ratio.tolist() == (a.peer / a.ours).tolist() and a.apart.abs().max() < 6
    assert len(said) == 4 and said[-1].startswith("done in")


def test_what_is_printed_has_no_host_and_no_path(tiny, capsys):
    b.show(tiny[0])
    out = capsys.readouterr().out
    assert (
        out.count("extrapolated") == 3
        and sum(l.startswith(("pass ", "FAIL ")) for l in out.splitlines()) == 5
    )
    assert socket.gethostname() not in out and str(Path.cwd()) not in out and str(Path.home()) not in out


def run(table=0.5, peer=5.0, grow=(0.01, 0.1), gb=3.9, apart=5.9):
    a = pd.DataFrame(
        b.rows(
            11_334, 1000, dict(cell=0.01, table=table, cell_boot=0.1, table_boot=1, peer=peer, apart=apart)
        )
    )
    g = pd.DataFrame(dict(part="growth", what="14 x 31 cells", n=[1000, 10_000], ours=grow, gb=[0.2, gb]))
    df = pd.concat([a, g])
    return df.assign(ratio=df.peer / df.ours)


@pytest.mark.parametrize(
    "change,missed",
    [
        ({}, []),
        (dict(grow=(0.01, 0.133)), []),
        (dict(table=1.0), [0]),
        (dict(peer=1.1), [1]),
        (dict(grow=(0.01, 0.134)), [2]),
        (dict(gb=4.0), [3]),
        (dict(apart=-6.1), [4]),
    ],
)
def test_a_missed_target_is_seen(change, missed):
    t = b.targets(run(**change))
    assert np.flatnonzero(~t.met).tolist() == missed


def test_n_log_n_meets_the_target_exactly():
    n = np.array(b.GROWTH, float)
    assert b.exponent(n, n * np.log(n)) == pytest.approx(1.097, abs=0.01)
    assert b.exponent(n, 3 * n**1.5) == pytest.approx(1.5, abs=1e-12)


def test_a_fresh_process_has_one_thread_and_passes_errors_on():
    with mock.patch.object(b.subprocess, "run", return_value=mock.Mock(stdout='{"a": 1}')) as r:
        assert b.fresh("grown", 5) == {"a": 1}
    assert r.call_args.kwargs["env"]["OMP_NUM_THREADS"] == "1" and "b.grown(*(5,))" in r.call_args.args[0][-1]
    with pytest.raises(b.subprocess.CalledProcessError):
        b.fresh("no_such_function")
