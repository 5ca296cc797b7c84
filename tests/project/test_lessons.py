"""Lessons: their parts, solutions that pass the checks, data that any clone has; exams and slides."""

import re

import nbformat
import pandas as pd
import pytest
import yaml

from tests.helpers import parts
from tests.helpers.lesson_runs import lesson_runs
from tests.helpers.lessons import cells, solutions
from tests.helpers.paths import ROOT
from uetrust.report.lessons.slides import lesson_notebooks
from uetrust.report.playground import playground_panels

LESSONS = lesson_notebooks()
WITH_MODELS = {"from_words_to_a_number", "one_member_is_no_ensemble", "what_the_density_was_fitted_on"}
LONGEST = 20  # Seconds
EXERCISE = r"\*\*Exercise (\d)\.\*\*"


def name(path):
    return f"{path.parent.name}/{path.stem}"


def test_the_lessons_are_in_three_folders():
    assert {path.parent.name for path in LESSONS} == {"1_basics", "2_pitfalls", "3_methods"}
    assert len(LESSONS) >= 25


@pytest.mark.parametrize("path", LESSONS, ids=name)
def test_a_lesson_has_its_parts(path):
    texts = cells(path, "markdown")
    assert sum(text.startswith("**Predict first.**") for text in texts) == 1
    asked = [int(number) for text in texts for number in re.findall(EXERCISE, text)]
    solved = solutions(path)
    assert asked == list(range(1, len(solved) + 1)) and len(solved) >= 2
    assert texts[-2] == "## References" and re.search(r"https://", texts[-1])
    open_cells = [source for source in cells(path, "code") if "check(answer_" in source]
    for i, source in enumerate(open_cells, 1):  # None shows its answer
        assert source == f'answer_{i} = None\ncheck(answer_{i}, *expected("{path.stem[3:]}", {i}))'
    assert len(open_cells) == len(solved)


def references():
    "(lesson, reference, link) of every reference with a link"
    for path in LESSONS:
        for text, link in re.findall(r"^- (.+?) <(https://\S+)>", cells(path, "markdown")[-1], re.M):
            yield name(path), text, link


def test_references_come_from_one_bibliography():
    "Every lesson gives a work the same way, and nothing stands in the bibliography unused."
    table = pd.read_csv(ROOT / "data" / "references.csv")
    assert (
        table["url"].is_unique and table["reference"].is_unique and table["reference"].is_monotonic_increasing
    )
    known = dict(zip(table["url"], table["reference"]))
    assert not [found for found in references() if known.get(found[2]) != found[1]]
    assert set(known) == {link for _, _, link in references()}


def test_the_papers_have_the_titles_of_the_citation_file():
    papers = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    arxiv = {str(paper.get("identifiers")): paper for paper in papers}
    checked = 0
    for _, text, link in references():
        for numbers, paper in arxiv.items():
            if link == paper["url"] or "arXiv:" + link.rpartition("/")[2] in numbers:
                assert paper["title"] in text and str(paper["year"]) in text, text
                checked += 1
    assert checked >= 10


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


@pytest.fixture(scope="module")
def run_lesson():
    with lesson_runs() as run:
        yield run


@pytest.mark.parametrize("path", LESSONS, ids=name)
def test_a_lesson_runs_and_its_solutions_are_right(path, stamped, run_lesson):
    "In a process of its own: in time, without torch where no model is the subject, every check passed."
    stamped(path)
    found, _ = run_lesson(path)
    assert found["said"] == ["Right."] * len(found["said"]) and len(found["said"]) >= 2
    assert "Right." not in found["wrong"]
    assert found["torch"] == (path.stem[3:] in WITH_MODELS)


def test_a_lesson_takes_seconds():
    table = parts.seconds()
    of_lessons = table[table["test"].str.startswith(test_a_lesson_runs_and_its_solutions_are_right.__name__)]
    assert of_lessons["seconds"].max() < LONGEST


NEEDS_FILES = {  # Lesson -> whether it needs more than the copies in the repository
    "03_length_pulls_both": False,
    "08_two_teams_of_annotators": False,
    "11_sixteen_summaries_of_one_article": True,
}


@pytest.mark.parametrize("stem", NEEDS_FILES)
def test_a_lesson_runs_in_a_clone_without_mirror_and_network(stem, tmp_path, stamped, run_lesson):
    (path,) = [path for path in LESSONS if path.stem == stem]
    stamped(path, what="offline")
    nowhere = dict(UETRUST_OFFLINE="1", UETRUST_MIRROR=str(tmp_path / "none"), UETRUST_CACHE=str(tmp_path))
    _, printed = run_lesson(path, str(tmp_path), **nowhere)
    assert ("not at hand" in printed) == NEEDS_FILES[stem]
