"""Programs that are not ours, in an environment of their own (`make runs/.clients/.ready`)."""

import fcntl
import json
import os
import re
import subprocess

import pytest

from tests.helpers.paths import FIXTURES, ROOT

OFFLINE = "Failed to fetch|Failed to download|error sending request|dns error|Network connectivity"
ENV = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | dict(
    HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", OMP_NUM_THREADS="1", TRANSFORMERS_VERBOSITY="error"
)


def programs():
    "Folder of the programs of their environment, which is made once"
    (ROOT / "runs").mkdir(exist_ok=True)
    with open(ROOT / "runs" / ".clients.lock", "w") as lock:  # Tests of several files run at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "-s", "runs/.clients/.ready"]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if made.returncode and re.search(OFFLINE, made.stderr):
        pytest.skip(f"the packages of pins/clients.pin are out of reach: {made.stderr.splitlines()[-1]}")
    assert made.returncode == 0, made.stderr
    return ROOT / "runs" / ".clients" / "bin"


def run_client(clients, script, *arguments, **env):
    "What a script of tests/fixtures/clients prints last"
    command = [clients / "python", FIXTURES / "clients" / script, *map(str, arguments)]
    done = subprocess.run(command, env=ENV | env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
