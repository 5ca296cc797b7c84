"""The registry with every score in it: every module of scores is found on disk."""

import importlib
import io
import os
import pkgutil
import subprocess
import sys

import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from uetrust.cli.cli import main
from uetrust.statistics.entry import STATISTICS
from uetrust.statistics.scores import load_scores

reg = load_scores()
REPLIES = ROOT / "data" / "examples" / "replies.jsonl"


@pytest.mark.parametrize("package", ["ue", "nlg"])
def test_every_module_of_scores_is_found(package):
    "A file of the folder is enough; there is no list to keep."
    at = importlib.import_module(f"uetrust.{package}")
    found = {e.fn.__module__ for e in reg.values() if e.fn.__module__.startswith(f"{at.__name__}.")}
    on_disk = pkgutil.walk_packages(at.__path__, f"{at.__name__}.")
    assert found == {module.name for module in on_disk if not module.ispkg}


# Plug-ins

GOOD = """
import uetrust
from uetrust.core.registry import nlg, ue

uetrust.load_scores()  # A plug-in may ask for the registry while it is loaded

@ue(unit="nats", cite="this test")
def most_surprising(greedy_logp):
    "Surprisal of the least likely token."
    return -min(greedy_logp)

@nlg(unit="words", cite="this test", dim="relevance")
def written_words(hypothesis):
    "Number of words."
    return len(hypothesis.split())
"""
BROKEN = """
from uetrust.core.registry import ue

@ue(unit="nats", cite="this test")
def half_a_package(greedy_logp):
    return 0.0

import no_such_module
"""


def install(folder, name, source):
    "A distribution with one module, as an installer leaves it"
    (folder / f"{name}.py").write_text(source)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[uetrust.scores]\n{name} = {name}\n")


def run(folder, *words):
    "Exit code, stdout and stderr of the command, where the packages of a folder are installed"
    env = os.environ | dict(PYTHONPATH=os.pathsep.join([str(folder), str(ROOT)]))
    command = [sys.executable, "-m", "uetrust", *map(str, words)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_an_installed_package_adds_scores_and_a_broken_one_costs_only_its_own(tmp_path):
    install(tmp_path, "good_scores", GOOD)
    install(tmp_path, "broken_scores", BROKEN)
    install(tmp_path, "taken_scores", GOOD.replace("most_surprising", "msp"))
    code, said, errors = run(tmp_path, "methods", "most_surprising")
    assert code == 0 and said.startswith("# most_surprising\n") and "(nats; higher is less certain)" in said
    assert errors.splitlines() == [
        "uetrust: warning: the plug-in broken_scores of the package broken_scores 1.0 failed: "
        "ModuleNotFoundError: No module named 'no_such_module'. Install the package that holds "
        "'no_such_module', or update the package: pip install -U broken_scores. Its scores are missing",
        "uetrust: warning: the plug-in taken_scores of the package taken_scores 1.0 failed: 'msp' is already "
        "registered by uetrust.ue.information. Update the package: pip install -U taken_scores. "
        "Its scores are missing",
    ]
    words = ["score", REPLIES, "--method", "most_surprising", "msp", "--metric", "written_words", "--csv"]
    code, said, _ = run(tmp_path, *words)
    table = pd.read_csv(io.StringIO(said))
    assert code == 0 and table[["most_surprising", "msp", "written_words"]].notna().all().all()
    assert (table["most_surprising"] <= table["msp"]).all()
    assert run(tmp_path, "methods", "half_a_package")[0] == 2


@pytest.fixture
def registered():
    before = dict(reg)
    yield
    reg.clear()
    reg.update(before)


def test_a_file_is_named_as_plugin(tmp_path, registered, capsys):
    file, out = tmp_path / "mine.py", tmp_path / "scores.csv"
    file.write_text(GOOD)
    words = ["--method", "most_surprising", "--metric", "written_words", "--plugin", str(file)]
    assert main(["score", str(REPLIES), *words, "--out", str(out)]) == 0
    assert {"most_surprising", "written_words"} <= set(pd.read_csv(out).columns)
    assert main(["metrics", "written_words", "--plugin", str(file)]) == 0
    assert "# written_words" in capsys.readouterr().out


STATISTIC = """
from uetrust.statistics.entry import statistic

@statistic(dict(mine=()), "", unit="words", cost="nothing")
def mine_statistic(model, inputs, requested):
    return {}, {}

"""


@pytest.mark.parametrize(
    "name, source, line",
    [
        ("broken.py", BROKEN, "No module named 'no_such_module'. Install the package that holds"),
        ("half.py", STATISTIC + "raise KeyError(1)", "half.py failed: KeyError: 1"),
        ("none.py", "x = 1", "none.py failed: no function in it is decorated with @ue or @nlg"),
        ("taken.py", GOOD.replace("most_surprising", "msp"), "'msp' is already registered by uetrust.ue."),
        ("leaves.py", "raise SystemExit", "leaves.py failed: SystemExit: . Name an installed module"),
        ("gone.py", None, "gone.py failed: FileNotFoundError"),
        ("no_such_plugin", None, "Install the package that holds 'no_such_plugin', or name an"),
    ],
)
def test_a_plugin_that_fails_is_one_line_and_leaves_nothing(tmp_path, registered, capsys, name, source, line):
    if source is not None:
        (tmp_path / name).write_text(source)
    before, statistics = dict(reg), dict(STATISTICS)
    named = str(tmp_path / name) if name.endswith(".py") else name
    assert main(["methods", "--plugin", named]) == 2 and dict(reg) == before
    assert statistics == STATISTICS
    (error,) = capsys.readouterr().err.splitlines()
    assert line in error
