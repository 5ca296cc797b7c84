"""CONTRIBUTING.md works as written: its cells, pasted into a copy of the project, return numbers."""

import json
import os
import re
import shutil
import subprocess
import sys

import nbformat
import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from uetrust.core.registry import LAWS

CELLS = re.findall(r"```python\n(#\| export\n.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
INTO = {
    "@nlg": "07_nlg/01_overlap.ipynb",
    "@ue": "03_ue/02_information.ipynb",
    "@statistic": "08_statistics/12_texts/01_comparisons.ipynb",
    "@command": "13_cli/04_own_scores.ipynb",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A copy of the project in which each cell stands at the end of a notebook of its wing, exported"
    at = tmp_path_factory.mktemp("house")
    for name in ("nbs", "uetrust", "tests", "scripts"):
        shutil.copytree(ROOT / name, at / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in (
        "pyproject.toml",
        "settings.ini",
        "CONTRIBUTING.md",
        "README.md",
        "CITATION.cff",
        "CHANGELOG.md",
    ):
        shutil.copy(ROOT / name, at)
    (at / "data").symlink_to(ROOT / "data")
    for cell in CELLS:
        page = at / "nbs" / next(notebook for sign, notebook in INTO.items() if sign in cell)
        nb = nbformat.read(page, 4)
        nb.cells.append(nbformat.v4.new_code_cell(cell.rstrip("\n")))
        nbformat.write(nb, page)
    for page in INTO.values():
        run(at, "-c", f"from nbdev.export import nb_export; nb_export('nbs/{page}')")
    return at


def run(at, *command):
    env = os.environ | dict(
        PYTHONPATH=str(at),
        UETRUST_MIRROR=str(ROOT / "../shared/data"),
        UETRUST_ORACLES=str(ROOT / "../shared/oracles"),
    )
    done = subprocess.run([sys.executable, *command], cwd=at, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def uetrust(at, *words):
    return run(
        at, "-c", f"import sys; from uetrust.cli.cli import main; sys.exit(main({list(map(str, words))!r}))"
    )


def test_every_exception_is_explained():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for law, (kind, meaning) in LAWS.items():
        assert f'| `@{kind}({law}="...")` | {meaning} |' in page, law


def test_there_are_five_cells():
    names = [re.search(r"^def (\w+)", cell, re.M)[1] for cell in CELLS]
    assert names == "rouge_1_recall median_surprisal source_distances far_from_source tied_command".split()


def test_a_pasted_command_prints_its_table_and_its_help(project):
    "Of four texts, two share a score of msp, and all differ by entropy"
    (project / "scores.csv").write_text("msp,entropy\n1,1\n1,2\n2,3\n3,4\n")
    told = uetrust(project, "tied", "scores.csv", "--quality", "msp,entropy", "--csv")
    assert told.split() == ["name,tied", "msp,0.5", "entropy,0"]
    assert "Columns to look at" in uetrust(project, "tied", "--help")


def test_a_pasted_metric_returns_a_number_through_the_command(project):
    "a b b of the reference b b c a: three of its four words are found"
    texts = [dict(id="one", hypothesis="a b b", reference="b b c a")]
    (project / "mine.jsonl").write_text("\n".join(map(json.dumps, texts)) + "\n")
    uetrust(project, "score", "mine.jsonl", "--metric", "rouge_1_recall", "--out", "scores.csv")
    table = pd.read_csv(project / "scores.csv")
    assert list(table) == ["id", "rouge_1_recall"] and table["rouge_1_recall"].tolist() == [0.75]


def test_a_pasted_method_returns_a_number_through_the_command(project):
    uetrust(project, "fill", "bulletin--tiny-bart", "--profile", "smoke")
    bank = project / "runs" / "smoke" / "banks" / "bulletin--tiny-bart"
    uetrust(project, "score", bank, "--method", "median_surprisal", "msp", "--out", "methods.csv")
    table = pd.read_csv(project / "methods.csv").pivot(index="sample", columns="name", values="value")
    assert len(table) == 8 and table["median_surprisal"].between(0, 20).all()
    assert (table["median_surprisal"] <= table["msp"]).all()  # The sum of surprisals is at least their median


def test_a_pasted_statistic_is_stored_in_a_bank_and_computed_for_a_file(project):
    "Bank and file give the same distances of the same texts; where no model is at hand it is named"
    uetrust(project, "fill", "bulletin--tiny-bart", "--profile", "smoke")
    bank, given = project / "runs" / "smoke" / "banks" / "bulletin--tiny-bart", "bulletin:test:8"
    uetrust(project, "score", bank, "--method", "far_from_source", "--out", "of_bank.csv")
    of_bank = pd.read_csv(project / "of_bank.csv").set_index("sample")["value"]
    script = (
        "from uetrust import load_samples, read_bank; "
        f"texts = read_bank({str(bank / 'texts')!r}).query('kind == \"greedy\"'); "
        f"table = texts[['sample', 'text']].merge(load_samples({given!r}), left_on='sample', right_on='id'); "
        "table[['id', 'text', 'source']].rename(columns=dict(text='summary'))"
        ".to_json('of_bank.jsonl', orient='records', lines=True)"
    )
    run(project, "-c", script)
    asked = ("score", "of_bank.jsonl", "--method", "far_from_source")
    uetrust(project, *asked, "--model", "embedding=data/models/tiny-encoder", "--out", "of_file.csv")
    of_file = pd.read_csv(project / "of_file.csv").set_index("id")["far_from_source"]
    assert len(of_bank) == 8 and of_bank.between(0, 2).all() and of_bank.nunique() == 8
    assert of_file[of_bank.index].to_numpy() == pytest.approx(of_bank.to_numpy(), abs=1e-6)
    rows = json.loads(uetrust(project, "score", "of_bank.jsonl", "--explain", "--json"))
    assert {row["method"]: row["possible"] for row in rows}["far_from_source"] == 8
    script = (
        "from uetrust.scoring.files import FileTexts, read_outputs; "
        "print(FileTexts(read_outputs('of_bank.jsonl')).remedy('source_distance'))"
    )
    assert run(project, "-c", script).strip() == "--model embedding=CHECKPOINT"


def test_a_metric_may_ask_for_a_pasted_statistic(project):
    script = """
import pandas as pd
from uetrust import compute_metrics, load_samples
from uetrust.core.registry import nlg

@nlg(unit="[0,2]", cite="this test", sign=-1)
def away(source_distance: float) -> float:
    return source_distance

given = load_samples("bulletin:test:4").rename(columns=dict(reference="hypothesis"))
found = compute_metrics(given, dict(embedding="data/models/tiny-encoder"), ["away"], progress=False)
print(found.table["value"].between(0, 2).sum(), found.table["value"].nunique())
print(compute_metrics(given, {}, ["away"], progress=False).missing)
"""
    said = run(project, "-c", script).splitlines()
    assert said == ["4 4", str(dict(away=["a model for 'source_distances' or 'embedding'"]))]


def test_the_tests_over_the_registry_stay_green(project):
    "With warnings about what is not measured yet, and nothing else."
    files = "project/test_registry_properties project/test_metric_properties project/test_project"
    files += " core/test_registry statistics/test_stored statistics/test_scores"
    files += " scoring/test_methods scoring/test_drift_canaries"
    names = "rouge_1_recall or median_surprisal or far_from_source or covered or every_entry or card"
    names += " or scale or compared or second_reference or words_in_disorder or whichever"
    chosen = [f"tests/{name}.py" for name in [*files.split(), "report/test_cards"]]
    out = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", names, *chosen)
    assert "passed" in out and "failed" not in out
