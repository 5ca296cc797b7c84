"""Checkpoints of the model hub: a profile that names one may reach the hub, and an error names the remedy."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from uetrust.models.load import load_model
from uetrust.report.plan import _is_at_hand
from uetrust.scoring.costs import checkpoint_shape


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "UETRUST_OFFLINE"])
def test_offline_names_the_variable_that_forbids_the_hub(monkeypatch, variable):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv(variable, "1")
    message = f"{variable}.*no complete checkpoint of this id. .* copy the checkpoint"
    with pytest.raises(OSError, match=message):
        load_model("facebook/bart-large-cnn")


class Gate(BaseHTTPRequestHandler):
    "A hub that has one gated repository and no other"

    def answer(self):
        self.server.paths.append(self.path)
        gated = "/meta-llama/" in self.path
        self.send_response(401 if gated else 404)
        self.send_header("X-Error-Code", "GatedRepo" if gated else "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = answer

    def log_message(self, *given):
        pass


@contextmanager
def gate(tmp_path):
    "Environment of a process that asks this hub, and the paths it asked for."
    hub = ThreadingHTTPServer(("127.0.0.1", 0), Gate)
    hub.paths = []
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{hub.server_port}"
    try:
        yield (
            os.environ
            | dict(HF_ENDPOINT=address, HF_HUB_OFFLINE="0", HF_HOME=str(tmp_path), NO_PROXY="127.0.0.1"),
            hub.paths,
        )
    finally:
        hub.shutdown()


def test_a_gated_checkpoint_says_what_to_accept(tmp_path):
    code = (
        "from uetrust.models.load import load_model\n"
        "for name in ('meta-llama/Llama-2-7b-chat-hf', 'meta-lama/x'):\n"
        "    try: load_model(name)\n"
        "    except OSError as e: print(e)\n"
    )
    with gate(tmp_path) as (env, _):
        said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout
    gated, absent = said.strip().splitlines()
    assert "Accept it at https://huggingface.co/meta-llama/Llama-2-7b-chat-hf" in gated
    assert "HF_TOKEN" in gated and "misspelt" in absent and "licence" not in absent


def test_a_hub_that_cannot_be_found_is_not_asked_again_and_again(tmp_path):
    "Each of six requests would be repeated after 1, 2, 4, 8 and 8 seconds."
    table = tmp_path / "texts.jsonl"
    table.write_text('{"id": "a", "source": "A cat sat."}\n')
    main = [Path(sys.executable).with_name("uetrust"), "generate", "bank", "--model", "org/writer"]
    env = dict(HF_ENDPOINT="https://hub.invalid", HF_HUB_OFFLINE="0", HF_HOME=str(tmp_path))
    without = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    run = dict(env=without | env, cwd=tmp_path, capture_output=True, text=True)
    said = subprocess.run([*main, "--data", table], **run).stderr
    assert "'org/writer' could not be loaded" in said and "cannot be reached at https://hub.invalid (" in said
    assert "Retrying" not in said and "thrown while requesting" not in said, said


def test_a_checkpoint_that_is_pinned_is_asked_for_at_its_commit(tmp_path):
    "A generator and the sentence encoder of a metric, as users name them on the command line."
    table = tmp_path / "texts.csv"
    table.write_text("id,source,hypothesis,reference\na,A cat sat.,A cat.,A cat.\n")
    commands = (
        ["serve", "org/writer@0a1b2c", "--port", "0"],
        ["score", table, "--metric", "embedding_spearman", "--model", "embedding=org/encoder@6a7b8c"],
    )
    for argv in commands:
        with gate(tmp_path) as (env, paths):
            main = [Path(sys.executable).with_name("uetrust"), *map(str, argv)]
            said = subprocess.run(main, env=env, cwd=tmp_path, capture_output=True, text=True).stderr
        name, _, commit = next(word for word in argv if "@" in str(word)).rpartition("=")[2].partition("@")
        assert f"'{name}' at {commit} could not be loaded" in said or "encoder" in name, said
        of_model = [path for path in paths if name in path]
        assert of_model and all(f"/{commit}" in path for path in of_model), paths


def test_a_pin_does_not_change_what_a_checkpoint_is_called():
    plain, pinned = (checkpoint_shape(f"facebook/bart-large-cnn{pin}") for pin in ("", "@0a1b2c"))
    assert plain == pinned and plain is not None
    assert not _is_at_hand("facebook/bart-large-cnn@0a1b2c")


def test_a_profile_may_pin_every_checkpoint(tmp_path):
    pins = dict(
        nli="org/nli@1", encoder="org/encoder@2", metric_models="unieval=org/unieval@3 anli=org/anli@4"
    )
    (tmp_path / "nbs").mkdir()
    given = "".join(f"{key} = {value}\n" for key, value in pins.items())
    (tmp_path / "settings.ini").write_text("[common]\n[profile.p]\n" + given)
    code = "from uetrust.cli.notebooks import hub_checkpoints\nprint(*hub_checkpoints('p'))"
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True).stdout
    assert said.split() == ["org/nli@1", "org/encoder@2", "org/unieval@3", "org/anli@4"]
