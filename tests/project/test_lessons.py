"""Lessons: their parts, solutions that pass the checks, data that any clone has; exams and slides."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import permutations

import nbformat
import numpy as np
import pytest
from scipy.stats import norm

from tests.helpers.paths import ROOT
from uetrust.cli.cli import main
from uetrust.report.lessons.exam import EXAM_KINDS, exam_markdown, exam_questions
from uetrust.report.lessons.exercises import check
from uetrust.report.lessons.slides import lesson_notebooks, write_slides
from uetrust.report.playground import playground_panels

LESSONS = lesson_notebooks()
WITH_MODELS = {"from_words_to_a_number", "one_member_is_no_ensemble", "what_the_density_was_fitted_on"}
LONGEST = 20  # Seconds of processor time
EXERCISE, SOLUTION = r"\*\*Exercise (\d)\.\*\*", r"<details>.*?```python\n(.*?)```"


def name(path):
    return f"{path.parent.name}/{path.stem}"


def cells(path, kind):
    return [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == kind]


def test_the_lessons_are_in_three_folders():
    assert {path.parent.name for path in LESSONS} == {"1_basics", "2_pitfalls", "3_methods"}
    assert len(LESSONS) >= 25


@pytest.mark.parametrize("path", LESSONS, ids=name)
def test_a_lesson_has_its_parts(path):
    texts = cells(path, "markdown")
    assert sum(text.startswith("**Predict first.**") for text in texts) == 1
    asked = [int(number) for text in texts for number in re.findall(EXERCISE, text)]
    solved = re.findall(SOLUTION, "\n".join(texts), re.S)
    assert asked == list(range(1, len(solved) + 1)) and len(solved) >= 2
    assert texts[-2] == "## References" and re.search(r"https://", texts[-1])
    open_cells = [source for source in cells(path, "code") if "check(answer_" in source]
    for i, source in enumerate(open_cells, 1):
        assert source.startswith(f"answer_{i} = None\ncheck(answer_{i}, ")
    assert len(open_cells) == len(solved)


def panels_shown(path):
    "Panels whose pictures a lesson holds, each after a sentence that says what to move"
    notebook, found = nbformat.read(path, 4).cells, []
    for before, cell in zip(notebook, notebook[1:]):
        plain = [output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])]
        panels = [panel for text in plain for panel in re.findall(r"^playground\.html#panel=(\w+)", text)]
        assert not panels or (before.cell_type == "markdown" and len(before.source) > 50), path
        found += panels
    return found


def test_the_page_for_lecturers_lists_the_panels_of_all_lessons():
    page = "\n".join(cells(ROOT / "nbs" / "teach_with_it.ipynb", "markdown"))
    table = page.split("## Panels to move")[1].split("## Slides")[0]
    listed = {
        row.split("|")[1].strip(): re.findall(r"\(lessons/([^)]+)\)", row)
        for row in table.splitlines()
        if "](" in row and "|" in row
    }
    shown = {}
    for path in LESSONS:
        for panel in panels_shown(path):
            shown.setdefault(panel, []).append(f"{path.parent.name}/{path.name}")
    titles = {name: panel["title"] for name, panel in playground_panels().items()}
    assert listed == {titles[panel]: lessons for panel, lessons in shown.items()}
    assert set(shown) == set(titles) - {"own"} and sum(map(len, shown.values())) >= 15


RUNNER = (
    """
import json, re, sys, time
from pathlib import Path
import matplotlib
matplotlib.use("agg")
path, kept = sys.argv[1:3]
import uetrust.papers.people.translations as translations
if kept:
    translations.people_folder = lambda: Path(kept)  # Without what earlier runs have kept
cells = json.loads(Path(path).read_text())["cells"]
code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
texts = "\\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
names, start = {"__name__": "__main__", "display": print}, time.process_time()
for source in code:
    exec(compile(source, path, "exec"), names)
found = dict(seconds=time.process_time() - start, torch="torch" in sys.modules, said=[], wrong=[])
solutions = re.findall(%r, texts, re.S)
asked = [source for source in code if "check(answer_" in source]
for i, (solution, source) in enumerate(zip(solutions, asked), 1):
    exec(solution, names)
    call = source.split("\\n", 1)[1]
    found["said"].append(eval(call, names))
    found["wrong"].append(eval(call.replace(f"check(answer_{i},", "check('no answer at all',"), names))
print("\\n" + json.dumps(found))
"""
    % SOLUTION
)


def run_lesson(path, kept="", **env):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNNER, path, kept],
        cwd=ROOT,
        env=os.environ | dict(OMP_NUM_THREADS="1", TQDM_DISABLE="1") | env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stdout


@pytest.mark.parametrize("path", LESSONS, ids=name)
def test_a_lesson_runs_and_its_solutions_are_right(path):
    "In a process of its own: in time, without torch where no model is the subject, every check passed."
    found, _ = run_lesson(path)
    assert found["said"] == ["Right."] * len(found["said"]) and len(found["said"]) >= 2
    assert "Right." not in found["wrong"]
    assert found["seconds"] < LONGEST
    assert found["torch"] == (path.stem[3:] in WITH_MODELS)


NEEDS_FILES = ["03_length_pulls_both", "08_two_teams_of_annotators", "11_sixteen_summaries_of_one_article"]


@pytest.mark.parametrize("stem", NEEDS_FILES)
def test_a_lesson_runs_in_a_clone_without_public_files(stem, tmp_path):
    (path,) = [path for path in LESSONS if path.stem == stem]
    nowhere = dict(UETRUST_OFFLINE="1", UETRUST_MIRROR=str(tmp_path / "none"), UETRUST_CACHE=str(tmp_path))
    _, printed = run_lesson(path, str(tmp_path), **nowhere)
    assert "not at hand" in printed


def test_a_check_answers_in_words_whatever_it_gets():
    for answer in (None, "x", [], [1, 2], np.nan, object(), {"a": 1}, np.arange(3), 1e400, "1"):
        for expected in (0.5, "msp", [1, 2]):
            assert isinstance(check(answer, expected), str)
    assert not check(np.nan, 0.5).startswith(("Right", "Nearly"))
    assert check(1, 1.004) == "Right." and check(1, 1.006).startswith("Nearly")


# Exams


def means(risks):
    return [sum(risks[:k]) / k for k in range(1, len(risks) + 1)]


def ratio(risks, curve=means, last=0):
    "PRR by a plain loop; `last`: how many curve values count, from the end"
    method, oracle = curve(list(risks))[-last:], curve(sorted(risks))[-last:]
    orders = [curve(list(order))[-last:] for order in permutations(risks)]
    chance = sum(map(sum, orders)) / len(orders)
    return (chance - sum(method)) / (chance - sum(oracle))


def of_ties(v):
    risks, groups = list(v["risks"]), list(v["uncertainty"])
    mean = {g: np.mean([r for r, h in zip(risks, groups) if h == g]) for g in groups}
    oracle, chance = means(sorted(risks)), 6 * np.mean(risks)
    return (chance - sum(means([mean[g] for g in groups]))) / (chance - sum(oracle))


def pairs_in_order(v):
    wrong, right = ([i for i, label in enumerate(v["labels"]) if label == l] for l in (0, 1))
    return np.mean([i > j for i in wrong for j in right])


def average_precision(v):
    wrong = 1 - v["labels"][::-1]
    return np.mean([wrong[: i + 1].mean() for i in range(8) if wrong[i]])


SOLVED = dict(
    prr=lambda v: ratio(v["risks"]),
    prr_sum=lambda v: ratio(v["risks"], lambda risks: list(np.cumsum(risks))),
    half=lambda v: ratio(v["risks"], last=3),
    ties=of_ties,
    weight=lambda v: sum(1 / k for k in range(v["position"], v["n"] + 1)) / v["n"],
    auroc=pairs_in_order,
    auprc=average_precision,
    aurc=lambda v: np.mean([1 - v["labels"][:k].mean() for k in range(1, 9)]),
    kept=lambda v: v["labels"][: v["kept"]].mean(),
    holm=lambda v: min(1, 4 * min(v["p"])),
    texts=lambda v: ((norm.ppf(0.975) + norm.ppf(0.8)) * v["spread"] / v["effect"]) ** 2,
    paired=lambda v: (v["first"] ** 2 + v["second"] ** 2 - 2 * v["r"] * v["first"] * v["second"]) ** 0.5,
    people=lambda v: 1 / (1 + (1 - v["r"]) / (v["m"] * v["r"])),
    carriers=lambda v: sum(v["risks"]) ** 2 / sum(r * r for r in v["risks"]),
)


@pytest.mark.parametrize("kind", EXAM_KINDS)
def test_answers_of_exams_are_those_of_a_plain_loop(kind):
    drawn = [q for seed in range(4) for q in exam_questions(seed, len(EXAM_KINDS)) if q.kind == kind]
    assert len(drawn) == 4
    for question in drawn:
        assert np.isclose(question.answer, SOLVED[kind](question.values), rtol=1e-6)


def test_an_exam_is_the_same_for_the_same_seed_and_keeps_answers_apart():
    text = exam_markdown(7, 10)
    assert text == exam_markdown(7, 10) != exam_markdown(8, 10)
    asked, answers = text.split("\n---\n")
    assert len(re.findall(r"^\d+\. ", asked, re.M)) == len(re.findall(r"^\d+\. \*\*", answers, re.M)) == 10
    assert "**" not in asked


def test_exam_on_the_command_line(tmp_path, capsys):
    assert main(["exam", "--seed", "7", "--questions", "3"]) == 0
    assert capsys.readouterr().out == exam_markdown(7, 3)
    assert main(["exam", "--out", str(tmp_path / "a.md")]) == 0
    assert (tmp_path / "a.md").read_text() == exam_markdown(7, 10)
    assert main(["exam", "--questions", "0"]) == 2
    assert "at least 1 question" in capsys.readouterr().err


# Slides


class Loads(HTMLParser):
    "What a page would fetch, and its slides"

    def __init__(self, text):
        super().__init__()
        self.found, self.slides = [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.slides += tag == "section"
        if tag != "a":
            self.found += [value for key, value in attrs if key in ("src", "href") and value]


def test_slides_fetch_nothing_and_hold_every_heading(tmp_path):
    path = ROOT / "nbs/lessons/1_basics/01_what_is_prr.ipynb"
    assert main(["slides", str(path), "--out", str(tmp_path)]) == 0
    text = (tmp_path / "1_basics-01_what_is_prr.html").read_text()
    page, headings = Loads(text), [t for t in cells(path, "markdown") if t.startswith("## ")]
    assert all(source.startswith("data:image/png;base64,") for source in page.found) and page.found
    assert page.slides == len(headings) + 2  # And the title and the prediction
    assert "@import" not in text and "url(" not in text and "<math" in text
    assert text == write_slides(path, tmp_path).read_text()


def test_slides_escape_code_and_printed_text(tmp_path):
    out = nbformat.v4.new_output("stream", name="stdout", text="<script>alert(1)</script>")
    book = [
        nbformat.v4.new_markdown_cell("# A <b>title"),
        nbformat.v4.new_code_cell("'<script>alert(2)</script>'", outputs=[out]),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=book), tmp_path / "x.ipynb")
    text = write_slides(tmp_path / "x.ipynb", tmp_path).read_text()
    assert text.count("<script>") == 1 and "alert(1)" in text and "<title>A &lt;b&gt;title</title>" in text
