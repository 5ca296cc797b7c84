"""The ranges of our dependencies: the core with the lowest and the newest versions, on every interpreter at
hand, and what it can be installed beside. Each environment is made from the package index."""

import os
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.environments import UV, make, pip_find_links, sh
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.long
CORE = [f"tests/evaluation/test_{name}.py" for name in ("prr", "pairs", "weights", "cells")]
NUMBER = re.compile(r"-?\b\d+\.?\d*(?:e-?\d+)?")
LINES = (
    "example",
    "audit data/examples/pilot.csv --truth human --json",
    "prr data/examples/pilot.csv --quality human rouge --uncertainty msp entropy --csv",
    "score data/examples/replies.jsonl --method msp perplexity --csv",
)


def interpreter(python):
    "Path of an interpreter, where uv or pyenv has one"
    found = subprocess.run([UV, "python", "find", "--system", python], capture_output=True, text=True)
    of_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return found.stdout.strip() or next(map(str, of_pyenv.glob(f"{python}.*/bin/python")), None)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    "What the commands print in the environment of the tests"
    folder = tmp_path_factory.mktemp("ours")
    return printed(folder, Path(UV).parent / "uetrust")


def printed(folder, uetrust):
    found = [sh(folder, uetrust, *line.split()) for line in LINES]
    assert [done.returncode for done in found] == [0] * len(LINES), [done.stderr[-500:] for done in found]
    text = "\n".join(done.stdout for done in found)
    return NUMBER.sub("#", text), [float(number) for number in NUMBER.findall(text)]


@pytest.mark.parametrize(
    "python,resolution",
    [("3.11", "lowest-direct"), ("3.11", "highest"), ("3.12", "highest"), ("3.13", "highest")],
)
def test_the_core_says_the_same_with_other_versions(tmp_path, outputs, python, resolution):
    if not (at := interpreter(python)):
        pytest.skip(f"there is no Python {python}")
    env = tmp_path / "env"
    make(tmp_path, UV, "venv", "-q", "-p", at, env)
    install = [UV, "pip", "install", "-q", "-p", env / "bin" / "python", *pip_find_links()]
    make(tmp_path, *install, "--resolution", resolution, ROOT)
    text, numbers = printed(tmp_path, env / "bin" / "uetrust")
    assert text == outputs[0] and numbers == pytest.approx(outputs[1], rel=1e-6, abs=1e-9)
    if python == "3.11":
        make(tmp_path, *install, "pytest", "hypothesis")
        make(ROOT, env / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *CORE)


TABLE = pd.read_csv(ROOT / "data" / "co_install.csv", keep_default_na=False)


@pytest.mark.parametrize("extra", ["", "models"])
@pytest.mark.parametrize("tool", TABLE["tool"])
def test_what_uetrust_can_be_installed_beside_is_as_the_documentation_says(tmp_path, tool, extra):
    ours = f"uetrust[{extra}]" if extra else "uetrust"
    (tmp_path / "both.in").write_text(f"{ours} @ file://{ROOT}\n{tool}\n")
    done = sh(tmp_path, UV, "pip", "compile", "-q", "--python-version", "3.11", "both.in", *pip_find_links())
    expected = TABLE.set_index("tool").at[tool, extra or "core"]
    assert ("yes" if done.returncode == 0 else "no") == expected, done.stderr[-1500:]
