"""Commands as copies of a process that has imported the package and what it imports late.

An interpreter of its own takes seconds to import torch and its like; a copy takes a twentieth of one.
"""

import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
from tempfile import TemporaryFile

import uetrust
from uetrust.cli.reproduce import SLOW

LATE = "nltk rouge_score.rouge_scorer sacrebleu pydantic rich.console pyarrow.parquet sqlite3 requests"
MODULES = [module.name for module in pkgutil.walk_packages(uetrust.__path__, "uetrust.")]
SERVER = multiprocessing.get_context("forkserver")  # It has one thread
SERVER.set_forkserver_preload([*SLOW.split(), *MODULES, *LATE.split()])


def start_server():
    "Start the process that commands are forked from, and wait until it has imported what it preloads."
    first = SERVER.Process(target=os.getpid)
    first.start()
    first.join()


def begin(folder, env, streams):
    "What a shell does before it starts a command"
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored below a job in the background
    os.environ.clear()
    os.environ.update(env)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)


def _child(argv, folder, env, out, err):
    begin(folder, env, [os.open(os.devnull, os.O_RDONLY), out.detach(), err.detach()])
    from uetrust.__main__ import main

    sys.argv[:] = ["uetrust", *argv]
    sys.exit(main())


def run_forked(argv, folder, env=None):
    "What `subprocess.run` of `uetrust argv` in a folder returns"
    from multiprocessing.reduction import DupFd

    env = dict(os.environ if env is None else env)
    with TemporaryFile() as out, TemporaryFile() as err:
        child = SERVER.Process(
            target=_child, args=(argv, str(folder), env, DupFd(out.fileno()), DupFd(err.fileno()))
        )
        child.start()
        child.join()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(["uetrust", *argv], child.exitcode, *texts)
