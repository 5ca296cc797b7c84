"""course.py [SEED]   write runs/course/uetrust-course-VERSION.zip: what a lecturer needs, keys apart"""

import copy
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from uetrust import __version__
from uetrust.core.settings import atomic_write, root
from uetrust.report.lessons.exam import exam_markdown
from uetrust.report.lessons.exercises import EXERCISES_FILE
from uetrust.report.lessons.slides import lesson_notebooks, write_slides

ROOT = root()
NAME = f"uetrust-course-{__version__}"
EXAMS, QUESTIONS = "ABC", 10
# What lessons read, and the licences of what is passed on
DATA = [
    "settings.ini",
    "LICENSE",
    "THIRD_PARTY.md",
    "data/registry.csv",
    "data/pinned.csv",
    "data/published/uets_*.csv",
    "data/people/answer_cosines.*",
    "data/public/README.md",
    "data/public/evouna/*",
    "data/public/factscore/*",
    "data/public/mlqe-pe/**/*",
    "data/smollm2/*",
    "data/world/tiny-*.parquet",
    "data/models/tiny-bart/*",
]
DATE = (1980, 1, 1, 0, 0, 0)  # The earliest that a zip can hold, so that equal content has equal bytes
SOLUTION = re.compile(r"<details><summary>Solution</summary>\s*(.*?)\s*</details>", re.S)
CHAPTERS = {"1_basics": "The measure", "2_pitfalls": "Pitfalls", "3_methods": "Methods"}
WORDS_PER_MINUTE, MINUTES_PER_CELL, MINUTES_PER_EXERCISE, MINUTES_OF_PREDICTION = 150, 0.5, 4, 5


def text_of(cell):
    return "".join(cell["source"])


def markdown(nb):
    return [text_of(cell) for cell in nb["cells"] if cell["cell_type"] == "markdown"]


def linked(text, folder, known, below=""):
    "Markdown whose links lead to files of the course; of others their words stay"

    def one(found):
        words, target = found[1], found[2]
        if re.match(r"https?:|mailto:|#", target):
            return found[0]
        path = Path(os.path.normpath(folder / target.partition("#")[0]))
        return f"[{words}]({below}{target})" if path in known else words

    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", one, text)


def for_students(path, known):
    "A lesson without its solutions"
    nb = copy.deepcopy(json.loads(path.read_text(encoding="utf-8")))
    nb["cells"] = [cell for cell in nb["cells"] if not SOLUTION.match(text_of(cell))]
    for cell in nb["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = linked(text_of(cell), path.parent, known).splitlines(keepends=True)
    return json.dumps(nb, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def minutes(nb):
    "Minutes that a lesson takes a student, in steps of five"
    words = sum(len(text.split()) for text in markdown(nb) if not SOLUTION.match(text))
    exercises = sum(bool(SOLUTION.match(text)) for text in markdown(nb))
    cells = sum(cell["cell_type"] == "code" for cell in nb["cells"])
    found = words / WORDS_PER_MINUTE + cells * MINUTES_PER_CELL + exercises * MINUTES_PER_EXERCISE
    return 5 * math.ceil((found + MINUTES_OF_PREDICTION) / 5)


def needs(nb):
    code = "\n".join(text_of(cell) for cell in nb["cells"] if cell["cell_type"] == "code")
    torch = "torch" if "uetrust.models" in code else ""
    public = "a public file, else a section is passed over" if "if_at_hand(" in code else ""
    return ", ".join(filter(None, (torch, public)))


def schedule(lessons):
    "Table of the lessons, in order"
    rows = ["| Chapter | Lesson | Minutes | Needs |", "|:--|:--|--:|:--|"]
    for path, nb in lessons.items():
        title = markdown(nb)[0].splitlines()[0].lstrip("# ")
        address = f"students/{path.relative_to(ROOT).as_posix()}"
        rows.append(f"| {CHAPTERS[path.parent.name]} | [{title}]({address}) | {minutes(nb)} | {needs(nb)} |")
    total = sum(minutes(nb) for nb in lessons.values())
    return "\n".join(rows), total


def solutions(lessons):
    "Exercises of all lessons with their solutions, as Markdown"
    parts = ["# Solutions"]
    for nb in lessons.values():
        texts = markdown(nb)
        parts.append("## " + texts[0].splitlines()[0].lstrip("# "))
        for text in texts:
            if text.startswith("**Exercise "):
                parts.append(text)
            if found := SOLUTION.match(text):
                parts.append(found[1])
    return "\n\n".join(parts) + "\n"


def routes(known):
    "The page for lecturers as Markdown, from its own folder"
    page = ROOT / "nbs" / "teach_with_it.ipynb"
    texts = markdown(json.loads(page.read_text(encoding="utf-8")))
    return "\n\n".join(linked(text, page.parent, known, "../students/nbs/") for text in texts) + "\n"


def exams(seed):
    "(name, questions, key) of each exam; its title does not give the seed away"
    for i, letter in enumerate(EXAMS):
        text = exam_markdown(seed + i, QUESTIONS).replace(f"xam {seed + i}\n", f"xam {letter}\n")
        asked, answered = text.split("\n---\n")
        yield f"exam-{letter.lower()}.md", asked.strip() + "\n", answered.strip() + "\n"


def wheel():
    "The package, built from this checkout"
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"the wheel cannot be built: {done.stderr.strip()[-500:]}")
        (path,) = Path(folder).glob("*.whl")
        return path.name, path.read_bytes()


def data_files():
    found = {path for pattern in DATA for path in ROOT.glob(pattern) if path.is_file()}
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in found}


def slides(students):
    "Slides of lessons without solutions"
    with tempfile.TemporaryDirectory() as folder:
        for name, text in students.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            made = write_slides(path, folder)
            yield f"slides/{made.name}", made.read_bytes()


def filled(name, words):
    return (ROOT / "scripts" / name).read_text(encoding="utf-8").format(**words)


def content(seed):
    "Name -> bytes of every file of the course"
    lessons = {path: json.loads(path.read_text(encoding="utf-8")) for path in lesson_notebooks()}
    students = {path.relative_to(ROOT).as_posix(): for_students(path, lessons) for path in lessons}
    table, total = schedule(lessons)
    package, built = wheel()
    words = dict(schedule=table, hours=round(total / 60), wheel=package, version=__version__)
    files = {f"students/{name}": found for name, found in (students | data_files()).items()}
    files |= {f"students/{name}": made for name, made in slides(students)}
    for name, asked, key in exams(seed):
        files |= {f"exams/{name}": asked, f"lecturers/keys/{name}": key}
    files |= {
        "README.md": filled("course_lecturers.md", words),
        "students/README.md": filled("course_students.md", words),
        f"students/{package}": built,
        "lecturers/solutions.md": solutions(lessons),
        "lecturers/teach_with_it.md": routes(lessons),
        "lecturers/exercises.csv": (ROOT / EXERCISES_FILE).read_bytes(),
    }
    return {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}


def write_course(path, seed=7):
    "Write the zip: names in order and one date, so that the same checkout gives the same bytes"
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as course:
        for name, data in sorted(content(seed).items()):
            info = zipfile.ZipInfo(f"{NAME}/{name}", DATE)
            info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            course.writestr(info, data)


if __name__ == "__main__":
    given = sys.argv[1:] or ["7"]
    if len(given) != 1 or not given[0].isdigit():
        sys.exit(
            f"course.py takes one whole number, the seed of the exams, such as 7; found {' '.join(given)}"
        )
    path = ROOT / "runs" / "course" / f"{NAME}.zip"
    write_course(path, int(given[0]))
    print(f"ok {path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.0f} MB")
