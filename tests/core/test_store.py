"""Folders of shards: one process at a time, and what killed runs leave behind."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import FrozenInstanceError

import pyarrow as pa
import pytest

from uetrust.core.settings import LOCK, SCRAP
from uetrust.core.store import (
    RECORDED_LIBRARIES,
    BadShard,
    Store,
    _content_provenance,
    _provenance_differences,
    canonical_json,
    library_versions,
    lock_folder,
    save_shard,
    share_folder,
    value_digest,
)


def test_a_folder_that_nobody_can_write_to_can_be_read(tmp_path, monkeypatch):
    (tmp_path / "texts").mkdir()
    monkeypatch.setattr(os, "access", lambda *args: False)
    with lock_folder(tmp_path):
        assert not (tmp_path / LOCK).exists()


def test_workers_share_a_folder_that_is_not_there_yet(tmp_path):
    folder = tmp_path / "runs" / "new" / "bank"
    with share_folder(folder), share_folder(folder):
        with pytest.raises(BlockingIOError, match="bank is being filled"):
            with lock_folder(folder):
                pass


def filled(folder, *worker):
    made = []
    sizes = {f"{i}.parquet": 2 for i in range(5)}
    Store(folder, "bank").fill(sizes, list(sizes)[1:], made.append, "toy", *worker, progress=False)
    return made


def test_one_worker_makes_all_that_is_left_and_two_share_it(tmp_path):
    assert filled(tmp_path) == ["1.parquet", "2.parquet", "3.parquet", "4.parquet"]
    assert filled(tmp_path, (0, 2)) == ["2.parquet", "4.parquet"]
    assert filled(tmp_path, (1, 2)) == ["1.parquet", "3.parquet"]


def test_a_folder_that_is_cleared_holds_no_shard_and_keeps_what_is_not_its_own(tmp_path):
    store = Store(tmp_path, "bank")
    names = "00000.parquet", "00001.parquet", store.json.name, "notes.txt"
    for name in (*names, "mine.parquet"):
        (tmp_path / name).write_text("x")
    with pytest.raises(ValueError, match="did not write.* mine.parquet"):
        store.clear()
    assert all((tmp_path / name).exists() for name in names)
    (tmp_path / "mine.parquet").unlink()
    store.clear()
    store.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_equal_values_have_one_text_and_one_fingerprint():
    assert canonical_json(dict(b=[1, None], a="é")) == '{"a":"é","b":[1,null]}'
    assert value_digest(dict(a=1, b=2)) == value_digest(dict(b=2, a=1)) != value_digest(dict(a=1, b=3))
    assert len(value_digest("")) == 64
    with pytest.raises(ValueError):
        canonical_json(float("nan"))


def test_every_recorded_library_that_is_installed_has_its_version():
    from importlib.metadata import distributions

    installed = {found.metadata["Name"]: found.version for found in distributions()}
    found = library_versions()
    assert found == {name: installed[name] for name in RECORDED_LIBRARIES if name in installed}
    assert {"uetrust", "numpy", "torch", "transformers"} <= set(found)


def test_differences_are_named_by_the_path_to_them():
    found = dict(settings=dict(seed=1, top=dict(k=5)), made_with=dict(torch="1"), n=3)
    requested = dict(settings=dict(seed=2, top=dict(k=5)), made_with=dict(torch="2"), model="m", n=3)
    assert _provenance_differences(found, requested) == [
        "model: found 'nothing', expected 'm'",
        "settings.seed: found 1, expected 2",
    ]
    assert _content_provenance(found) == dict(settings=found["settings"], n=3)


def test_a_store_is_a_value(tmp_path):
    assert len({Store(tmp_path, "bank"), Store(tmp_path, "bank"), Store(tmp_path, "readings")}) == 2
    with pytest.raises(FrozenInstanceError):
        Store(tmp_path, "bank").what = "readings"


def stored(folder, n, size=2):
    "A store of n sources of which every shard is there, in shards of two"
    store, about = Store(folder, "bank"), dict(seed=1, made_with=library_versions())
    names = [f"{i:05d}.parquet" for i in range(-(-n // size))]
    for name in store.todo(dict.fromkeys(names, "x"), about, n, size):
        save_shard(folder / name, pa.table(dict(row=[1])), about | dict(sources="x"))
    return store


def test_a_half_full_shard_counts_and_hidden_files_do_not(tmp_path):
    store = stored(tmp_path, 3)
    (tmp_path / f"{SCRAP}00002.parquet").touch()
    assert store.shard_count() == 2 and store.names() == ["00000.parquet", "00001.parquet"]
    (tmp_path / "00002.parquet").touch()
    with pytest.raises(BadShard, match="do not belong to its 2 shards: 00002.parquet. Move them"):
        store.names()


def test_a_store_grows_and_does_not_shrink(tmp_path):
    stored(tmp_path, 4)
    assert stored(tmp_path, 4).manifest()["n"] == 4 and stored(tmp_path, 6).shard_count() == 3
    with pytest.raises(BadShard, match="is of 6 sources, asked for 4"):
        stored(tmp_path, 4)
    with pytest.raises(BadShard, match="made otherwise: size: found 2, expected 3"):
        stored(tmp_path, 6, size=3)


def test_a_finished_store_is_requested_without_being_written(tmp_path):
    store = stored(tmp_path, 1)
    before = store.json.stat().st_ino
    assert store.shard_count() == 1 and stored(tmp_path, 1).json.stat().st_ino == before
    assert store.json.read_text() == '{"about":{"seed":1},"n":1,"size":2}\n'


@pytest.mark.parametrize(
    "content, problem",
    [
        ("[1]", "it holds a list, not an object"),
        ('{"about": {"a": 1}, "n": 1}', "it has no size"),
        ('{"about": {}, "n": 1, "size": 1}', "about should be an object .*, found {}"),
        ('{"about": [1], "n": 1, "size": 1}', r"about should be an object .*, found \[1\]"),
        (
            '{"about": {"a": 1}, "n": 0, "size": 1.5}',
            "a whole number of at least 1 is needed, found n = 0, size = 1.5",
        ),
    ],
)
def test_a_manifest_that_is_none_says_what_is_wrong(tmp_path, content, problem):
    (tmp_path / "bank.json").write_text(content)
    with pytest.raises(BadShard, match=rf"bank.json cannot be read \({problem}\). Delete it"):
        Store(tmp_path, "bank").manifest()


HOLD = (
    "import sys, time; from uetrust.core import store; print('asks', flush=True)\n"
    "with getattr(store, sys.argv[1])(sys.argv[2], *sys.argv[3:]):\n"
    " print('holds', flush=True); time.sleep(60)"  # Each is killed long before
)


def listen():
    "Hear Ctrl-C even where the tests are a job in the background of a shell, which ignores it"
    signal.signal(signal.SIGINT, signal.default_int_handler)


def worker(lock, *arguments):
    "A process that asks for a lock and, once it has it, holds it until it is killed"
    command = [sys.executable, "-c", HOLD, lock, *map(str, arguments)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=listen
    )
    assert child.stdout.readline() == "asks\n"
    return child


def end(child, how):
    child.send_signal(how)
    child.communicate(timeout=20)
    return child.returncode


def test_a_folder_is_shared_until_its_last_worker_ends_however_it_ends(tmp_path):
    workers = [worker("share_folder", tmp_path) for _ in range(2)]
    assert [child.stdout.readline() for child in workers] == ["holds\n"] * 2
    assert workers[0].poll() is None  # The second did not wait for the first
    for child in workers:
        with pytest.raises(BlockingIOError, match="is being filled"), lock_folder(tmp_path):
            pass
        end(child, signal.SIGKILL)
    with lock_folder(tmp_path):
        pass


@pytest.mark.parametrize("lock", [("lock_folder", True), ("share_folder",)])
def test_ctrl_c_ends_a_run_that_waits_for_another(tmp_path, lock):
    with lock_folder(tmp_path):
        child = worker(lock[0], tmp_path, *lock[1:])
        time.sleep(0.3)  # It waits now
        assert end(child, signal.SIGINT) == -signal.SIGINT
