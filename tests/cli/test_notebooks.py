"""Notebooks on the command line: types of parameters, values of a profile, checkpoints of the hub."""

# ruff: noqa: F811

import asyncio
import gc
import json
import os
import subprocess
import sys

import pytest

from tests.helpers.safety_cases import (
    folder,  # noqa: F401
    params,  # noqa: F401
    printed,
    told,
)
from uetrust.cli.notebooks import hub_checkpoints


def test_a_profile_names_the_checkpoints_that_it_takes_from_the_hub():
    assert hub_checkpoints("demo") == []
    named = hub_checkpoints("paper")
    for checkpoint in ("facebook/bart-large-cnn", "meta-llama/Llama-2-7b-chat-hf", "roberta-large-mnli"):
        assert named.count(checkpoint) == 1
    assert "gpt-3.5-turbo" not in named, "a model behind a server is no checkpoint"
    assert hub_checkpoints("people-read")[0] == "meta-llama/Llama-2-7b-chat-hf"
    assert not any("bart-large" in name for name in hub_checkpoints("aeslc-tiny"))


@pytest.mark.parametrize(
    "given, shown",
    [
        ([], "0.1 a [1, 2] False float"),  # Not the 8 items of a profile
        (["alpha=1e-3"], "0.001 a [1, 2] False float"),
        (["alpha=nan"], "nan a [1, 2] False float"),
        (["alpha=-inf"], "-inf a [1, 2] False float"),
        (["alpha=3", "name=007", "flag=yes"], "3.0 007 [1, 2] True float"),
        (["name=1e-3", "items=[3]"], "0.1 1e-3 [3] False float"),
        (["name=true", "flag=true"], "0.1 true [1, 2] True float"),
    ],
)
def test_parameters_have_the_type_of_their_default(folder, capsys, params, given, shown):
    code, _, err = told(capsys, ["run", str(params), "x.ipynb", *given])
    assert code == 0 and printed(folder / "x.ipynb").strip() == shown, err


@pytest.mark.parametrize(
    "given, says",
    [
        ("alpha=few", "write a number"),
        ("alpha=1e999", "write a number"),
        ("alpha=true", "write a number"),
        ("flag=maybe", "write true or false"),
        ("items=8", "write JSON such as [1, 2]"),
        ("items=1,2", "write JSON such as [1, 2]"),
    ],
)
def test_a_parameter_of_another_type_is_refused(folder, capsys, params, given, says):
    code, _, err = told(capsys, ["run", str(params), "x.ipynb", given])
    assert code == 2 and says in err and f"in the notebook {given.partition('=')[0]} is" in err
    assert not (folder / "x.ipynb").exists()


def test_values_of_a_profile_are_said(folder, capsys, params):
    nb = json.loads(params.read_text())
    nb["cells"][0]["source"] = ["profile = 'smoke'\n", "items = 3\n", "name = 'a'"]
    nb["cells"][1]["source"] = ["print(items, name)"]
    (folder / "mine.ipynb").write_text(json.dumps(nb))
    code, _, err = told(capsys, "run mine.ipynb x.ipynb")
    assert code == 0 and "note: items = 8: from [profile.smoke] of settings.ini" in err
    assert printed(folder / "x.ipynb").strip() == "8 a"
    code, _, err = told(capsys, "run mine.ipynb x.ipynb items=2")
    assert code == 0 and "note:" not in err and printed(folder / "x.ipynb").strip() == "2 a"


@pytest.fixture
def slow_to_end(monkeypatch):
    "Kernels whose clean-up outlasts the second after which their client checks that they are alive."
    from jupyter_client.manager import AsyncKernelManager

    clean_up = AsyncKernelManager.cleanup_resources

    async def later(self, *given, **named):
        await asyncio.sleep(1.2)
        await clean_up(self, *given, **named)

    monkeypatch.setattr(AsyncKernelManager, "cleanup_resources", later)


def with_cell(folder, params, source):
    nb = json.loads(params.read_text())
    nb["cells"][1]["source"] = [source]
    (folder / "mine.ipynb").write_text(json.dumps(nb))


def test_a_stopped_run_says_one_line_however_long_its_kernel_takes_to_end(
    folder, capsys, caplog, params, slow_to_end
):
    with_cell(
        folder, params, "import os, signal, time; os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)"
    )
    code, _, err = told(capsys, "run mine.ipynb x.ipynb")
    gc.collect()  # asyncio logs an error that was never retrieved when its task is removed
    assert code == 143 and err == "uetrust: stopped; the same command goes on where it can\n"
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
    assert not (folder / "x.ipynb").exists()


LAST_WORDS = """
import os, threading
def last_words():
    threading.main_thread().join()
    os.write(2, b"socket closed")
threading.Thread(target=last_words).start()
"""


@pytest.mark.parametrize("provisioner", ["local-provisioner", "uetrust-forked"])
def test_what_a_kernel_writes_while_it_ends_is_not_for_the_terminal(folder, params, provisioner):
    with_cell(folder, params, LAST_WORDS)
    run = [sys.executable, "-m", "uetrust", "run", "mine.ipynb", "x.ipynb"]
    env = os.environ | dict(JUPYTER_DEFAULT_PROVISIONER_NAME=provisioner, TQDM_DISABLE="1")
    done = subprocess.run(run, cwd=folder, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok x.ipynb\n", "")


def test_a_kernel_that_does_not_start_says_why(folder, capfd, params, monkeypatch):
    with_cell(folder, params, "1")
    (folder / "ipykernel.py").write_text("raise ImportError('a broken installation')")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    code, _, err = told(capfd, "run mine.ipynb x.ipynb")
    assert code == 2 and "the process that runs its cells did not start: " in err
    assert err.endswith("ImportError: a broken installation\n") and "Traceback" not in err
