"""Lessons run as copies of a process that has imported pandas, SciPy and matplotlib, but not torch.

`python -m tests.helpers.lesson_runs` reads one request a line: a lesson and where its output goes. It answers
with the exit code of the copy.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.helpers.paths import ROOT

SLOW = "pandas matplotlib.pyplot seaborn scipy.stats scipy.optimize sklearn.linear_model"


def _checked(path, code, solved, kept):
    "Run a lesson; what its checks say to its solutions and to a wrong answer."
    if kept:  # Without what earlier runs have kept
        import_module("uetrust.papers.people.translations").people_folder = lambda: Path(kept)
    names = {"__name__": "__main__", "display": print}
    for source in code:
        exec(compile(source, path, "exec"), names)
    found = dict(torch="torch" in sys.modules, said=[], wrong=[])
    asked = [source for source in code if "check(answer_" in source]
    for i, (solution, source) in enumerate(zip(solved, asked), 1):
        exec(solution, names)
        call = source.split("\n", 1)[1]
        found["said"].append(eval(call, names))
        found["wrong"].append(eval(call.replace(f"check(answer_{i},", "check('no answer at all',"), names))
    return found


def _in_copy(at, env, **lesson):
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(at) / name, os.O_WRONLY | os.O_CREAT), number)
    os.environ.update(env)
    print("\n" + json.dumps(_checked(**lesson)))


def _serve():
    import matplotlib

    matplotlib.use("agg")
    for name in SLOW.split():
        import_module(name)
    for line in sys.stdin:
        if (copy := os.fork()) == 0:
            _in_copy(**json.loads(line))
            sys.exit()
        print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)


@contextmanager
def lesson_runs():
    "`run(path, kept, **env)` of a lesson: what its checks said, and what it printed"
    from tests.helpers.lessons import cells, solutions  # nbformat takes seconds; the server does without

    env = os.environ | dict(OMP_NUM_THREADS="1", TQDM_DISABLE="1")
    command = [sys.executable, "-W", "ignore", "-m", __name__]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(path, kept="", **own):
        lesson = dict(path=str(path), code=cells(path, "code"), solved=solutions(path), kept=kept)
        with TemporaryDirectory() as at:
            print(json.dumps(lesson | dict(at=at, env=own)), file=server.stdin, flush=True)
            code = int(server.stdout.readline())
            printed, error = [(Path(at) / name).read_text() for name in ("out", "err")]
        assert code == 0, error[-2000:]
        return json.loads(printed.splitlines()[-1]), printed

    with subprocess.Popen(command, cwd=ROOT, env=env, text=True, **pipes) as server:
        yield run


if __name__ == "__main__":
    _serve()
