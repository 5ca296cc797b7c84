"""Folders of shards: one process at a time, and what killed runs leave behind."""

import os
import subprocess
import sys
import threading

import pytest

from uetrust.core.settings import SCRAP, atomic_write
from uetrust.core.store import LOCK, lock_folder, remove_scraps


def test_a_folder_is_locked_for_as_long_as_it_is_filled(tmp_path):
    for _ in range(2):  # It can be taken again
        with lock_folder(tmp_path / "bank"):
            assert (tmp_path / "bank" / LOCK).read_text() == str(os.getpid())
            with pytest.raises(BlockingIOError, match=f"bank is being filled by process {os.getpid()}: wait"):
                with lock_folder(tmp_path / "bank"):
                    pass
        assert not (tmp_path / "bank" / LOCK).exists()


def test_a_run_that_may_wait_waits(tmp_path, capsys):
    first = lock_folder(tmp_path)
    first.__enter__()
    ended = []
    timer = threading.Timer(0.5, lambda: (ended.append(True), first.__exit__(None, None, None)))
    timer.start()
    with lock_folder(tmp_path, wait=True):
        assert ended
    assert capsys.readouterr().err.count("This run waits for it") == 1


def test_a_lock_of_a_dead_process_does_not_block(tmp_path):
    code = (
        "import os, sys; from uetrust.core.store import lock_folder\n"
        "held = lock_folder(sys.argv[1]); held.__enter__(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert (tmp_path / LOCK).exists()
    with lock_folder(tmp_path):
        assert (tmp_path / LOCK).read_text() == str(os.getpid())


def test_scraps_of_killed_runs_are_removed_and_nothing_else(tmp_path):
    code = (
        "import os, sys; from uetrust.core.settings import atomic_write\n"
        "with atomic_write(sys.argv[1]) as path: path.write_text('half'); os._exit(9)"
    )
    (tmp_path / "texts").mkdir()
    for name in ("a.parquet", "b.json", "c.csv"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "texts" / name)], check=False)
    with atomic_write(tmp_path / "texts" / "d.csv") as path:
        path.write_text("whole")
    assert len(list(tmp_path.rglob(f"{SCRAP}*"))) == 3
    with lock_folder(tmp_path):
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [LOCK, "d.csv"]
    assert remove_scraps(tmp_path) == 0


def test_a_folder_that_nobody_can_write_to_can_be_read(tmp_path, monkeypatch):
    (tmp_path / "texts").mkdir()
    monkeypatch.setattr(os, "access", lambda *args: False)
    with lock_folder(tmp_path):
        assert not (tmp_path / LOCK).exists()
