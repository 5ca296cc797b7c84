"""Several workers fill one bank: jobs of an array, and tasks of a Ray cluster of which one is killed."""

import errno
import os
import platform
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest

from tests.helpers.profiles import INI, files
from tests.helpers.readings import encoder, framed
from tests.helpers.writers import SAMPLES
from uetrust.cli.cli import main
from uetrust.core.store import Store
from uetrust.scoring import engine
from uetrust.scoring.engine import _slurm_lines, run_with_ray
from uetrust.scoring.pipeline import clear_bank, run_pipeline

BANK = "toy--writer"
FILL = ["fill", BANK, "--profile", "small"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A folder that looks like a checkout; the bank has six shards of two sources"
    d = tmp_path_factory.mktemp("project")
    (d / "nbs").mkdir()
    ini = INI.replace("model = models/bart\nsamples = 3", "model = models/bart\nshard = 2\nsamples = 3", 1)
    many = ini.index("passes = "), ini.index("p_true = ")
    (d / "settings.ini").write_text(ini[: many[0]] + "passes = conditional hidden\n" + ini[many[1] :])
    for name, m in (("bart", framed("bart")), ("encoder", encoder())):
        m.model.save_pretrained(d / "models" / name)
        m.tokenizer.save_pretrained(d / "models" / name)
    SAMPLES[:12].to_json(d / "toy.jsonl", orient="records", lines=True)
    SAMPLES[12:].assign(reference="w3 w4").to_json(d / "train.jsonl", orient="records", lines=True)
    return d


@pytest.fixture(scope="module")
def undisturbed(project):
    "All files of a run by one process"
    run = f"from uetrust.cli.cli import main; raise SystemExit(main({FILL}))"
    subprocess.run([sys.executable, "-c", run], cwd=project, check=True)
    return files(project / "runs" / "small" / "banks" / BANK)


@pytest.fixture
def emptied(here):
    folder = here / "runs" / "small" / "banks" / BANK
    clear_bank(folder)
    return folder


def test_jobs_of_an_array_leave_the_same_bytes_as_one_process(undisturbed, emptied, capsys):
    assert main([*FILL, "--stages", "texts", "--worker", "1/2"]) == 0
    assert main([*FILL, "--stages", "passes", "--worker", "1/2"]) == 2
    assert (
        "stage passes begins when all shards before it are there; missing are texts"
        in capsys.readouterr().err
    )
    for stage in ("texts", "passes", "comparisons"):
        for worker in ("0/2", "1/2"):
            assert main([*FILL, "--stages", stage, "--worker", worker]) == 0
    assert files(emptied) == undisturbed


@pytest.mark.parametrize("worker", ["2/2", "1", "a/b", "-1/2"])
def test_a_worker_that_cannot_be_is_refused(here, worker, capsys):
    assert main([*FILL, f"--worker={worker}"]) == 2
    assert "--worker is i/n with i from 0 to n - 1" in capsys.readouterr().err


def test_a_worker_never_starts_anew(emptied):
    with pytest.raises(ValueError, match="one worker of several cannot start anew"):
        run_pipeline("small", BANK, resume=False, worker=(0, 2))


def test_arrays_wait_for_the_stage_before():
    lines = _slurm_lines("paper", "xsum--gpt", 4)
    assert [line.partition("=")[0] for line in lines] == ["texts", "passes", "comparisons"]
    assert all("--array=0-3" in line for line in lines)
    assert ["afterok" in line for line in lines] == [False, True, True]


def killed_once(folder, profile, name, stage, worker, where):
    "A slice whose process is killed the first time, when it has written a shard"
    mark = Path(os.environ["KILLED"])
    if stage == "passes" and not mark.exists():
        mark.touch()
        fill = Store.fill

        def dies(store, sizes, left, make, *more, **kw):
            def write(shard):
                make(shard)
                os.kill(os.getpid(), signal.SIGKILL)

            return fill(store, sizes, left, write, *more, **kw)

        Store.fill = dies
    return engine._run_slice(folder, profile, name, stage, worker, where)


def test_a_killed_worker_of_ray_is_replaced_and_the_bytes_are_the_same(
    undisturbed,
    emptied,
    monkeypatch,
    tmp_path,
):
    cloudpickle = pytest.importorskip("ray", reason="the extra ray is not installed").cloudpickle
    mark = tmp_path / "killed"
    monkeypatch.setenv("KILLED", str(mark))
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(engine, "_slice", killed_once)
    folder = run_with_ray("small", BANK, workers=2)
    assert mark.exists(), "one worker was killed"
    assert files(folder) == undisturbed


def nodes(notes, stage):
    return {path.name.split()[-1] for path in notes.glob(f"{stage} *")}


def wait_until(true):
    end = time.monotonic() + 600  # Longer than a busy machine needs to start a node
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def noted(folder, profile, name, stage, worker, where):
    "A slice that notes its node, and in the stage of passes waits until a second node works too"
    import ray

    notes = Path(folder) / "notes"
    engine._run_slice(folder, profile, name, stage, worker, where)
    (notes / f"{stage} {worker[0]} {ray.get_runtime_context().get_node_id()}").touch()
    wait_until(lambda: stage != "passes" or len(nodes(notes, stage)) == 2)
    return worker


def test_a_node_that_joins_late_takes_its_part_and_the_bytes_are_the_same(undisturbed, emptied, monkeypatch):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    engine._ray().cloudpickle.register_pickle_by_value(sys.modules[__name__])
    from ray.cluster_utils import Cluster

    notes = Path.cwd() / "notes"
    notes.mkdir()
    cluster = Cluster(initialize_head=True, head_node_args=dict(num_cpus=1, include_dashboard=False))
    first = cluster.head_node.node_id
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    monkeypatch.setattr(engine, "_slice", noted)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(main, [*FILL, "--engine", "ray"])
        try:
            while not (nodes(notes, "passes") or run.done()):
                time.sleep(0.1)
            late = cluster.add_node(num_cpus=1)
            assert run.result() == 0
        finally:
            cluster.shutdown()
    assert nodes(notes, "texts") == {first} and nodes(notes, "passes") == {first, late.node_id}
    assert files(emptied) == undisturbed


def test_a_cluster_of_its_own_is_started_beside_one_that_runs_here(undisturbed, emptied, monkeypatch):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    engine._ray()
    from ray.cluster_utils import Cluster

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    cluster = Cluster(initialize_head=True, head_node_args=dict(num_cpus=0, include_dashboard=False))
    try:
        assert main([*FILL, "--engine", "ray", "--stages", "texts"]) == 0
    finally:
        cluster.shutdown()
    texts = {name: content for name, content in undisturbed.items() if name.startswith("texts/")}
    assert texts and texts.items() <= files(emptied).items()


FULL = OSError(errno.ENOSPC, "No space left on device")


def full_disk(folder, profile, name, stage, worker, where):
    "A slice whose disk is full, of the stage of passes"
    if stage != "passes" or worker[0] != 1:
        return engine._run_slice(folder, profile, name, stage, worker, where)

    def write_table(*args, **kw):
        raise FULL

    with mock.patch("pyarrow.parquet.write_table", write_table):
        return engine._run_slice(folder, profile, name, stage, worker, where)


def test_a_full_disk_is_told_with_its_worker_and_nothing_else_is_lost(
    undisturbed, emptied, monkeypatch, capsys
):
    cloudpickle = pytest.importorskip("ray", reason="the extra ray is not installed").cloudpickle
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(engine, "_slice", full_disk)
    assert main([*FILL, "--engine", "ray", "--workers", "1"]) != 0
    said = capsys.readouterr().err
    assert f"worker 2 of 4, stage passes, machine {platform.node()}: {emptied}" in said
    assert "the disk is full: free some space and run the same command again" in said
    assert "Traceback" not in said
    made = {path.name for path in (emptied / "conditional").glob("*.parquet")}
    assert made == {f"{i:05d}.parquet" for i in range(6) if i % 4 != 1}, "the other slices are finished"
    monkeypatch.undo()
    monkeypatch.chdir(emptied.parents[3])
    run_pipeline("small", BANK, progress=False)
    assert files(emptied) == undisturbed


def test_a_full_disk_of_a_job_of_an_array_is_told_with_the_job(here, emptied, monkeypatch, capsys):
    def write_table(*args, **kw):
        raise FULL

    monkeypatch.setattr("pyarrow.parquet.write_table", write_table)
    assert main([*FILL, "--stages", "texts", "--worker", "1/2"]) != 0
    assert f"worker 2 of 2, stage texts, machine {platform.node()}: {emptied}" in capsys.readouterr().err


def test_the_engine_and_a_share_exclude_each_other(here, capsys):
    assert main([*FILL, "--engine", "ray", "--worker", "0/2"]) == 2
    assert "leave one of the two out" in capsys.readouterr().err


def test_without_ray_the_remedy_is_named(here, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main([*FILL, "--engine", "ray"]) == 2
    assert "pip install 'uetrust[ray]'" in capsys.readouterr().err
