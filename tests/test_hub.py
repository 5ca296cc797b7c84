"""Checkpoints of the model hub: a profile that names one may reach the hub, and an error names the remedy."""

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from uetrust.app.notebooks import hub_checkpoints, make_rules
from uetrust.models.load import load_model

OFFLINE = "export HF_HUB_OFFLINE ?= 1"


def test_make_is_offline_only_where_a_profile_needs_no_hub():
    assert hub_checkpoints("demo") == [] and OFFLINE in make_rules("demo").splitlines()
    named = hub_checkpoints("paper")
    for checkpoint in ("facebook/bart-large-cnn", "meta-llama/Llama-2-7b-chat-hf", "roberta-large-mnli"):
        assert named.count(checkpoint) == 1
    assert "gpt-3.5-turbo" not in named, "a model behind a server is no checkpoint"
    assert OFFLINE not in make_rules("paper")
    assert hub_checkpoints("people-read")[0] == "meta-llama/Llama-2-7b-chat-hf"
    assert not any("bart-large" in name for name in hub_checkpoints("aeslc-tiny"))


def test_offline_names_the_variable_that_forbids_the_hub():
    with pytest.raises(OSError, match="HF_HUB_OFFLINE=1 forbids .* Set HF_HUB_OFFLINE=0, or copy"):
        load_model("facebook/bart-large-cnn")


class Gate(BaseHTTPRequestHandler):
    "A hub that has one gated repository and no other"

    def answer(self):
        gated = "/meta-llama/" in self.path
        self.send_response(401 if gated else 404)
        self.send_header("X-Error-Code", "GatedRepo" if gated else "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = answer

    def log_message(self, *given):
        pass


def test_a_gated_checkpoint_says_what_to_accept(tmp_path):
    hub = ThreadingHTTPServer(("127.0.0.1", 0), Gate)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{hub.server_port}"
    env = os.environ | dict(
        HF_ENDPOINT=address, HF_HUB_OFFLINE="0", HF_HOME=str(tmp_path), NO_PROXY="127.0.0.1"
    )
    code = (
        "from uetrust.models.load import load_model\n"
        "for name in ('meta-llama/Llama-2-7b-chat-hf', 'meta-lama/x'):\n"
        "    try: load_model(name)\n"
        "    except OSError as e: print(e)\n"
    )
    try:
        said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout
    finally:
        hub.shutdown()
    gated, absent = said.strip().splitlines()
    assert "Accept it at https://huggingface.co/meta-llama/Llama-2-7b-chat-hf" in gated
    assert "HF_TOKEN" in gated and "misspelt" in absent and "licence" not in absent
