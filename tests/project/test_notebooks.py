"""Every notebook runs from top to bottom, and what is stored is what it gives."""

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import nbformat
import pytest

import uetrust
from tests.helpers.paths import ROOT
from uetrust.cli.notebooks import parameter_defaults, profile_jobs, typed_values
from uetrust.core.settings import profile
from uetrust.data.outputs import OUTPUT_FORMATS
from uetrust.evaluation.definitions import PRR_DEFINITIONS
from uetrust.report.pitfalls import PANELS
from uetrust.report.site.exhibits import exhibits
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts import COMPUTED_BY, MADE_BY, STATISTICS

reg = load_scores()
REGISTRIES = (reg, STATISTICS, COMPUTED_BY, MADE_BY, PRR_DEFINITIONS, OUTPUT_FORMATS, PANELS)

NBS = [
    p
    for p in sorted((ROOT / "nbs").rglob("*.ipynb"))
    if not any(s[0] in "._" for s in p.relative_to(ROOT / "nbs").parts)
]
EXPERIMENTS = [p for p in NBS if p.relative_to(ROOT / "nbs").parts[0] == "experiments"]
# They make the generations and scores that they lack in runs/smoke, so not two at a time
CHAPTERS = [
    p
    for p in EXPERIMENTS
    if p.parent.name == "banks" or p.stem in ("03_own_claims", "04_against_print", "02_self_bias")
]


DECIDES_NOTHING = "texts: this run shows that the code runs; it decides nothing."
# Values with which a page runs faster than with those of the shown page
QUICK = {
    "01_fflm": dict(draws=400),
    "01_setting": dict(setting="tofueval--gpt-3.5"),
    "03_own_claims": dict(draws=400),
    "11_statements": dict(n=10),
    "09_what_may_stay": dict(resamples=100),
    "01_ice": dict(draws=400),
    "03_ice_study": dict(draws=400),
    "07_best_methods": dict(pair="ru-en"),
    "08_generalisability": dict(draws=100, pair="et-en ro-en"),
    "02_summeval": dict(draws=200),
    "03_tofueval": dict(draws=200),
    "04_people_regret": dict(pair="ru-en"),
    "05_people_sizes": dict(pair="ru-en"),
    "06_people_judges": dict(pair="ru-en"),
    "07_people_length": dict(pair="ru-en"),
    "08_people_words": dict(pair="ru-en"),
    # Eight texts give no difference an interval
    "12_parents": dict(profile="demo", out="runs/smoke"),
    "13_top_tokens": dict(profile="demo", out="runs/smoke"),
}


def with_values(nb, values, folder):
    "A copy of a page with other parameters"
    book = nbformat.read(nb, 4)
    (cell,) = [c for c in book.cells if "parameters" in c.metadata.get("tags", [])]
    cell.source += "".join(f"\n{name} = {value!r}" for name, value in values.items())
    nbformat.write(book, folder / nb.name)
    return folder / nb.name


def runs(nb):
    "Run a page, an experiment on the smoke profile. What it registers is forgotten, as other tests need."
    import nbdev.test as runner

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if nb in EXPERIMENTS:
            here = runner.working_directory
            patch.setattr(runner, "working_directory", lambda _, at=nb.parent: here(at))
            nb = with_values(nb, dict(profile="smoke") | QUICK.get(nb.stem, {}), Path(folder))
        return _runs(nb, runner)


def import_everything():
    for m in pkgutil.walk_packages(uetrust.__path__, "uetrust."):
        importlib.import_module(m.name)


def _runs(nb, runner):
    import_everything()
    before = [dict(registry) for registry in REGISTRIES]
    try:  # As the process ends, the shell of each page would look for garbage among all that it holds
        with mock.patch("IPython.core.interactiveshell.atexit"):
            return runner.test_nb(nb, skip_flags=["notest", "slow", "net"], basepath=ROOT, profile=False)[0]
    finally:
        for registry, entries in zip(REGISTRIES, before):
            registry.clear()
            registry.update(entries)


@pytest.mark.parametrize(
    "nb",
    [p for p in NBS if p not in CHAPTERS and "lessons" not in p.parts],  # test_lessons.py runs the lessons
    ids=lambda p: str(p.relative_to(ROOT / "nbs")),
)
def test_notebook_runs(nb, monkeypatch, stamped):
    stamped(nb)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    start = time.time()
    assert runs(nb)
    assert [path for path in indexed_files(nb) if not made_since(start, path)] == []
    assert words_for_nothing(start) == []


def words_for_nothing(start):
    "Sentences that a page has kept since then and that hold a number that is none."
    pages = (path for path in (ROOT / "runs" / "smoke" / "pages").glob("*.json") if made_since(start, path))
    said = ((path.stem, text) for path in pages for text in json.loads(path.read_text())["text"])
    return [(page, text) for page, text in said if re.search(r"\b(nan|inf)\b", text)]


def indexed_files(nb):
    "What the index of tables and figures says that a page writes, run with its own parameters."
    name = nb.stem.partition("_")[2]
    chapters = {name, "table09", "table10", "table11", "threshold_xdomain_logistic"}
    for row in exhibits().itertuples():
        places = (row.notebook, row.chapter, row.files), (row.live_notebook, row.live_chapter, row.live_files)
        for notebook, chapter, files in places:
            if ROOT / notebook == nb and chapter in chapters:
                yield from (ROOT / "runs" / "smoke" / path for path in files.split())


def made_since(start, path):
    return path.exists() and path.stat().st_mtime >= start - 1


def test_the_pages_of_banks_run_and_make_what_they_lack(monkeypatch, stamped):
    "The one that needs most comes first: it runs alone in a fresh clone."
    stamped(*CHAPTERS)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    CHAPTERS.sort(key=lambda nb: nb.stem != "06_metrics_together")
    start = time.time()
    assert len(CHAPTERS) == 16
    for nb in CHAPTERS:
        assert runs(nb), nb.name
    assert words_for_nothing(start) == []
    made = [path for path in (ROOT / "runs" / "smoke" / "pages").glob("*.json") if made_since(start, path)]
    assert len([path for path in made if DECIDES_NOTHING in path.read_text(encoding="utf-8")]) == 11


def test_the_shown_pages_decide_something():
    shown = [nb for nb in EXPERIMENTS if DECIDES_NOTHING in str(nbformat.read(nb, 4).cells)]
    assert len(EXPERIMENTS) > 40 and shown == []


def test_a_page_leaves_the_registry_as_it_was(monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "1")
    import_everything()
    before = dict(reg)
    assert runs(ROOT / "nbs/07_nlg/10_judge.ipynb")
    assert dict(reg) == before and reg["judge_wo_fluency"].fn.__module__ == "uetrust.nlg.judge"


@pytest.mark.parametrize(
    "damage,says",
    [
        (
            lambda nb: nb.cells[2].update(source=nb.cells[2].source + "\n# later"),
            "outputs are older than the code",
        ),
        (
            lambda nb: nb.cells.append(nbformat.v4.new_markdown_cell("## A heading\nand text")),
            "heading not alone",
        ),
        (
            lambda nb: nb.cells.append(nbformat.v4.new_markdown_cell("[nowhere](no_such_page.ipynb)")),
            "leads to no file",
        ),
        (
            lambda nb: nb.cells.append(nbformat.v4.new_markdown_cell("[a folder](.)")),
            "leads to no file",
        ),
        (
            lambda nb: nb.cells[-1].update(
                outputs=[nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]
            ),
            "stored error output",
        ),
        (
            lambda nb: nb.cells[-1].update(
                outputs=[nbformat.v4.new_output("stream", name="stdout", text="x" * 500_000)]
            ),
            "stored outputs take",
        ),
    ],
)
def test_check_finds_damage(damage, says, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import nbs

    nb = nbformat.read(ROOT / "nbs/01_core/01_checks.ipynb", 4)
    damage(nb)
    p = tmp_path / "x.ipynb"
    monkeypatch.setattr(nbs, "ROOT", tmp_path)
    found = [w for f in (nbs.stored_problems, nbs.text_problems) for w in f(p, nb)]
    assert len(found) == 1 and says in found[0]


@pytest.mark.parametrize("nb", EXPERIMENTS, ids=lambda p: p.name)
def test_experiments_default_to_the_demo_and_keep_their_parameters_tag(nb):
    cells = [c for c in nbformat.read(nb, 4).cells if "parameters" in c.metadata.get("tags", [])]
    assert len(cells) == 1 and 'profile = "demo"' in cells[0].source


def test_run_all_has_the_values_of_the_shown_page():
    "The page shows the first of its runs in the demo."
    shown = {job.notebook: job.values for job in reversed(profile_jobs("demo"))}
    other = {}
    for page, values in shown.items():
        defaults = parameter_defaults(ROOT / page)
        named = {name: text for name, text in profile("demo").items() if name in defaults}
        values = typed_values([f"{name}={text}" for name, text in named.items()], defaults) | values
        other |= {(page, name): value for name, value in values.items() if defaults[name] != value}
    assert len(shown) > 40 and other == {}


def test_runner_survives_a_kill(tmp_path):
    "A killed run leaves no target, and the next run makes it."
    nb = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell("wait = 30", metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell("import time; time.sleep(wait)"),
        ]
    )
    nb.metadata.kernelspec = dict(name="python3", display_name="python3", language="python")
    nbformat.write(nb, tmp_path / "slow.ipynb")
    run = [
        sys.executable,
        "-c",
        "import sys; from uetrust.cli.cli import main; sys.exit(main(sys.argv[1:]))",
        "run",
        str(tmp_path / "slow.ipynb"),
        str(tmp_path / "out.ipynb"),
    ]
    p = subprocess.Popen(run, cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        p.wait(8)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
    assert not (tmp_path / "out.ipynb").exists()
    subprocess.run([*run, "wait=0"], cwd=ROOT, check=True)
    assert (tmp_path / "out.ipynb").exists()


def test_a_notebook_is_read_without_the_grammar_of_web_addresses():
    "jsonschema builds one when it is imported, a second of the four that a short notebook takes"
    script = (
        "import sys; from uetrust.cli.notebooks import notebook_defaults as told; "
        "told('nbs/experiments/people/01_human.ipynb'); sys.exit('lark' in sys.modules)"
    )
    assert not subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode
