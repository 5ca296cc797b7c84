"""A release: the same archives twice, with their hashes, and nothing of what is not committed."""

import json
import sys

import pytest

from tests.helpers.environments import make, sh
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.long


def test_a_release_of_one_commit_has_the_same_bytes_twice(tmp_path):
    make(tmp_path, "git", "clone", "-q", "--depth", "1", f"file://{ROOT}", "one")
    make(tmp_path, "cp", "-r", "one", "two")
    sums = []
    for name in ("one", "two"):
        folder = tmp_path / name
        done = sh(folder, sys.executable, "scripts/release.py")
        assert done.returncode == 0 and "ok dist: uetrust" in done.stdout, done.stderr[-2000:]
        sums.append((folder / "dist" / "SHA256SUMS").read_text())
    assert sums[0] == sums[1] and len(sums[0].splitlines()) == 5
    make(folder / "dist", "sha256sum", "-c", "SHA256SUMS")
    bill = json.loads((folder / "dist" / "sbom.json").read_text())
    named = {one["name"].lower() for one in bill["components"]}
    assert {"numpy", "pandas", "scipy"} <= named and not {"torch", "uetrust"} & named
    (folder / "README.md").write_text("changed")
    done = sh(folder, sys.executable, "scripts/release.py")
    assert done.returncode == 1 and "commit first" in done.stderr and "README.md" in done.stderr
