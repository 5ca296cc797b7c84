"""nbs.py run [NB...]    export, execute in place, clean, stamp; without a name all but the experiments
nbs.py pages [PROFILE]   give the experiment notebooks the outputs of a finished run of PROFILE (demo)
nbs.py answers           list in data/answers.csv what the experiments answer
nbs.py clean [NB...]     take out what opening and Run All leave behind; without a name from stdin to stdout
nbs.py check             export in sync, clean, executed, small cells, headings, links and answers fine
"""

import ast
import csv
import difflib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENV = os.environ | {
    "TQDM_DISABLE": "1",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}
MAX_OUTPUT = 400_000  # Characters of stored output that a notebook may carry
MAX_CELL = 15  # Lines of a code cell of an experiment
MAX_EXPORTED = 40  # Lines of an exported cell, with its directive
ANSWERS = ROOT / "data" / "answers.csv"


def sh(*command, cwd=ROOT):
    subprocess.run(command, cwd=cwd, env=ENV, check=True, stdin=subprocess.DEVNULL)


def notebooks():
    found = [(path, path.relative_to(ROOT / "nbs").parts) for path in sorted((ROOT / "nbs").rglob("*.ipynb"))]
    return [path for path, parts in found if not any(part[0] in "._" for part in parts)]


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def written(nb):
    return json.dumps(nb, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write(path, nb):
    path.write_text(written(nb), encoding="utf-8")


def cells(nb, kind):
    return ["".join(cell["source"]) for cell in nb["cells"] if cell["cell_type"] == kind]


def code_sha(nb):
    return hashlib.sha256("\0".join(cells(nb, "code")).encode()).hexdigest()[:16]


def is_experiment(path):
    return "experiments" in path.resolve().relative_to(ROOT).parts


def stamp(path):
    nb = read(path)
    kept = {key: nb["metadata"][key] for key in ("uetrust",) if key in nb["metadata"]}
    kernel = dict(display_name="python3", language="python", name="python3")
    nb["metadata"] = kept | {"executed_sha": code_sha(nb), "kernelspec": kernel}
    write(path, nb)


def export(paths):
    "Export some notebooks; the last call renews the index of all names"
    from nbdev.export import nb_export

    for path in paths[:-1]:
        nb_export(path)
    sh("nbdev-export", "--path", paths[-1])


def run(names):
    from nbdev.clean import nbdev_clean

    paths = [Path(name).resolve() for name in names] or [p for p in notebooks() if not is_experiment(p)]
    export(paths)
    for path in paths:
        sh("nbdev-test", "--save", "--n-workers", "0", path)
        stamp(path)
        nbdev_clean(fname=path)


# What git stores
WIDGET = "application/vnd.jupyter.widget-view+json"


def cleaned(nb):
    "A notebook without counts, times, the state of widgets and what an editor notes about its kernel"
    from nbdev.clean import clean_nb
    from nbdev.config import get_config

    rules = get_config(path=ROOT)
    clean_nb(
        nb,
        allowed_metadata_keys=list(rules.allowed_metadata_keys),
        allowed_cell_metadata_keys=list(rules.allowed_cell_metadata_keys),
    )
    nb["metadata"].pop("widgets", None)
    for output in (output for cell in nb["cells"] for output in cell.get("outputs", [])):
        output.get("data", {}).pop(WIDGET, None)
    return nb


def clean(names):
    "Clean notebooks in place, or the one that git sends"
    for path in map(Path, names):
        write(path, cleaned(read(path)))
    if not names:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        sys.stdout.write(written(cleaned(json.load(sys.stdin))))


# Outputs of experiments
def given_outputs(page, executed):
    "A page with the outputs of its executed copy; the cell that papermill adds is passed over"
    ran = [
        cell for cell in executed["cells"] if "injected-parameters" not in cell["metadata"].get("tags", [])
    ]
    if cells(page, "code") != cells(dict(cells=ran), "code"):
        raise SystemExit("the executed copy has other code; run make reproduce again")
    for cell, done in zip(page["cells"], ran, strict=True):
        if cell["cell_type"] == "code":
            shown = [output for output in done["outputs"] if output.get("name") != "stderr"]
            cell["outputs"], cell["execution_count"] = shown, None
    return page


def pages(profile="demo"):
    from uetrust.cli.notebooks import profile_jobs

    first = {}
    for job in profile_jobs(profile):
        first.setdefault(job.notebook, ROOT / "runs" / profile / "notebooks" / f"{job.name}.ipynb")
    for notebook, executed in first.items():
        write(ROOT / notebook, given_outputs(read(ROOT / notebook), read(executed)))
        stamp(ROOT / notebook)
    sh("nbdev-clean")
    ANSWERS.write_text(answers(), encoding="utf-8")
    print(f"{len(first)} pages show {profile}")


# Answers of experiments
def answer_of(nb):
    "Paragraphs that the last cell with `page.answer` shows"
    marked = [
        cell
        for cell in nb["cells"]
        if "page.answer(" in "".join(cell["source"]) and cell["cell_type"] == "code"
    ]
    outputs = marked[-1]["outputs"] if marked else []
    shown = ["".join(output.get("data", {}).get("text/markdown", "")) for output in outputs]
    return [paragraph for text in shown for paragraph in text.split("\n\n") if paragraph.strip()]


def question_of(nb):
    "The line below the title of a page"
    lines = [line for text in cells(nb, "markdown") for line in text.splitlines()]
    return next((line[2:] for line in lines if line.startswith("> ")), "")


def answers():
    "CSV of all answers: page, question, and a paragraph in each row"
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["page", "question", "answer"])
    for path in filter(is_experiment, notebooks()):
        nb, name = read(path), path.relative_to(ROOT / "nbs" / "experiments").with_suffix("").as_posix()
        rows.writerows([name, question_of(nb), text] for text in answer_of(nb))
    return table.getvalue()


# Checks
def exported_again(folder):
    "Export and clean a copy of the project"
    for name in ("nbs", "uetrust"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for path in (folder / "uetrust").rglob("*.py"):  # A module whose notebook is gone must not survive
        if "AUTOGENERATED! DO NOT EDIT!" in path.read_text() or path.name == "_modidx.py":
            path.unlink()
    sh("nbdev-export", cwd=folder)
    sh("nbdev-clean", cwd=folder)


def sync_problems():
    "Whatever comes out different was edited by hand or left behind"
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        exported_again(copy)
        for top, pattern, why in (
            ("uetrust", "*.py", "run nbdev-export"),
            ("nbs", "*.ipynb", "run nbdev-clean"),
        ):
            found = {path.relative_to(at) for at in (ROOT, copy) for path in (at / top).rglob(pattern)}
            for path in sorted(p for p in found if ".ipynb_checkpoints" not in p.parts):
                old, new = ((at / path).read_text() if (at / path).exists() else "" for at in (ROOT, copy))
                if old != new:
                    diff = list(difflib.unified_diff(old.splitlines(True), new.splitlines(True)))
                    yield f"{path}: {why}\n" + "".join(diff[:12])


def stored_problems(path, nb):
    "What the stored notebook shows must be what its code gave, and must stay small"
    outputs = [output for cell in nb["cells"] for output in cell.get("outputs", [])]
    if nb["metadata"].get("executed_sha") != code_sha(nb):
        yield f"outputs are older than the code: run scripts/nbs.py run {path.relative_to(ROOT)}"
    if any(output["output_type"] == "error" for output in outputs):
        yield "stored error output"
    if any(output.get("name") == "stderr" for output in outputs):
        yield "stored warnings (stderr)"
    if nb["metadata"].get("kernelspec", {}).get("name") != "python3":
        yield "kernel is not python3"
    if (size := len(json.dumps(outputs))) > MAX_OUTPUT:
        yield f"stored outputs take {size} characters, more than {MAX_OUTPUT}"


def text_problems(path, nb):
    "One title, headings alone in their cell, links that lead somewhere"
    texts = cells(nb, "markdown")
    if not texts or not texts[0].startswith("# "):
        yield "the first markdown cell must be the title (# ...)"
    if sum(text.startswith("# ") for text in texts) > 1:
        yield "more than one title"
    for text in texts[1:]:
        if text.startswith("#") and "\n" in text.strip():
            yield f"heading not alone in its cell: {text.splitlines()[0]!r}"
    for link in re.findall(r"\]\(([^)#\s]+)", "\n".join(texts)):
        if not re.match(r"https?:|mailto:", link) and not (path.parent / link).is_file():
            yield f"link {link!r} leads to no file"


def cell_problems(path, nb):
    "An exported cell is small and has one public definition"
    exported = [source for source in cells(nb, "code") if re.match(r"#\|\s*exports?\b", source)]
    for source in exported:
        first = next((line for line in source.splitlines() if not line.startswith(("#|", "@"))), source)
        if (lines := len(source.rstrip().splitlines())) > MAX_EXPORTED:
            yield f"an exported cell of {lines} lines, more than {MAX_EXPORTED}: {first!r}"
        defined = [n for n in ast.parse(source).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        if len(public := [node.name for node in defined if node.name[0] != "_"]) > 1:
            yield f"an exported cell with {len(public)} public definitions: {', '.join(public)}"


def experiment_problems(path, nb):
    "An experiment chooses, calls and shows"
    if not is_experiment(path):
        return
    tagged = [cell for cell in nb["cells"] if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        yield f"{len(tagged)} cells tagged 'parameters', an experiment has exactly one"
    for source in cells(nb, "code"):
        if re.search(r"^(def|class) ", source, re.M):
            yield "an experiment notebook defines a function: move it to the library"
        is_import = re.match(r"(from|import) ", source)
        if (lines := len(source.splitlines())) > MAX_CELL and not is_import:
            yield f"a cell of {lines} lines, more than {MAX_CELL}: {source.splitlines()[0]!r}"


def readme_problems():
    text = (ROOT / "README.md").read_text()
    for link in re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'src="([^"]+)"', text):
        if not re.match(r"https?:", link) and not (ROOT / link).exists():
            yield f"README.md: dead link {link!r}"


def check():
    bad = [*sync_problems(), *readme_problems()]
    if not ANSWERS.exists() or ANSWERS.read_text(encoding="utf-8") != answers():
        bad.append("data/answers.csv: run scripts/nbs.py answers")
    for path in notebooks():
        nb = read(path)
        for problems in (stored_problems, text_problems, cell_problems, experiment_problems):
            bad += [f"{path.relative_to(ROOT)}: {problem}" for problem in problems(path, nb)]
    print("\n".join(bad) or f"{len(notebooks())} notebooks in sync, clean, executed, links and headings fine")
    return bool(bad)


if __name__ == "__main__":
    command, *rest = sys.argv[1:] or ["help"]
    commands = {
        "run": lambda: run(rest),
        "clean": lambda: clean(rest),
        "pages": lambda: pages(*rest),
        "answers": lambda: print(ANSWERS.write_text(answers(), encoding="utf-8"), "characters"),
        "check": check,
    }
    sys.exit(commands[command]() if command in commands else __doc__)
