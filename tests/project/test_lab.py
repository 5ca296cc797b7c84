"""Notebooks in a real JupyterLab: all cells run from the menu, and a widget is moved by keyboard."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.helpers.browser import ROOT, chromium

pytestmark = pytest.mark.browser

LESSONS = ["1_basics/01_what_is_prr", "1_basics/04_ties_and_row_order", "3_methods/01_from_words_to_a_number"]
EXPERIMENTS = ["he2024/01_setting", "people/01_human", "inference/04_power"]
BOOKS = [f"lessons/{name}" for name in LESSONS] + [f"experiments/{name}" for name in EXPERIMENTS]
LEFT_OUT = (".git", ".venv", "runs", "_build", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis")
KERNEL = dict(name="python3", display_name="Python 3", language="python")
SLIDER = """import ipywidgets
def square(number): print(f"the square is {number ** 2}")
ipywidgets.interact(square, number=(0, 10));"""
PANEL = """from uetrust import playground
playground("drag", n=6, position=1)"""
READY = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
DONE = """() => {
  const cells = [...jupyterapp.shell.currentWidget.content.model.cells].filter(
    cell => cell.type === "code" && cell.sharedModel.source.trim());
  const errors = cells.flatMap(cell => cell.outputs.toJSON()).filter(out => out.output_type === "error");
  if (errors.length) return errors.map(error => `${error.ename}: ${error.evalue}`);
  return cells.every(cell => cell.executionCount && cell.executionState === "idle") ? ["ran"] : null;
}"""


def bare_copy(work):
    "The checkout without its runs, and without stored outputs, so that what is seen was made here"
    shutil.copytree(ROOT, work, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for book in BOOKS:
        path = work / "nbs" / f"{book}.ipynb"
        nb = nbformat.read(path, 4)
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(nb, path)
    for name, source in dict(slider=SLIDER, panel=PANEL, failing="1 / 0").items():
        made = new_notebook(cells=[new_code_cell(source)], metadata={"kernelspec": KERNEL})
        nbformat.write(made, work / "nbs" / f"{name}.ipynb")
    return work


def started(server, folder):
    "Address of the server, once it says where it listens"
    for _ in range(600):
        for info in folder.glob("jpserver-*.json"):
            if text := info.read_text():
                return json.loads(text)["url"]
        assert server.poll() is None, server.stderr.read()
        time.sleep(0.1)
    raise TimeoutError("JupyterLab did not start in a minute")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    "Address of a JupyterLab with a configuration of its own, on a free port, gone afterwards"
    work = bare_copy(tmp_path_factory.mktemp("lab") / "uetrust")
    home, token = work.parent / "home", secrets.token_hex(16)
    config = home / "config" / "labconfig" / "page_config.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}')
    env = {f"JUPYTER_{kind.upper()}_DIR": str(home / kind) for kind in ("config", "data", "runtime")}
    env |= dict(IPYTHONDIR=str(home / "ipython"), PYTHONPATH=str(work), JUPYTER_PLATFORM_DIRS="1")
    env["MPLBACKEND"] = ""  # As `make lab` has it: the kernel chooses the one that shows figures
    options = [f"--IdentityProvider.token={token}", "--port=0", "--no-browser", "--allow-root"]
    command = [sys.executable, "-m", "jupyterlab", *options, "--LabApp.expose_app_in_browser=True"]
    with open(work.parent / "log", "w") as log:
        server = subprocess.Popen(command, cwd=work, env=os.environ | env, stdout=log, stderr=log)
    try:
        yield started(server, home / "runtime"), token
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def page(lab):
    api = pytest.importorskip("playwright.sync_api")
    path = chromium()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(180_000)
        yield page
        page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
        browser.close()


def run_all(page, lab, book):
    "Open a notebook, run all cells from the menu; what it ended with"
    url, token = lab
    page.goto(f"{url}lab/tree/nbs/{book}.ipynb?reset&token={token}")
    page.wait_for_function(READY)
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
    page.locator("li[data-command='runmenu:run-all']").click()
    return page.wait_for_function(DONE).json_value()


@pytest.mark.parametrize("book", BOOKS)
def test_all_cells_of_a_notebook_run(page, lab, book):
    assert run_all(page, lab, book) == ["ran"]


def test_a_cell_that_fails_is_noticed(page, lab):
    assert run_all(page, lab, "failing") == ["ZeroDivisionError: division by zero"]


def test_a_slider_moves_by_keyboard_and_its_number_changes(page, lab):
    assert run_all(page, lab, "slider") == ["ran"]
    page.get_by_text("the square is 25").wait_for()
    page.locator("[role=slider]").press("ArrowRight")
    page.get_by_text("the square is 36").wait_for()


def test_a_panel_of_the_playground_moves_by_keyboard(page, lab):
    "The widget, not the picture that stands where no kernel runs"
    assert run_all(page, lab, "panel") == ["ran"]
    page.get_by_text("With the worst of 6 texts at position 1, PRR is").wait_for()
    page.get_by_label("Position of the worst text").press("End")
    page.get_by_text("With the worst of 6 texts at position 6, PRR is 1.").wait_for()
