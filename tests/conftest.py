"""Shared fixtures.

Recorded outputs of peers' code and public data lie outside the repository; without them one line says
what was skipped.
"""

import json
import os
import shutil
import sys

os.environ.update(
    HF_HUB_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    OMP_NUM_THREADS="1",
    MPLBACKEND="agg",
    TQDM_DISABLE="1",
)

sys.modules["rfc3987_syntax"] = None  # Takes jsonschema seconds to import; no test checks addresses by it

import pytest
from hypothesis import settings

from uetrust.core import settings as project
from uetrust.core.settings import mirror, oracles

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("deep", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

ABSENT = {k: v for k, v in (("UETRUST_ORACLES", oracles()), ("UETRUST_MIRROR", mirror())) if v is None}


@pytest.fixture
def here(request, monkeypatch):
    "The folder of the test file's fixture `project` as working directory, with settings read anew."
    folder, cached = request.getfixturevalue("project"), (project.root, project._read)
    monkeypatch.chdir(folder)
    for function in cached:
        function.cache_clear()
    yield folder
    monkeypatch.undo()
    for function in cached:
        function.cache_clear()


def pytest_addoption(parser):
    parser.addoption("--part", choices=["short", "rest"], help="tests of `make test`, or what it leaves out")
    parser.addoption("--seconds", help="file that keeps how long the tests took")


def pytest_collection_modifyitems(config, items):
    from tests.helpers.parts import of_part

    kept = of_part(config.getoption("part"), items)
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept


@pytest.fixture
def draws(request):
    "`draws(many, few)`: how many draws a simulation makes; few in `make test`"
    return lambda many, few: few if request.config.getoption("part") == "short" else many


@pytest.fixture
def stamped(request):
    "`stamped(page)`: skip where the page ran green and is as it was; keep its stamp where the test passes"
    from tests.helpers import stamps

    def once(*pages, what=""):
        short = request.config.getoption("part") == "short"
        if short and all(stamps.is_green(page, what) for page in pages):
            pytest.skip("unchanged since it was last green")
        found = [(stamps.key(page, what), stamps.tree().fingerprint(page)) for page in pages]
        request.node.user_properties.append(("stamps", found))

    return once


def keep_stamps(terminalreporter):
    "Stamps of the pages that ran green; one process writes them for all."
    from tests.helpers import stamps

    passed = [report for report in terminalreporter.stats.get("passed", []) if report.when == "call"]
    said = [value for report in passed for name, value in report.user_properties if name == "stamps"]
    if found := dict(stamp for of_test in said for stamp in of_test):
        stamps.keep(found)


def fault_counts(terminalreporter):
    "Verdicts of the fault registry: one row for each suite."
    import pandas as pd

    from tests.faults.harness import VERDICTS

    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    found = [value for report in reports for name, value in report.user_properties if name == "fault"]
    ends = pd.DataFrame(found, columns=["suite", "verdict"])
    counts = pd.crosstab(ends["suite"], ends["verdict"]).reindex(columns=VERDICTS, fill_value=0)
    return counts.assign(tried=counts.sum(axis=1))[["tried", *VERDICTS]]


def fault_summary(terminalreporter):
    "Print the verdicts, and keep them in the file that UETRUST_FAULTS names."
    counts = fault_counts(terminalreporter)
    if not len(counts):
        return
    if kept := os.environ.get("UETRUST_FAULTS"):
        counts.to_csv(kept)
    for suite, row in [*counts.iterrows(), ("all", counts.sum())]:
        ends = ", ".join(f"{n} {name}" for name, n in row.items())
        terminalreporter.write_line(f"faults, {suite}: {ends}")


def keep_seconds(terminalreporter):
    "How long each test took, in the file that `--seconds` names."
    from tests.helpers.parts import keep

    if path := terminalreporter.config.getoption("seconds"):
        found = [report for reports in terminalreporter.stats.values() for report in reports]
        part = terminalreporter.config.getoption("part")
        keep(path, [report for report in found if hasattr(report, "when")], part)


def pytest_terminal_summary(terminalreporter):
    fault_summary(terminalreporter)
    keep_stamps(terminalreporter)
    keep_seconds(terminalreporter)
    if ABSENT:
        terminalreporter.write_line(
            f"not at hand: {', '.join(ABSENT)}; parity and real-data tests were skipped "
            "(set the variable to the folder to run them)",
            yellow=True,
        )


@pytest.fixture(scope="session")
def oracle():
    "`oracle(name)`: a recorded output of peers' code, parsed"
    folder, seen = oracles(), {}

    def load(name):
        if folder is None:
            pytest.skip("UETRUST_ORACLES is not at hand")
        if name not in seen:
            seen[name] = json.loads((folder / name).read_text())
        return seen[name]

    return load


@pytest.fixture
def renamed(tmp_path, monkeypatch):
    "A project with its pages and other names in settings.ini; each old name must stand there once"

    def make(page, names, **variables):
        root = project.root()
        text = (root / "settings.ini").read_text()
        for old, new in names.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        nb = tmp_path / "nbs" / "experiments" / f"{page}.ipynb"  # Folder and file
        shutil.copytree(root / "nbs" / "experiments", tmp_path / "nbs" / "experiments")
        (tmp_path / "settings.ini").write_text(text)
        (tmp_path / "data").symlink_to(root / "data")
        for k, v in variables.items():
            monkeypatch.setenv(k, str(v))
        monkeypatch.chdir(tmp_path)
        forget()
        return nb

    def forget():
        for c in (project.root, project._read):
            c.cache_clear()

    yield make
    forget()


@pytest.fixture(scope="module")
def watched():
    "One browser and one page for all tests of a file"
    from tests.helpers.browser import Watched, chromium

    api = pytest.importorskip("playwright.sync_api")
    path = chromium()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield Watched(browser)
        browser.close()
