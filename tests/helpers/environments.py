"""Programs in folders that are no checkout, and environments made by uv."""

import os
import subprocess
import sys
from pathlib import Path

UV = Path(sys.executable).parent / "uv"


def pip_find_links():
    "Folder of wheels that pip was told about; uv does not read pip's settings."
    pip = [sys.executable, "-m", "pip", "config", "get", "global.find-links"]
    found = subprocess.run(pip, capture_output=True, text=True).stdout.strip()
    return ["--find-links", found] if found else []


def sh(folder, *words):
    "Outcome of a program in a folder that is no checkout, by a user whose cache is empty"
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env["UETRUST_CACHE"] = str(Path(folder) / "cache")
    return subprocess.run(list(map(str, words)), cwd=folder, env=env, capture_output=True, text=True)


def make(folder, *words):
    done = sh(folder, *words)
    assert done.returncode == 0, done.stderr[-2000:]
