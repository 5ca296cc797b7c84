"""Benchmark of the evaluation: the published procedure, its values and counts, independent of any clock."""

import socket
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uetrust.dev.bench import evaluation as bench
from uetrust.evaluation.definitions import released_prr
from uetrust.evaluation.prr import prr, prr_table

pairs = st.lists(st.tuples(st.integers(-8, 8), st.integers(-5, 5)), min_size=3, max_size=25).filter(
    lambda pairs: len({quality for quality, _ in pairs}) > 1
)


@settings(max_examples=20)
@given(pairs)
def test_peer_equals_released_with_the_same_shuffles(pairs):
    quality, uncertainty = np.array(pairs, float).T
    assert tuple(bench.peer_prr(quality, uncertainty)) == pytest.approx(
        tuple(released_prr(quality, uncertainty)), abs=1e-12
    )


def test_peer_equals_released_on_the_data_of_the_bench():
    quality, uncertainty = bench._simulated_scores(150)
    for method, metric in (("method 1", "metric 1"), ("method 14", "metric 31")):
        assert bench.peer_prr(quality[metric], uncertainty[method]).value == pytest.approx(
            released_prr(quality[metric], uncertainty[method]).value, abs=1e-12
        )


def test_peer_differs_from_ours_by_its_shuffles_only():
    "38 independent sets of shuffles: the largest distance is below 6 SDs, and the mean square near 1."
    z = np.array(
        [
            bench._prr_as_published(*bench._simulated_scores(n, 1, 1, seed=n), draws=200).apart.iloc[0]
            for n in range(12, 50)
        ]
    )
    assert np.abs(z).max() < 6
    assert 0.5 < (z**2).mean() < 1.7


def test_shuffles_of_the_peer_are_counted():
    with mock.patch.object(bench, "_peer_area", return_value=0.5) as area:
        with pytest.raises(ZeroDivisionError):
            bench.peer_prr([1, 2, 3], [3, 2, 1], draws=17)
    assert area.call_count == 17 + 2


def test_we_sort_once_per_method_and_once_per_metric():
    "Shorter sorts adjust p-values; tied methods need their best and worst order per metric as well."
    quality, uncertainty = bench._simulated_scores(60, 5, 7)
    with (
        mock.patch("numpy.argsort", wraps=np.argsort) as argsort,
        mock.patch("numpy.lexsort", wraps=np.lexsort) as lexsort,
    ):
        prr_table(quality, uncertainty)
    long = sum(len(call.args[0]) == 60 for call in argsort.call_args_list)
    assert long == 5 + 7 and lexsort.call_count <= 2 * 7


def test_data_have_the_published_shape():
    quality, uncertainty = bench._simulated_scores(3000)
    judge = [column for column in quality if set(quality[column]) <= set(range(1, 11))]
    assert quality.shape == (3000, 31) and uncertainty.shape == (3000, 14) and len(judge) == 20
    assert set(uncertainty["method 14"]) <= set(range(1, 21)) and all(
        uncertainty[column].is_unique for column in uncertainty.columns[:-1]
    )
    assert 0 < prr(quality["metric 1"], uncertainty["method 1"]).value < 0.9


def test_extrapolations_multiply_one_cell_and_say_so():
    got = bench._comparison_rows(50, 10, dict(cell=1, table=2, cell_boot=3, table_boot=4, peer=5.0, apart=0))
    assert [(row["ours"], row["peer"]) for row in got] == [(1, 5), (4, 55), (2, 5 * 434), (6, 5 * 434 * 11)]
    assert [row["basis"] for row in got] == [
        "measured",
        "extrapolated: 11 x one cell",
        "extrapolated: 434 x one cell",
        "extrapolated: 434 x 11 x one cell",
    ]


@pytest.fixture(scope="module")
def tiny():
    messages = []
    with mock.patch.object(bench, "GROWTH", (150, 300, 600)):
        df = bench.bench_evaluation(sizes=(150,), draws=20, full=False, log=messages.append)
    return df, messages


def test_a_tiny_bench_measures_everything(tiny):
    df, messages = tiny
    against, growth = df[df.part == "against"], df[df.part == "growth"]
    assert against.n.tolist() == [150] * 4 and growth.n.tolist() == [150, 300]
    assert (df.ours > 0).all() and (against.peer > 0).all() and (growth.gb > 0.03).all()
    assert against.ratio.tolist() == (against.peer / against.ours).tolist() and against.apart.abs().max() < 6
    assert len(messages) == 4 and messages[-1].startswith("done in")


def test_what_is_printed_has_no_host_and_no_path(tiny, capsys):
    bench.print_evaluation_bench(tiny[0])
    out = capsys.readouterr().out
    assert (
        out.count("extrapolated") == 3
        and sum(line.startswith(("pass ", "FAIL ")) for line in out.splitlines()) == 5
    )
    assert socket.gethostname() not in out and str(Path.cwd()) not in out and str(Path.home()) not in out


def run(table=0.5, peer=5.0, grow=(0.01, 0.1), gb=3.9, apart=5.9):
    times = dict(cell=0.01, table=table, cell_boot=0.1, table_boot=1, peer=peer, apart=apart)
    against = pd.DataFrame(bench._comparison_rows(11_334, 1000, times))
    sizes = [1000, 10_000]
    growth = pd.DataFrame(dict(part="growth", what="14 x 31 cells", n=sizes, ours=grow, gb=[0.2, gb]))
    df = pd.concat([against, growth])
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
    found = bench._evaluation_targets(run(**change))
    assert np.flatnonzero(~found.met).tolist() == missed


def test_n_log_n_meets_the_target_exactly():
    n = np.array(bench.GROWTH, float)
    assert bench._growth_exponent(n, n * np.log(n)) == pytest.approx(1.097, abs=0.01)
    assert bench._growth_exponent(n, 3 * n**1.5) == pytest.approx(1.5, abs=1e-12)


def test_a_fresh_process_has_one_thread_and_passes_errors_on():
    with mock.patch.object(bench.subprocess, "run", return_value=mock.Mock(stdout='{"a": 1}')) as run_process:
        assert bench._in_new_process("grown", 5) == {"a": 1}
    assert (
        run_process.call_args.kwargs["env"]["OMP_NUM_THREADS"] == "1"
        and "b.grown(*(5,))" in run_process.call_args.args[0][-1]
    )
    with pytest.raises(bench.subprocess.CalledProcessError):
        bench._in_new_process("no_such_function")
