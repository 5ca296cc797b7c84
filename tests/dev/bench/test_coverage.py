"""The stored simulations of few labels, guarantees, power and doses are made by the command."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

from uetrust.core.settings import mirror, root

MADE = dict(
    coverage=["coverage", "coverage_variants", "next_labels"],
    guarantee=["inference/guarantee", "inference/claim_promises"],
    power=["inference/power", "inference/pilots", "inference/annotators"],
    dose=["inference/doses", "inference/dose_metrics"],
)


@pytest.fixture
def project(tmp_path):
    "A root of its own, so that the stored tables stay as they are; what is read or kept is linked."
    kept = root() / "runs" / "people"
    kept.mkdir(parents=True, exist_ok=True)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "people").symlink_to(kept)
    (tmp_path / "nbs").symlink_to(root() / "nbs")  # Pages name the keys of settings.ini
    (tmp_path / "data" / "inference").mkdir(parents=True)
    (tmp_path / "settings.ini").write_bytes((root() / "settings.ini").read_bytes())
    for name in (
        "registry.csv",
        "pinned.csv",
        "prr_atlas.json",
        "people",
        "world",
        "published",
        "models",
        "stored",
    ):
        (tmp_path / "data" / name).symlink_to(root() / "data" / name)
    return tmp_path


@pytest.mark.skipif(mirror() is None, reason="needs the translations of MLQE-PE")
def test_the_commands_make_what_is_stored(project):
    "One after the other, since they share the metrics of translations, which take a minute."
    for part, names in MADE.items():
        command = [sys.executable, "-m", "uetrust.dev.bench", part, "--studies", "1"]
        env = os.environ | dict(UETRUST_MIRROR=str(mirror()))
        done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{part}: {done.stderr[-2000:]}"
        for name in names:
            made, stored = (pd.read_csv(place / "data" / f"{name}.csv") for place in (project, root()))
            key = [name for name in ("judge", "bank", "set", "target", "by", "group", "n") if name in stored]
            assert list(made) == list(stored) and made[key].equals(stored[key]), f"rows and columns of {name}"
            about = json.loads((project / "data" / f"{name}.json").read_text())
            assert about.get("studies", about.get("draws")) == 1
