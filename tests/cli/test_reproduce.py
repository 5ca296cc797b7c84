"""The run of a profile stops without a traceback."""

# ruff: noqa: F811

import sys

import pytest

from tests.helpers.command_runs import ROOT
from tests.helpers.safety_cases import (
    folder,  # noqa: F401
    interrupted,
    params,  # noqa: F401
)


@pytest.mark.parametrize("delay", [1.0, 4.0, 8.0])
def test_a_stopped_reproduction_shows_no_traceback(tmp_path, delay):
    for name in ("nbs", "data", "uetrust"):
        (tmp_path / name).symlink_to(ROOT / name)
    text = "\n[profile.two]\nprinted_pairs =\nstudies = human wrong_documents\n"
    (tmp_path / "settings.ini").write_text((ROOT / "settings.ini").read_text() + text)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".library").touch()
    words = [sys.executable, str(ROOT / "scripts" / "reproduce.py"), "two", "2"]
    done = interrupted(tmp_path, words, delay)
    if done:
        assert done[0] == 130 and "stopped; the same command goes on" in done[2], done
