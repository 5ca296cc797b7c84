"""Servers of reasoning models: settings.ini says what their requests carry, and what they think aloud is kept
in the raw reply and is no part of a text."""

import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest

from uetrust.core import settings as s
from uetrust.generation.decoding import Decoding
from uetrust.generation.endpoint import (
    Endpoint,
    EndpointError,
    ReplyCache,
    generate_remotely,
    text_requests,
)
from uetrust.generation.serve import open_endpoint
from uetrust.scoring.generators import generator_settings

INI = """
[common]
banks =
[generator.thinker]
endpoint = https://host.example/v1
model = thinker
concurrency = 2
timeout = 600
extra = {"max_tokens": null, "max_completion_tokens": 900, "temperature": null,
  "chat_template_kwargs": {"enable_thinking": false}}
[generator.broken]
endpoint = https://host.example/v1
model = thinker
extra = max_tokens 5
[generator.number]
endpoint = https://host.example/v1
model = thinker
extra = 5
"""
SAMPLES = pd.DataFrame(dict(id=["a"], source=["The council met."]))


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "nbs").mkdir()
    (tmp_path / "settings.ini").write_text(INI)
    monkeypatch.chdir(tmp_path)
    for c in (s.root, s._read):
        c.cache_clear()
    yield
    monkeypatch.undo()
    for c in (s.root, s._read):
        c.cache_clear()


def test_settings_say_what_a_request_carries(here):
    with open_endpoint(generator_settings("thinker")) as endpoint:
        assert (endpoint.concurrency, endpoint.timeout) == (2, 600)
        greedy = text_requests(endpoint, SAMPLES, Decoding(samples=1))[0]
    assert greedy.body["max_completion_tokens"] == 900 and greedy.most_tokens[1] == 900
    assert greedy.body["chat_template_kwargs"] == dict(enable_thinking=False)
    assert not {"max_tokens", "temperature"} & set(greedy.body)


@pytest.mark.parametrize("name", ["broken", "number"])
def test_further_fields_that_are_no_object_are_an_error(here, name):
    with pytest.raises(ValueError, match=rf"\[generator.{name}\]: extra is a JSON object"):
        generator_settings(name)


def served(content, refused=""):
    "A server whose every reply has this content, and a probability for a token of it; or a refusal"

    class Reply(BaseHTTPRequestHandler):
        def do_POST(self):
            token = dict(token="<think>", logprob=-0.5, top_logprobs=[])
            choice = dict(index=0, message=dict(content=content), finish_reason="stop")
            body = json.dumps(dict(choices=[choice | dict(logprobs=dict(content=[token]))])).encode()
            body = refused.encode() or body
            self.send_response(400 if refused else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Reply)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.mark.parametrize(
    "content,text",
    [
        ("<think>They met, so 5?\nNo.</think>\n\nThe council met.", "The council met."),
        ("They met.</think>The council met.", "The council met."),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|channel|>final<|message|>The council met.",
            "The council met.",
        ),
        ("<think>It goes on and", ""),
        ("The council met.", "The council met."),
    ],
)
def test_what_a_model_thinks_is_kept_and_is_no_part_of_the_text(tmp_path, content, text):
    server = served(content)
    endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}/v1", "m", logprobs=True, retries=0)
    try:
        with ReplyCache(tmp_path / "replies.sqlite") as cache:
            (row,) = generate_remotely(endpoint, SAMPLES, Decoding(samples=0), cache)
    finally:
        server.shutdown()
    raw = sqlite3.connect(tmp_path / "replies.sqlite").execute("select reply from reply").fetchone()[0]
    assert row["text"] == text and json.loads(raw)["choices"][0]["message"]["content"] == content
    assert (row["logprobs"] is None) == (text != content), "probabilities of thoughts are none of the text"


@pytest.mark.parametrize("field,instead", [("temperature", "null"), ("max_tokens", "max_completion_tokens")])
def test_a_field_that_a_model_refuses_is_named_with_what_to_send(tmp_path, field, instead):
    message = f"Unsupported parameter: '{field}' is not supported with this model."
    server = served("", json.dumps(dict(error=dict(message=message))))
    endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}/v1", "m", retries=0)
    try:
        with ReplyCache(tmp_path / "replies.sqlite") as cache:
            with pytest.raises(EndpointError, match=f"takes no {field}: set extra = .*{instead}"):
                generate_remotely(endpoint, SAMPLES, Decoding(samples=0), cache)
    finally:
        server.shutdown()
