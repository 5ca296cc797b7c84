"""Mutants: does a test fail when one operator or number of a module changes?

cosmic-ray makes the mutants; this draws a sample of each module, tries each in a process that has
imported the slow packages already, and counts. `make mutants` takes a seeded sample, `make mutants
MUTANTS=all` takes all of them, `make mutants MODULES='core.store nlg.judge'` some modules. The tests that
run a changed line are tried, the fastest first, else those that run its function, else all.

Why not mutmut: version 3.8.1 runs here, picks tests and resumes, but it leaves out decorated functions,
constants and fields, 1,573 of 8,437 lines of these modules; it draws no sample; and of the first 16 survivors
in evaluation.weights, 10 differed by a docstring or a dtype.
"""

import argparse
import ast
import compileall
import difflib
import json
import multiprocessing
import os
import random
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from math import sqrt
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "data" / "mutants.csv"  # Counts of the last run of each module
SURVIVORS = ROOT / "data" / "mutants_survivors.csv"  # What survived there
MODULES = """
evaluation.multiple evaluation.weights evaluation.resample evaluation.definitions evaluation.cells
evaluation.prr evaluation.measures evaluation.agreement evaluation.calibration evaluation.correlations
evaluation.thresholds evaluation.significance evaluation.shuffled core.store generation.endpoint nlg.judge
scoring.methods statistics.judges statistics.texts.providers statistics.texts.questions scoring.metrics
scoring.cache scoring.drift scoring.generators scoring.pipeline scoring.files report.audit
report.audit_planning
""".split()
MORE = {  # Module -> further test files, by name: "nlg.qa" is tests/nlg/test_qa.py
    "core.store": "generation.bank",
    "evaluation.cells": "evaluation.prr",
    "evaluation.definitions": "evaluation.prr evaluation.atlas",
    "evaluation.multiple": "papers.he2024.human",
    "evaluation.prr": "evaluation.definitions evaluation.atlas",
    "evaluation.resample": "evaluation.prr",
    "evaluation.weights": "evaluation.prr",
    "report.audit_planning": "report.audit",
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


def equivalents(path=ROOT / "tests" / "mutants_equivalent.txt"):
    "Mutants that change nothing one could notice: (module, diff) -> why."
    blocks = [block.strip().split("\n") for block in path.read_text().split("\n\n")[1:] if block.strip()]
    return {(module, "\n".join(diff)): why for module, *diff, why in blocks}


class TestLines:
    "Lines of files that each test runs, those of its fixtures included, and the seconds it takes"

    def __init__(self, folder, paths, kept):
        self.paths, self.kept, self.lines = {str(folder / path): str(path) for path in paths}, kept, None
        self.fixtures, self.tests = {}, {}

    def trace(self, frame, event, arg):
        if frame.f_code.co_filename not in self.paths:
            return None
        self.lines.add((self.paths[frame.f_code.co_filename], frame.f_lineno))
        return self.trace

    def traced(self):  # A hook around which lines are collected
        import threading

        outer, self.lines = self.lines, set()
        sys.settrace(self.trace)
        threading.settrace(self.trace)
        yield
        sys.settrace(None)
        threading.settrace(None)
        found, self.lines = self.lines, None if outer is None else outer | self.lines
        if outer is not None:  # A fixture ends inside a test, whose lines are still wanted
            sys.settrace(self.trace)
        return found

    def plugin(self):
        import pytest

        class Plugin:
            @pytest.hookimpl(hookwrapper=True)
            def pytest_fixture_setup(_, fixturedef, request):
                self.fixtures[fixturedef] = yield from self.traced()

            @pytest.hookimpl(hookwrapper=True)
            def pytest_runtest_protocol(_, item):
                start = time.monotonic()
                found = yield from self.traced()
                for fixtures in item._fixtureinfo.name2fixturedefs.values():
                    found = found.union(*(self.fixtures.get(fixture, ()) for fixture in fixtures))
                self.tests[item.nodeid] = (time.monotonic() - start, sorted(found))

            def pytest_sessionfinish(_):
                Path(self.kept).write_text(json.dumps(self.tests))

        return Plugin()


class InOrder:
    "Only the named tests, in this order"

    def __init__(self, names):
        self.place = {name: i for i, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((item for item in items if item.nodeid in self.place), key=self._place)

    def _place(self, item):
        return self.place[item.nodeid]


def _child(folder, files, lines_of, order):
    os.chdir(folder)
    sys.path[:0] = [str(folder)]
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for stream in (1, 2):
        os.dup2(os.open(f"{folder}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    import pytest

    import uetrust

    assert Path(uetrust.__file__).is_relative_to(folder), f"tests would run {uetrust.__file__}"
    for path in lines_of or ():  # Lines that an import runs are those of no test, so all tests try them
        import_module(".".join(Path(path).with_suffix("").parts))
    plugins = [TestLines(folder, lines_of, f"{folder}.json").plugin()] if lines_of else []
    plugins += [InOrder(order)] if order else []
    without = [word for name in ("cacheprovider", "xdist", "anyio") for word in ("-p", f"no:{name}")]
    sys.exit(pytest.main(["-x", "-q", "--assert=plain", *without, *files], plugins))


def run_tests(folder, files, limit, lines_of=None, order=None):
    "Whether the tests pass in a folder; what hangs does not pass."
    child = SERVER.Process(target=_child, args=(folder, files, lines_of, order))
    child.start()
    child.join(limit)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode == 0


def changed_lines(code, mutant):
    "Numbers of the lines of a file that a mutant changes."
    blocks = difflib.SequenceMatcher(None, code.splitlines(), mutant.splitlines(), False).get_opcodes()
    return {line for kind, i, j, *_ in blocks if kind != "equal" for line in range(i + 1, j + 1)}


def function_lines(code, line):
    "Lines of the innermost function around a line; that line alone outside functions."
    spans = [
        (node.lineno, node.end_lineno)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= node.end_lineno
    ]
    return set(range(max(spans)[0], max(spans)[1] + 1)) if spans else {line}


def in_signature(code, line):
    "Whether a line belongs to the signature of a function, whose defaults an import sets."
    return any(
        node.lineno <= line < node.body[0].lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef)
    )


def concerned(module, code, mutant, tests):
    "Tests that run a changed line, else its function: the fastest first; none for a signature, so all try."
    lines, path = changed_lines(code, mutant), str(module_path(module))
    if any(in_signature(code, line) for line in lines):
        return []
    for wanted in (lines, set().union(*(function_lines(code, line) for line in lines))):
        places = {(path, line) for line in wanted}
        if found := [(seconds, name) for name, (seconds, run) in tests.items() if places & run]:
            return [name for _, name in sorted(found)]
    return []


def workplace(folder):
    "A folder like the root whose package may be changed; the tests are copied, the rest is linked."
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.name not in ("uetrust", "tests", "runs", ".git"):
            (folder / path.name).symlink_to(path)
    for name in ("uetrust", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(folder / name, quiet=1)
    return folder


def try_mutant(folder, module, mutant, files, tests):
    "Whether a mutant of a module survives the tests; what takes much longer than they did is dead."
    path = folder / module_path(module)
    code = path.read_text()
    order = concerned(module, code, mutant, tests) or list(tests)
    limit = 5 * sum(tests[name][0] for name in order) + 30
    try:
        path.write_text(mutant)
        return run_tests(folder, files, limit, order=order)
    finally:
        path.write_text(code)


def wilson(k, n, z=1.96):
    "95 % interval of a share."
    middle, half = k + z * z / 2, z * sqrt(k * (n - k) / n + z * z / 4)
    return (middle - half) / (n + z * z), (middle + half) / (n + z * z)


def sample_mutants(module, code, most, seed=0):
    "Code of a seeded sample of the mutants of a module, and how many there are."
    every = sites(code)
    drawn = every if most is None else random.Random(f"{seed} {module}").sample(every, min(most, len(every)))
    return [mutate_code(code, get_operator(f"core/{name}")(), i) for name, i in drawn], len(every)


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
    return [".".join(path.with_suffix("").parts) for path in paths]


@cache
def test_files(module):
    "The test files that are about a module, found by its name."
    more = ["project.defaults", *MORE.get(module, "").split()]
    found = [*own_files(module), *(path for other in more for path in own_files(other))]
    return tuple(dict.fromkeys(str(path) for path in found))


@cache
def tests_of(folder, files):
    "Of each test of some files: the seconds it takes without a mutant, and the lines that it runs."
    paths = [module_path(module) for module in MODULES if test_files(module) == files]
    if not run_tests(folder, files, LONGEST, lines_of=paths):
        raise SystemExit(f"the tests {' '.join(files)} fail without a mutant; {folder}.log")
    found = json.loads(Path(f"{folder}.json").read_text())
    return {name: (took, set(map(tuple, lines))) for name, (took, lines) in found.items()}


def try_mutants(module, mutants, folders, files):
    "The mutants of a module that survive its tests, in their order."
    code, free = (folders[0] / module_path(module)).read_text(), list(folders)
    tests = tests_of(folders[0], files)

    def survives(mutant):
        folder = free.pop()
        try:
            return try_mutant(folder, module, mutant, files, tests)
        finally:
            free.append(folder)

    with ThreadPoolExecutor(len(folders)) as pool:
        alive = list(pool.map(survives, mutants))
    return [changed(code, mutant) for mutant, survived in zip(mutants, alive) if survived]


def try_module(module, most, seed, folders, known):
    "Counts of a module as a row, and the diffs of its survivors."
    code = (folders[0] / module_path(module)).read_text()
    mutants, total = sample_mutants(module, code, most, seed)
    judged = [mutant for mutant in mutants if (module, changed(code, mutant)) not in known]
    alive = try_mutants(module, judged, folders, test_files(module))
    equal = len(mutants) - len(judged)
    return dict(tried=len(mutants), of=total, survived=len(alive), equivalent=equal, seed=seed), alive


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


def show(name, row):
    judged = row["tried"] - row["equivalent"]
    killed = judged - row["survived"]
    share = "{:.0%} [{:.0%}, {:.0%}]".format(killed / judged, *wilson(killed, judged)) if judged else "none"
    print(
        f"{name:25s} {row['tried']:5d} of {row['of']:5d} tried, {killed:4d} killed, {row['survived']:3d} "
        f"survived, {row['equivalent']:3d} equivalent: {share}",
        flush=True,
    )


def keep(module, row):
    "Put the counts of a module into data/mutants.csv, beside those of modules that were tried before."
    import pandas as pd

    killed = row["tried"] - row["survived"] - row["equivalent"]
    rows = pd.read_csv(KEPT, index_col="module").to_dict("index") if KEPT.exists() else {}
    rows[module] = row | dict(killed=killed)
    ordered = {name: rows[name] for name in [*MODULES, *sorted(set(rows) - set(MODULES))] if name in rows}
    columns = ["seed", "tried", "of", "killed", "survived", "equivalent"]
    pd.DataFrame.from_dict(ordered, "index")[columns].rename_axis("module").to_csv(KEPT)


def keep_survivors(module, diffs):
    "Put the survivors of a module into data/mutants_survivors.csv, in place of those of an earlier run."
    import pandas as pd

    columns = ["module", "before", "after"]
    rows = pd.read_csv(SURVIVORS) if SURVIVORS.exists() else pd.DataFrame(columns=columns)
    lines = [(module, *(line[2:] for line in diff.split("\n"))) for diff in diffs]
    found = pd.concat([rows[rows["module"] != module], pd.DataFrame(lines, columns=columns)])
    found.to_csv(SURVIVORS, index=False)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", default="12", help="mutants of each module, or 'all'")
    parser.add_argument("--seed", type=int, default=0, help="of the samples")
    parser.add_argument("--named", action="store_true", help="only those of tests/mutants_named.txt")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    args = parser.parse_args(argv)
    if unknown := set(args.modules) - set(every_module()):
        parser.error(f"no module is called {', '.join(sorted(unknown))}; sampled are {', '.join(MODULES)}")
    from uetrust.core.settings import mirror, oracles

    os.environ.update(
        {k: str(v) for k, v in dict(UETRUST_MIRROR=mirror(), UETRUST_ORACLES=oracles()).items() if v}
    )
    folders = [workplace(ROOT / "runs" / ".mutants" / str(os.getpid()) / str(i)) for i in range(args.jobs)]
    if args.named:
        raise SystemExit(try_named(folders[0]))
    most = None if args.most == "all" else int(args.most)
    rows = []
    for module in args.modules or MODULES:
        row, survivors = try_module(module, most, args.seed, folders, equivalents())
        rows.append(row)
        show(module, row)
        keep(module, row)
        keep_survivors(module, survivors)
        for diff in survivors:
            print(diff + "\n", flush=True)
    show("all", {name: sum(row[name] for row in rows) for name in rows[0]})
    shutil.rmtree(folders[0].parent)


if __name__ == "__main__":
    main()
