"""Mutants: does a test fail when one operator or number of the package changes?

cosmic-ray makes the mutants. `make mutants` draws a seeded sample of those of all modules, `make mutants
MODULES='core.store nlg.judge'` of some. Each is tried in a process that has imported the slow packages
already, with the tests of its module: the test file of its name, those that `MORE` names, and, where these
notice nothing, the page that the module is made from, whose examples are tests too.

Why not mutmut: version 3.8.1 runs here, picks tests and resumes, but it leaves out decorated functions,
constants and fields, 1,573 of 8,437 lines of 28 modules; it draws no sample; and of the first 16 survivors
in evaluation.weights, 10 differed by a docstring or a dtype.
"""

import argparse
import compileall
import difflib
import json
import multiprocessing
import os
import random
import re
import shutil
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import sqrt
from pathlib import Path

import pandas as pd
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

from tests.helpers.stamps import absolute_imports

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "data" / "mutants.csv"  # Counts of the last run of each module
SURVIVORS = ROOT / "data" / "mutants_survivors.csv"  # What survived there, and whether it still does
MORE = {  # Module -> further test files, by name: "nlg.qa" is tests/nlg/test_qa.py
    "core.store": "generation.bank",
    "evaluation.cells": "evaluation.prr",
    "evaluation.definitions": "evaluation.prr evaluation.atlas",
    "evaluation.multiple": "papers.he2024.human",
    "evaluation.prr": "evaluation.definitions evaluation.atlas",
    "evaluation.resample": "evaluation.prr",
    "evaluation.weights": "evaluation.prr",
    "report.audit_planning": "report.audit",
    "report.pitfalls": "report.audit",
    "scoring.cache": "scoring.generators",
    "scoring.drift": "project.defaults",
    "scoring.generators": "scoring.pipeline",
    "scoring.metrics": "project.defaults",
    "statistics.texts.providers": "scoring.metrics",
    "statistics.texts.questions": "scoring.metrics nlg.qa",
}
COMPARISONS = "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_Gt Gt_Lt LtE_GtE GtE_LtE Is_IsNot IsNot_Is"
ARITHMETIC = "Add_Sub Sub_Add Mul_Div Div_Mul Pow_Mul FloorDiv_Div Mod_FloorDiv BitAnd_BitOr"
OPERATORS = [
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARISONS.split()),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ARITHMETIC.split()),
    *("ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not", "AddNot"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop"),
]
VERDICTS = ["killed", "survived", "equivalent"]
LONGEST = 1800.0  # Seconds that the unchanged tests of a module may take
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    "pytest hypothesis pandas scipy.stats sklearn.metrics torch transformers.models.auto".split()
)


def module_path(module):
    return Path("uetrust", *module.split(".")).with_suffix(".py")


def sites(code):
    "Every mutation that can be made: (operator, which of its places)."
    nodes = list(ast_nodes(get_ast(code)))
    operators = {name: get_operator(f"core/{name}")() for name in OPERATORS}
    places = {
        name: sum(len(list(op.mutation_positions(node))) for node in nodes) for name, op in operators.items()
    }
    return [(name, i) for name in OPERATORS for i in range(places[name])]


def changed(code, mutant):
    "Lines that a mutant removes and adds, as a diff without context."
    lines = difflib.unified_diff(code.splitlines(), mutant.splitlines(), lineterm="", n=0)
    return "\n".join(line[0] + " " + line[1:].strip() for line in list(lines)[3:])


def diff_side(diff, sign):
    "The lines of a diff that were there before (-), or are there after it (+)."
    return "\n".join(line[2:] for line in diff.split("\n") if line[0] == sign)


def equivalents(path=ROOT / "tests" / "mutants_equivalent.txt"):
    "Mutants that change nothing one could notice: (module, diff) -> why."
    blocks = [block.strip().split("\n") for block in path.read_text().split("\n\n")[1:] if block.strip()]
    return {(module, "\n".join(diff)): why for module, *diff, why in blocks}


def _child(folder, files):
    os.chdir(folder)
    sys.path[:0] = [str(folder)]
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for stream in (1, 2):
        os.dup2(os.open(f"{folder}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    import pytest

    import uetrust

    assert Path(uetrust.__file__).is_relative_to(folder), f"tests would run {uetrust.__file__}"
    without = [word for name in ("cacheprovider", "xdist", "anyio") for word in ("-p", f"no:{name}")]
    sys.exit(pytest.main(["-x", "-q", "--assert=plain", *without, *files]))


def run_tests(folder, files, limit):
    "Whether the tests pass in a folder; what hangs does not pass."
    child = SERVER.Process(target=_child, args=(folder, files))
    child.start()
    child.join(limit)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode == 0


def workplace(folder):
    "A folder like the root whose package may be changed; the tests are copied, the rest is linked."
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    beside = folder.parent / "shared"
    if not beside.exists():
        beside.symlink_to(ROOT.parent / "shared")
    for path in ROOT.iterdir():
        if path.name not in ("uetrust", "tests", "nbs", "runs", ".git"):
            (folder / path.name).symlink_to(path)
    for name in ("uetrust", "tests", "nbs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(folder / name, quiet=1)
    return folder


def wilson(k, n, z=1.96):
    "95 % interval of a share."
    middle, half = k + z * z / 2, z * sqrt(k * (n - k) / n + z * z / 4)
    return (middle - half) / (n + z * z), (middle + half) / (n + z * z)


def code_of(module):
    return (ROOT / module_path(module)).read_text()


def drawn(modules, most, seed):
    "A seeded sample of all mutants, module -> (operator, which of its places), and how many each module has."
    every = [(module, *site) for module in modules for site in sites(code_of(module))]
    found = {}
    for module, *site in random.Random(seed).sample(every, min(most, len(every))):
        found.setdefault(module, []).append(site)
    return found, Counter(module for module, *_ in every)


def test_file(module):
    *wing, name = module.split(".")
    return Path("tests", *wing, f"test_{name}.py")


def own_files(module):
    "The file of a module, and files that are about a part of it: test_judges_requests beside test_judges."
    own = test_file(module)
    others = {test_file(other).stem for other in every_module() if other != module}
    parts = (ROOT / own.parent).glob(f"{own.stem}_*.py")
    longer = [name for name in others if name.startswith(f"{own.stem}_")]
    mine = [
        own.with_name(path.name) for path in parts if not any(path.stem.startswith(name) for name in longer)
    ]
    return [own, *sorted(mine)]


@cache
def every_module():
    paths = (path.relative_to(ROOT / "uetrust") for path in (ROOT / "uetrust").rglob("*.py"))
    names = [".".join(path.with_suffix("").parts) for path in sorted(paths) if not path.name.startswith("_")]
    return [name for name in names if not name.startswith(("dev.", "_project."))]


@cache
def test_files(module):
    "The test files that are about a module, found by its name."
    more = ["project.defaults", *MORE.get(module, "").split()]
    found = [*own_files(module), *(path for other in more for path in own_files(other))]
    return tuple(dict.fromkeys(str(path) for path in found))


def page_of(code):
    "The page that a module is made from, as its head says, and its cells: id -> code."
    head, *blocks = re.split(r"^# %% ", code, flags=re.M)
    cells = dict(block.split("\n", 1) for block in blocks)
    page = re.search(r"File to edit: [./]*(.*\.ipynb)\.$", head, re.M)[1]
    return page, {marker.rpartition("#")[2]: source.rstrip("\n") for marker, source in cells.items()}


def changed_page(notebook, module, code, mutant):
    "A notebook with the change that a mutant makes in its module."
    before, after = page_of(code)[1], page_of(mutant)[1]
    (name,) = (name for name in before if before[name] != after[name])
    nb = json.loads(notebook)
    (cell,) = (cell for cell in nb["cells"] if cell["id"] == name)
    directives = [line for line in cell["source"] if line.startswith("#|")]
    cell["source"] = [*directives, absolute_imports(after[name], f"uetrust.{module}")]
    return json.dumps(nb)


def page_notices(folder, module, code, mutant):
    "Whether the examples of a module's page fail once the page has the change that a mutant makes."
    page = folder / page_of(code)[0]
    notebook = page.read_text()
    test = f"tests/project/test_notebooks.py::test_notebook_runs[{page.relative_to(folder / 'nbs')}]"
    page.write_text(changed_page(notebook, module, code, mutant))
    try:
        return not run_tests(folder, [test], LONGEST)
    finally:
        page.write_text(notebook)


def try_module(module, places, folder):
    "Table of the mutants of a module: operator, place, lines before and after, verdict."
    code, path, files = code_of(module), folder / module_path(module), test_files(module)
    start, known, found = time.monotonic(), equivalents(), []
    if not run_tests(folder, files, LONGEST):
        raise RuntimeError(f"the tests {' '.join(files)} fail without a mutant; {folder}.log")
    limit = 5 * (time.monotonic() - start) + 30

    def survives(mutant):
        path.write_text(mutant)
        try:
            return run_tests(folder, files, limit) and not page_notices(folder, module, code, mutant)
        finally:
            path.write_text(code)

    for operator, place in places:
        mutant = mutate_code(code, get_operator(f"core/{operator}")(), place)
        diff = changed(code, mutant)
        equal = (module, diff) in known
        verdict = "equivalent" if equal else "survived" if survives(mutant) else "killed"
        sides = (diff_side(diff, sign) for sign in "-+")
        found.append((module, operator, place, *sides, verdict))
    return pd.DataFrame(found, columns=["module", "operator", "place", "before", "after", "verdict"])


def named(path=ROOT / "tests" / "mutants_named.txt"):
    "Mutants that must be dead: module, the test that notices it, line before, line after, what it is."
    for block in path.read_text().strip().split("\n\n")[1:]:
        head, old, new, what = block.split("\n")
        module, _, test = head.partition(": ")
        yield module, test, old.removeprefix("- "), new.removeprefix("+ "), what


def replaced(code, old, new):
    "Code with one line replaced, whatever its indentation."
    lines = code.split("\n")
    places = [i for i, line in enumerate(lines) if line.strip() == old]
    if len(places) != 1:
        raise SystemExit(f"the line stands {len(places)} times: {old}")
    indent = lines[places[0]].removesuffix(old)
    return "\n".join([*lines[: places[0]], indent + new, *lines[places[0] + 1 :]])


def try_named(folder):
    "Try the mutants that must be dead, each with its test; how many are not."
    alive = 0
    for module, test, old, new, what in named():
        file, _, name = test.partition("::")
        path, nodes = folder / module_path(module), [f"{test_file(file)}::{name}"]
        code = path.read_text()
        if not run_tests(folder, nodes, LONGEST):
            raise SystemExit(f"{nodes[0]} fails without a mutant; {folder}.log")
        path.write_text(replaced(code, old, new))
        survived = run_tests(folder, nodes, LONGEST)
        path.write_text(code)
        alive += survived
        print(f"{'SURVIVED' if survived else 'dead':8s} {module}: {what}", flush=True)
    return alive


def say(name, found, of):
    "Print how many of the mutants of a module were killed, and those that were not."
    n = found["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    judged = n["killed"] + n["survived"]
    low, high = wilson(n["killed"], judged) if judged else (0, 1)
    counts = ", ".join(f"{n[verdict]:4d} {verdict}" for verdict in VERDICTS)
    share = f"{n['killed'] / judged:.0%} [{low:.0%}, {high:.0%}]" if judged else "none"
    print(f"{name:32s} {len(found):4d} of {of:5d} tried: {counts}: {share}", flush=True)


def place_now(row):
    "Where a mutant that was tried earlier is now, among those of its operator; None where it is gone."
    code = code_of(row.module)
    places = [place for operator, place in sites(code) if operator == row.operator]
    for place in sorted(places, key=lambda place: abs(place - row.place)):
        diff = changed(code, mutate_code(code, get_operator(f"core/{row.operator}")(), place))
        if (diff_side(diff, "-"), diff_side(diff, "+")) == (row.before, row.after):
            return place
    return None


def survivors_again():
    "What survived the last sample: module -> (operator, which of its places); and what is gone."
    found, gone = {}, []
    for row in pd.read_csv(SURVIVORS).itertuples(index=False):
        if (place := place_now(row)) is None:
            gone.append(row._replace(verdict="gone"))
        else:
            found.setdefault(row.module, []).append((row.operator, place))
    return found, gone


def keep(found, of, seed):
    "Write the counts of a sample by module, and its survivors."
    counts = pd.crosstab(found["module"], found["verdict"]).reindex(columns=VERDICTS, fill_value=0)
    counts.insert(0, "seed", seed)
    counts.insert(1, "of", [of[module] for module in counts.index])
    counts.to_csv(KEPT)
    found[found["verdict"] == "survived"].to_csv(SURVIVORS, index=False)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=300, help="mutants in the sample")
    parser.add_argument("--seed", type=int, default=46, help="of the sample")
    parser.add_argument("--again", action="store_true", help="only those that survived the last sample")
    parser.add_argument("--named", action="store_true", help="only those of tests/mutants_named.txt")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help="such as core.store; all when none is named"
    )
    args = parser.parse_args(argv)
    if unknown := set(args.modules) - set(every_module()):
        parser.error(f"no module is called {', '.join(sorted(unknown))}")
    from uetrust.core.settings import mirror, oracles

    os.environ.update(
        {k: str(v) for k, v in dict(UETRUST_MIRROR=mirror(), UETRUST_ORACLES=oracles()).items() if v}
    )
    folders = [workplace(ROOT / "runs" / ".mutants" / str(os.getpid()) / str(i)) for i in range(args.jobs)]
    if args.named:
        raise SystemExit(try_named(folders[0]))
    places, of = drawn(args.modules or every_module(), args.most, args.seed)
    if args.again:
        places, gone = survivors_again()
    free, tables = list(folders), []

    def one(module):
        folder = free.pop()
        try:
            return try_module(module, places[module], folder)
        except RuntimeError as error:
            print(error, file=sys.stderr, flush=True)
            return None
        finally:
            free.append(folder)

    with ThreadPoolExecutor(args.jobs) as pool:
        for module, found in zip(places, pool.map(one, places)):
            if found is None:
                continue
            tables.append(found)
            say(module, found, of[module])
            for row in found[found["verdict"] == "survived"].itertuples():
                print(f"- {row.before}\n+ {row.after}\n", flush=True)
    found = pd.concat(tables)
    say("all", found, sum(of.values()))
    if args.again:
        pd.concat([found, pd.DataFrame(gone, columns=found.columns)]).to_csv(SURVIVORS, index=False)
    elif not args.modules:
        keep(found, of, args.seed)
    shutil.rmtree(folders[0].parent)
    return 1 if len(tables) < len(places) else 0


if __name__ == "__main__":
    sys.exit(main())
