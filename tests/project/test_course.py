"""The course for lecturers: the same bytes twice, no answer for students, lessons that run offline."""

import csv
import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.helpers.environments import UV, pip_find_links
from tests.helpers.paths import ROOT
from uetrust import __version__
from uetrust.report.lessons.exam import exam_markdown
from uetrust.report.lessons.exercises import NO_ANSWER
from uetrust.report.lessons.slides import lesson_notebooks

pytestmark = pytest.mark.long

NAME = f"uetrust-course-{__version__}"
MADE = ROOT / "runs" / "course" / f"{NAME}.zip"
# One lesson of each chapter, with data of its own
LESSONS = (
    "1_basics/12_within_and_between",
    "2_pitfalls/17_a_longer_answer",
    "3_methods/08_a_stand_in_reader",
)
MOST_BYTES = 60_000_000
RUN = r"""
import json, sys
from pathlib import Path
import nbformat
from nbclient import NotebookClient
said = []
for name, answer in [word.split("=") for word in sys.argv[1:]]:
    path = Path("nbs/lessons") / f"{name}.ipynb"
    nb = nbformat.read(path, 4)
    for cell in nb.cells:
        cell.source = cell.source.replace("answer_1 = None", f"answer_1 = {answer}")
    NotebookClient(nb, timeout=100, resources={"metadata": {"path": str(path.parent)}}).execute()
    texts = [out.get("data", {}).get("text/plain", "") for cell in nb.cells for out in cell.get("outputs", [])
             if "check(answer_" in cell.source]
    said.append([text[1:-1] for text in texts])
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    "Folder of the course that `make course` writes, unpacked"
    done = subprocess.run([sys.executable, "scripts/course.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"ok runs/course/{NAME}.zip")
    folder = tmp_path_factory.mktemp("course")
    zipfile.ZipFile(MADE).extractall(folder)
    return folder / NAME


def texts(folder):
    "Name -> text of every text file below a folder"
    kinds = (".ipynb", ".html", ".md", ".csv", ".json", ".ini")
    found = [path for path in sorted(folder.rglob("*")) if path.suffix in kinds]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}


def test_the_same_checkout_gives_the_same_bytes(course, tmp_path):
    spec = importlib.util.spec_from_file_location("course", ROOT / "scripts" / "course.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.write_course(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == MADE.read_bytes()
    infos = zipfile.ZipFile(MADE).infolist()
    names = [info.filename for info in infos]
    assert names == sorted(names) and {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert MADE.stat().st_size < MOST_BYTES


def test_every_lesson_is_there_with_its_slides_and_its_row_in_the_readme(course):
    readme = (course / "README.md").read_text()
    rows = dict(re.findall(r"\]\((students/nbs/lessons/\S+)\) \| (\d+) \|", readme))
    lessons = [path.relative_to(ROOT).as_posix() for path in lesson_notebooks()]
    assert list(rows) == [f"students/{name}" for name in lessons]
    assert all(15 <= int(minutes) <= 45 for minutes in rows.values())
    slides = {f"{path.parent.name}-{path.stem}.html" for path in lesson_notebooks()}
    assert {path.name for path in (course / "students" / "slides").iterdir()} == slides
    (wheel,) = course.joinpath("students").glob("*.whl")
    to_students = (course / "students" / "README.md").read_text()
    assert f"pip install '{wheel.name}'" in to_students and "{" not in readme + to_students


def test_every_link_of_the_course_leads_to_a_file_of_it(course):
    dead = []
    for name, text in texts(course).items():
        if not name.endswith((".ipynb", ".md")) or "/data/" in name or "THIRD_PARTY" in name:
            continue
        if name.endswith(".ipynb"):
            cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
            text = "\n".join("".join(cell["source"]) for cell in cells)
        links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if not link.startswith("http")]
        dead += [(name, link) for link in links if not (course / name).parent.joinpath(link).exists()]
    assert dead == []


def test_no_answer_stands_in_the_students_part(course):
    students = texts(course / "students")
    key = list(csv.DictReader((ROOT / "data" / "exercises.csv").read_text().splitlines()))
    assert (course / "lecturers" / "exercises.csv").read_bytes() == (
        ROOT / "data" / "exercises.csv"
    ).read_bytes()
    assert not list(course.joinpath("students").rglob("exercises.csv"))
    (wheel,) = course.joinpath("students").glob("*.whl")
    assert [name for name in zipfile.ZipFile(wheel).namelist() if "exercises.csv" in name] == []
    for name, text in students.items():
        assert "Solution</summary>" not in text, name
        assert set(re.findall(r"answer_\d = (\w+)", text)) <= {"None"}, name
    lessons = {Path(name).stem[3:]: text for name, text in students.items() if name.endswith(".ipynb")}
    for row in key:
        asked = lessons[row["lesson"]].partition("## Exercises")[2].partition("## References")[0]
        assert asked, row["lesson"]
        is_number = re.fullmatch(
            r"-?[\d.]{4,}", row["expected"]
        )  # A word is one of those that are asked about
        assert not is_number or row["expected"] not in asked, row


def test_an_exam_and_its_key_are_apart_and_the_seed_is_not_told(course):
    assert {path.name for path in (course / "exams").iterdir()} == {f"exam-{letter}.md" for letter in "abc"}
    for i, letter in enumerate("abc"):
        asked = (course / "exams" / f"exam-{letter}.md").read_text()
        key = (course / "lecturers" / "keys" / f"exam-{letter}.md").read_text()
        assert asked.startswith(f"# Exam {letter.upper()}\n") and "nswer" not in asked and "**" not in asked
        assert key.startswith(f"# Answers to exam {letter.upper()}\n")
        lines = exam_markdown(7 + i, 10).splitlines()
        questions = [line for line in lines if re.match(r"\d+\. ", line)]
        assert re.findall(r"^\d+\. .*$", asked + key, re.M) == questions and len(questions) == 20


def test_the_solutions_are_with_the_lecturer(course):
    text = (course / "lecturers" / "solutions.md").read_text()
    rows = list(csv.DictReader((ROOT / "data" / "exercises.csv").read_text().splitlines()))
    assert len(re.findall(r"^\*\*Exercise \d\.\*\*", text, re.M)) == len(rows)
    assert text.count("```python\n") == len(rows) and "<details>" not in text
    assert (
        "| 90 minutes" not in text and "## 90 minutes" in (course / "lecturers/teach_with_it.md").read_text()
    )


@pytest.fixture(scope="module")
def run(course, tmp_path_factory):
    "Function that runs lessons in an environment that has the wheel of the course, without a network"
    env = tmp_path_factory.mktemp("env") / "env"
    away = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    (wheel,) = course.joinpath("students").glob("*.whl")
    pins = ["-c", ROOT / "pins" / "constraints.txt", *pip_find_links()]
    subprocess.run([UV, "venv", "-q", "-p", sys.executable, env], check=True, env=away)
    install = [
        UV,
        "pip",
        "install",
        "-q",
        "-p",
        env / "bin" / "python",
        *pins,
        wheel,
        "nbclient",
        "ipykernel",
    ]
    subprocess.run(install, check=True, env=away)
    away |= dict(UETRUST_OFFLINE="1", UETRUST_CACHE=str(env / "cache"), UETRUST_MIRROR=str(env / "none"))

    def run(*words):
        command = [env / "bin" / "python", "-c", RUN, *words]
        done = subprocess.run(command, cwd=course / "students", env=away, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_a_lesson_of_each_chapter_runs_offline_and_is_checked_once_the_key_is_there(course, run):
    given = run(*[f"{name}=12345" for name in LESSONS])
    assert [said[0] for said in given] == ["Not checked: this copy has no key. Your lecturer has it."] * 3
    assert {text for said in given for text in said[1:]} == {NO_ANSWER}
    key = course / "students" / "data" / "exercises.csv"
    key.write_bytes((course / "lecturers" / "exercises.csv").read_bytes())
    ((said, *_),) = run(f"{LESSONS[0]}=12345")
    assert said.startswith("Not yet")
