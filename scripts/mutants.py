"""Mutants: does a test fail when one operator or number of a module changes?

cosmic-ray makes the mutants; this draws a sample of each module, tries each in a process that has
imported the slow packages already, and counts. `make mutants` takes a seeded sample, `make mutants
MUTANTS=all` takes all of them, `make mutants MODULES='core.store nlg.judge'` some modules.
"""

import argparse
import difflib
import multiprocessing
import os
import random
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "data" / "mutants.csv"  # Counts of the last run of each module
TESTS = {  # Module -> test files that are about it, the fast ones first
    "evaluation.multiple": "agreement human",
    "evaluation.weights": "prr",
    "evaluation.resample": "prr",
    "evaluation.he2024": "prr",
    "evaluation.cells": "prr",
    "evaluation.prr": "prr",
    "evaluation.measures": "measures",
    "evaluation.agreement": "agreement",
    "evaluation.calibration": "measures",
    "evaluation.correlations": "meta",
    "evaluation.thresholds": "threshold",
    "evaluation.significance": "meta",
    "evaluation.shuffled": "shuffled",
    "core.store": "store bank",
    "generation.endpoint": "endpoint judging",
    "nlg.judge": "nlg_judge judging",
    "scoring.methods": "scoring fill",
    "scoring.judges": "judging",
    "scoring.providers": "grade metric_properties",
    "scoring.metrics": "grade judging canaries",
    "scoring.cache": "grade",
    "scoring.drift": "canaries",
    "scoring.generators": "fill",
    "scoring.pipeline": "fill",
    "scoring.files": "files",
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
LONGEST = 600.0  # Seconds that the unchanged tests of a module may take
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["pytest", "hypothesis", "pandas", "scipy.stats", "sklearn.metrics", "torch"])


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
    sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]))


def run_tests(folder, files, limit):
    "Whether the tests pass in a folder, and the seconds they took; what hangs does not pass."
    start, child = time.monotonic(), SERVER.Process(target=_child, args=(folder, files))
    child.start()
    child.join(limit)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode == 0, time.monotonic() - start


def workplace(folder):
    "A folder like the root whose package may be changed; the tests are copied, the rest is linked."
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.name not in ("uetrust", "tests", "runs", ".git"):
            (folder / path.name).symlink_to(path)
    for name in ("uetrust", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def try_mutant(folder, module, mutant, files, limit):
    "Whether a mutant of a module survives the tests."
    path = folder / module_path(module)
    code = path.read_text()
    try:
        path.write_text(mutant)
        return run_tests(folder, files, limit)[0]
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


def try_module(module, most, folders, known):
    "Counts of a module as a row, and the diffs of its survivors."
    files = [f"tests/test_{name}.py" for name in TESTS[module].split()]
    code = (folders[0] / module_path(module)).read_text()
    mutants, total = sample_mutants(module, code, most)
    passed, seconds = run_tests(folders[0], files, LONGEST)
    if not passed:
        raise SystemExit(f"{module}: {' '.join(files)} fail without a mutant; {folders[0]}.log")
    free = list(folders)

    def survives(mutant):
        folder = free.pop()
        try:
            return try_mutant(folder, module, mutant, files, 3 * seconds + 20)
        finally:
            free.append(folder)

    with ThreadPoolExecutor(len(folders)) as pool:
        alive = list(pool.map(survives, mutants))
    diffs = [changed(code, mutant) for mutant, survived in zip(mutants, alive) if survived]
    equal = [diff for diff in diffs if (module, diff) in known]
    row = dict(tried=len(mutants), of=total, survived=len(diffs) - len(equal), equivalent=len(equal))
    return row, [diff for diff in diffs if diff not in equal]


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
    ordered = {name: rows[name] for name in TESTS if name in rows}
    columns = ["tried", "of", "killed", "survived", "equivalent"]
    pd.DataFrame.from_dict(ordered, "index")[columns].rename_axis("module").to_csv(KEPT)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", default="12", help="mutants of each module, or 'all'")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(TESTS))
    args = parser.parse_args(argv)
    if unknown := set(args.modules) - set(TESTS):
        parser.error(f"no tests are named for {', '.join(sorted(unknown))}; known: {', '.join(TESTS)}")
    from uetrust.core.settings import mirror, oracles

    os.environ.update(
        {k: str(v) for k, v in dict(UETRUST_MIRROR=mirror(), UETRUST_ORACLES=oracles()).items() if v}
    )
    folders = [workplace(ROOT / "runs" / ".mutants" / str(os.getpid()) / str(i)) for i in range(args.jobs)]
    most = None if args.most == "all" else int(args.most)
    rows = []
    for module in args.modules or TESTS:
        row, survivors = try_module(module, most, folders, equivalents())
        rows.append(row)
        show(module, row)
        keep(module, row)
        for diff in survivors:
            print(diff + "\n", flush=True)
    show("all", {name: sum(row[name] for row in rows) for name in rows[0]})
    shutil.rmtree(folders[0].parent)


if __name__ == "__main__":
    main()
