"""Server: texts and log-probabilities over HTTP are those of the checkpoint, whatever else clients send."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.helpers.requested import (
    GOOD,
    PROMPT,
    TALK,
    ask,
    events,
    joined,
    open_stream,
    piece,
    post,
    streamed,
    texts,
)
from tests.helpers.writers import SAMPLES, files, tiny
from uetrust.core.store import canonical_json
from uetrust.generation import endpoint
from uetrust.generation import serve as server
from uetrust.generation.bank import read_bank
from uetrust.generation.decoding import Decoding, text_seed
from uetrust.generation.endpoint import Endpoint, EndpointError, ReplyCache
from uetrust.generation.local import decode_batch, encode_prompt, generate_texts
from uetrust.generation.serve import running_server
from uetrust.models.forward import score_tokens

FEW = SAMPLES[:6]
SETTINGS = Decoding(samples=3, max_new_tokens=12, prompt="w1 {source} w2")


@pytest.fixture(scope="module")
def model():
    return tiny("llama", chat=True)


@pytest.fixture(scope="module")
def url(model):
    with running_server(model, "tiny") as address:
        yield address


@pytest.fixture
def cache(tmp_path):
    with ReplyCache(tmp_path / "replies.sqlite") as replies:
        yield replies


def greedy(model, ids, n):
    return model.tokenizer.decode(
        decode_batch(model, [ids], Decoding(max_new_tokens=n), [[None]])[0][0], skip_special_tokens=True
    )


# (a) Texts


@pytest.mark.parametrize("kind,chat", [("llama", True), ("llama", False), ("bart", False), ("t5", False)])
def test_greedy_texts_are_those_of_the_model_at_home(kind, chat, cache):
    model, settings = tiny(kind, chat), replace(SETTINGS, samples=0, document=SETTINGS.prompt)
    with running_server(model) as url:
        rows = endpoint.generate_remotely(Endpoint(url, kind, chat=chat), FEW, settings, cache)
    at_home = {row["sample"]: (row["text"], row["finish"]) for row in generate_texts(model, FEW, settings)}
    assert {row["sample"]: (row["text"], row["finish"]) for row in rows} == at_home and len(
        set(at_home.values())
    ) > 3


def test_drawn_texts_are_those_of_the_project_s_sampling(url, model):
    settings = Decoding(max_new_tokens=9, temperature=0.7, top_k=20, top_p=0.9)
    ids = encode_prompt(model, PROMPT)
    ours = decode_batch(model, [ids], settings, [[text_seed(5, canonical_json(ids), i) for i in range(4)]])[0]
    got = ask(url, n=4, seed=5, max_tokens=9, temperature=0.7, top_k=20, top_p=0.9)
    assert texts(got) == [model.tokenizer.decode(text, skip_special_tokens=True) for text in ours]
    assert got["usage"] == dict(
        prompt_tokens=4, completion_tokens=sum(map(len, ours)), total_tokens=4 + sum(map(len, ours))
    )
    assert [choice["finish_reason"] for choice in got["choices"]] == [
        "stop" if text[-1] == 1 else "length" for text in ours
    ]


@pytest.mark.parametrize("fields", [dict(temperature=0.3), dict(top_k=2), dict(top_p=0.3)])
def test_every_setting_of_the_sampling_counts(url, fields):
    assert texts(ask(url, n=8, seed=1, max_tokens=8, **fields)) != texts(ask(url, n=8, seed=1, max_tokens=8))


def test_top_p_counts_up_to_one(url):
    drawn = {
        top_p: texts(ask(url, n=32, seed=1, max_tokens=8, top_p=top_p, temperature=0.5))
        for top_p in (0.55, 0.75, 0.9, 1)
    }
    assert all(drawn[top_p] != drawn[1] for top_p in (0.55, 0.75, 0.9)) and drawn[0.55] != drawn[0.9]


def test_both_names_of_the_length_count(url):
    for name in ("max_tokens", "max_completion_tokens"):
        assert ask(url, seed=1, temperature=0, **{name: 3})["usage"]["completion_tokens"] <= 3
    assert ask(url, temperature=0, max_tokens=9, max_completion_tokens=2)["usage"]["completion_tokens"] == 2


def test_system_and_assistant_messages_go_through_the_template(url, model):
    talk = [
        dict(role="system", content="w3"),
        dict(role="user", content="w9 w8"),
        dict(role="assistant", content="w7"),
        dict(role="user", content="w6"),
    ]
    _, got = post(url, dict(model="tiny", messages=talk, temperature=0, max_tokens=6), "/chat/completions")
    ids = encode_prompt(model, talk)
    assert (
        got["usage"]["prompt_tokens"] == len(ids) > len(encode_prompt(model, talk[1:]))
        and got["choices"][0]["message"]["role"] == "assistant"
    )
    assert texts(got) == [greedy(model, ids, 6)]


# (b) Seeds


@pytest.mark.parametrize("chat", [True, False])
def test_text_i_depends_on_seed_prompt_and_i_alone(url, chat):
    four, again, two, other, elsewhere = (
        ask(url, chat, max_tokens=10, **fields)
        for fields in (
            dict(n=4, seed=7),
            dict(n=4, seed=7),
            dict(n=2, seed=7),
            dict(n=4, seed=8),
            {
                "n": 4,
                "seed": 7,
                "messages" if chat else "prompt": [dict(role="user", content="w9")] if chat else "w9",
            },
        )
    )
    assert canonical_json(four) == canonical_json(again) and texts(two) == texts(four)[:2]
    assert (
        len(set(texts(four))) == 4
        and not set(texts(four)) & set(texts(other))
        and not set(texts(four)) & set(texts(elsewhere))
    )


def test_without_a_seed_texts_differ_and_the_reply_tells_the_seed(url):
    first, second = (ask(url, n=3, max_tokens=10) for _ in range(2))
    assert texts(first) != texts(second) and texts(ask(url, n=3, max_tokens=10, seed=first["seed"])) == texts(
        first
    )
    assert ask(url, temperature=0)["seed"] is None and canonical_json(
        ask(url, temperature=0, max_tokens=5)
    ) == canonical_json(ask(url, temperature=0, max_tokens=5))


# (c) Log-probabilities


@pytest.mark.parametrize(
    "fields", [dict(temperature=0), dict(temperature=0.5, seed=3, n=3), dict(top_k=3, seed=3, n=2)]
)
def test_logprobs_are_those_of_read_whatever_the_sampling(url, model, fields):
    words = model.tokenizer.get_vocab()
    plain, chat = (
        ask(url, logprobs=2, max_tokens=8, **fields),
        ask(url, True, logprobs=True, top_logprobs=2, max_tokens=8, **fields),
    )
    for reply, prompt in ((plain, PROMPT), (chat, [dict(role="user", content=PROMPT)])):
        for choice in reply["choices"]:
            got = (
                choice["logprobs"]
                if reply is plain
                else {
                    name: [tokens[field] for tokens in choice["logprobs"]["content"]]
                    for name, field in (
                        ("tokens", "token"),
                        ("token_logprobs", "logprob"),
                        ("top_logprobs", "top_logprobs"),
                    )
                }
            )
            reading = score_tokens(
                model, [(encode_prompt(model, prompt), [words[tokens] for tokens in got["tokens"]])], topk=2
            )[0]
            np.testing.assert_allclose(got["token_logprobs"], reading.logp, rtol=0, atol=1e-5)
            top = [
                tokens if reply is plain else {best["token"]: best["logprob"] for best in tokens}
                for tokens in got["top_logprobs"]
            ]
            assert [sorted(words[word] for word in tokens) for tokens in top] == np.sort(
                reading.top_ids, 1
            ).tolist()
            np.testing.assert_allclose(
                [sorted(tokens.values()) for tokens in top], reading.top_logp[:, ::-1], rtol=0, atol=1e-5
            )
    assert (
        sum(len(choice["logprobs"]["tokens"]) for choice in plain["choices"])
        == plain["usage"]["completion_tokens"]
    ), "the end token has its log-probability too"


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_echo_gives_the_logprobs_of_a_given_text(url, model):
    fields = dict(echo=True, max_tokens=0, logprobs=0)
    (choice,) = ask(url, **fields)["choices"]
    ids, logprobs = encode_prompt(model, PROMPT), choice["logprobs"]
    assert canonical_json(ask(url, **fields)) == canonical_json(ask(url, **fields)), (
        "nothing is drawn, so nothing is left to chance"
    )
    assert choice["text"] == PROMPT and logprobs["tokens"] == PROMPT.split()
    assert logprobs["token_logprobs"][0] is None and logprobs["top_logprobs"] is None
    close(logprobs["token_logprobs"][1:], score_tokens(model, [(ids[:1], ids[1:])])[0].logp)


def test_echo_is_followed_by_the_text_and_its_logprobs(url):
    (given,) = ask(url, echo=True, max_tokens=0, logprobs=0)["choices"]
    (whole,) = ask(url, echo=True, max_tokens=5, logprobs=1, temperature=0)["choices"]
    (alone,) = ask(url, max_tokens=5, logprobs=1, temperature=0)["choices"]
    echoed, before, after = (choice["logprobs"] for choice in (whole, given, alone))
    assert whole["text"] == PROMPT + alone["text"] and echoed["top_logprobs"][0] is None
    assert echoed["tokens"] == PROMPT.split() + after["tokens"]
    close(echoed["token_logprobs"][1:], before["token_logprobs"][1:] + after["token_logprobs"])


def test_an_encoder_decoder_has_logprobs_of_its_texts_and_none_of_its_prompt():
    model = tiny("bart")
    with running_server(model, "tiny") as url:
        (choice,) = ask(url, logprobs=0, temperature=0, max_tokens=8)["choices"]
        status, reply = post(url, dict(model="tiny", prompt=PROMPT, echo=True, max_tokens=0, logprobs=0))
    ids = decode_batch(model, [encode_prompt(model, PROMPT)], Decoding(max_new_tokens=8), [[None]])[0][0]
    np.testing.assert_allclose(
        choice["logprobs"]["token_logprobs"],
        score_tokens(model, [(encode_prompt(model, PROMPT), ids)])[0].logp,
        rtol=0,
        atol=1e-5,
    )
    assert status == 400 and reply["error"]["param"] == "echo" and "encoder" in reply["error"]["message"]


def test_no_logprobs_unless_asked(url):
    for fields in ({}, dict(logprobs=None)):
        assert ask(url, **fields, max_tokens=3)["choices"][0]["logprobs"] is None
    assert ask(url, True, logprobs=False, max_tokens=3)["choices"][0]["logprobs"] is None


# (d) Streams: the chunks of https://platform.openai.com/docs/api-reference/chat/streaming


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("fields", [dict(temperature=0), dict(n=3, seed=5), dict(seed=2, top_k=5)])
def test_a_stream_is_the_reply_in_pieces(url, chat, fields):
    whole, chunks = ask(url, chat, max_tokens=12, **fields), streamed(url, chat, max_tokens=12, **fields)
    expected = [choice["finish_reason"] for choice in whole["choices"]]
    assert joined(chunks, len(expected)) == list(zip(texts(whole), expected))
    assert {chunk["id"] for chunk in chunks} == {whole["id"]} and len(chunks) > 3 * len(expected)


@pytest.mark.parametrize("chat", [True, False])
def test_chunks_have_the_documented_form(url, chat):
    first, *middle, last, counted = streamed(
        url, chat, max_tokens=12, temperature=0, stream_options=dict(include_usage=True)
    )
    for chunk in (first, *middle, last, counted):
        assert chunk["object"] == ("chat.completion.chunk" if chat else "text_completion")
        assert chunk["model"] == "tiny" and type(chunk["created"]) is int
    for chunk in (first, *middle, last):
        (choice,) = chunk["choices"]
        assert set(choice) == {"index", "logprobs", "finish_reason", "delta" if chat else "text"}
        assert chunk["usage"] is None and (choice["finish_reason"] is None) == (chunk is not last)
    assert counted["choices"] == []
    assert counted["usage"] == ask(url, chat, max_tokens=12, temperature=0)["usage"]
    if chat:
        assert first["choices"][0]["delta"] == dict(role="assistant", content="")
        assert last["choices"][0]["delta"] == {}
        assert all(set(chunk["choices"][0]["delta"]) == {"content"} for chunk in middle)


def test_without_include_usage_no_chunk_counts(url):
    for options in (None, {}, dict(include_usage=False)):
        assert not any("usage" in chunk for chunk in streamed(url, max_tokens=3, stream_options=options))


def test_an_echoed_prompt_is_the_first_piece(url):
    first, *_ = chunks = streamed(url, echo=True, max_tokens=5, temperature=0)
    assert first["choices"][0]["text"] == PROMPT
    assert joined(chunks)[0][0] == texts(ask(url, echo=True, max_tokens=5, temperature=0))[0]


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_an_encoder_decoder_streams(kind):
    with running_server(tiny(kind), "tiny") as url:
        chunks = streamed(url, n=2, seed=1, max_tokens=10)
        assert [text for text, _ in joined(chunks, 2)] == texts(ask(url, n=2, seed=1, max_tokens=10))


@pytest.mark.parametrize(
    "fields,param",
    [
        (dict(logprobs=0), "logprobs"),
        (dict(stream_options=dict(include_usage=1)), "stream_options"),
        (dict(stream_options=dict(include_obfuscation=False)), "stream_options"),
        (dict(stream=False, stream_options=dict(include_usage=True)), "stream_options"),
        (dict(stream=1), "stream"),
        (dict(prompt="w3 " * 97), "prompt"),
        (dict(model="other"), "model"),
    ],
)
def test_a_stream_that_cannot_be_is_refused_before_it_begins(url, fields, param):
    status, reply = post(url, GOOD | dict(stream=True) | fields)
    assert status in (400, 404) and reply["error"]["param"] == param


class Stepwise:
    "Stands for `decode_batch` in the server: every step waits until it is let go; counts the steps."

    def __init__(self):
        self.real, self.free, self.steps, self.calls = server.decode_batch, threading.Semaphore(0), 0, 0

    def __call__(self, model, ids_of, settings, keys, stopping):
        self.calls += 1
        (criterion,) = stopping

        def step(*values, **options):
            assert self.free.acquire(timeout=60)
            self.steps += 1
            return criterion(*values, **options)

        return self.real(model, ids_of, settings, keys, [step])


@pytest.fixture
def stepwise(model, monkeypatch):
    lines = []
    stepped = Stepwise()
    monkeypatch.setattr(server, "decode_batch", stepped)
    with running_server(model, "tiny", log=lines.append) as address:
        yield address, stepped, lines
        stepped.free.release(1000)


def until(true):
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


LONG = dict(max_tokens=60, seed=4)


def test_pieces_come_while_the_text_is_written(stepwise):
    url, stepped, _ = stepwise
    with open_stream(url, True, **LONG) as reply:
        coming = events(reply)
        assert json.loads(next(coming))["choices"][0]["delta"]["role"] == "assistant"
        stepped.free.release(3)
        assert piece(json.loads(next(coming))["choices"][0]) and stepped.steps <= 3
        stepped.free.release(1000)
        assert list(coming)[-1] == "[DONE]" and stepped.steps > 3


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_at_work_frees_the_queue(stepwise, stream):
    url, stepped, lines = stepwise
    leaving = raw_post(url, GOOD | LONG | dict(stream=stream))
    stepped.free.release(3)
    until(lambda: stepped.steps == 3)
    leaving.close()
    stepped.free.release(1000)
    until(lambda: any("broken" in line for line in lines))
    assert stepped.steps < 10 and texts(ask(url, max_tokens=3, temperature=0))


def raw_post(url, body, missing=0):
    "An open connection that has sent a request, without its last bytes, and hardly takes a reply."
    address, body = urlsplit(url), json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    connection.connect((address.hostname, address.port))
    connection.sendall(head.encode() + body[: len(body) - missing])
    return connection


def test_a_client_that_leaves_the_queue_is_not_written_for(stepwise):
    url, stepped, lines = stepwise
    with open_stream(url, True, **LONG) as first, ThreadPoolExecutor(1) as pool:
        until(lambda: stepped.calls == 1)
        raw_post(url, GOOD).close()
        until(lambda: any("broken" in line for line in lines))
        third = pool.submit(ask, url, max_tokens=3, temperature=0)
        stepped.free.release(1000)
        assert texts(third.result()) and list(events(first))[-1] == "[DONE]" and stepped.calls == 2


def test_an_error_inside_a_stream_ends_it_without_done(model, monkeypatch):
    real, arrived = server.decode_batch, threading.Event()

    def broken(*args):
        real(*args)
        arrived.wait(60)
        raise RuntimeError("secret")

    monkeypatch.setattr(server, "decode_batch", broken)
    with running_server(model, "tiny") as url, open_stream(url, max_tokens=5) as reply:
        stream = events(reply)
        assert json.loads(next(stream))["choices"]
        arrived.set()
        *_, last = stream
    assert json.loads(last)["error"]["message"] == "internal error: RuntimeError"


def test_memory_that_ends_in_the_middle_does_not_repeat_a_piece(url, model, monkeypatch):
    whole, real = texts(ask(url, n=4, seed=3, max_tokens=12)), server.decode_batch

    def twice(model, ids_of, settings, keys, stopping):
        found = real(model, ids_of, settings, keys, stopping)
        if len(keys[0]) > 1:
            raise MemoryError
        return found

    monkeypatch.setattr(server, "decode_batch", twice)
    monkeypatch.setattr(server, "halve_when_out_of_memory", halved)
    assert [text for text, _ in joined(streamed(url, n=4, seed=3, max_tokens=12), 4)] == whole


def halved(run, rows):
    "As after an error of a GPU, which a test cannot have."
    try:
        return run(rows)
    except MemoryError:
        middle = len(rows) // 2
        return halved(run, rows[:middle]) + halved(run, rows[middle:])


def test_a_piece_waits_for_what_a_later_token_may_change():
    shown = ["naïve", "naïve \ufffd", "naïve € it is", "naïve € it is n'", "naïve € it isn't"]
    sent = []
    pieces = server._Pieces(lambda i, text: sent.append(text))
    for text in shown:
        pieces.see(0, text)
    pieces.end(0, shown[-1])
    assert sent == ["na", "ï", "ve € it", " is", "", "n't"] and "".join(sent) == shown[-1]


def test_a_slow_reader_of_a_stream_stops_nobody(url):
    with raw_post(url, GOOD | dict(stream=True, n=128, max_tokens=60, seed=1)):
        assert texts(ask(url, max_tokens=3, temperature=0))


def test_who_stops_in_the_middle_of_a_request_or_a_reply_is_cut_and_stops_nobody(model):
    lines, name = [], "tiny" * 300  # In every chunk of the stream: too much for the buffers on the way
    with running_server(model, name, log=lines.append, patience=2) as url, ThreadPoolExecutor(20) as pool:
        reader = raw_post(url, GOOD | dict(model=name, stream=True, n=128, max_tokens=60, seed=1))
        sender = raw_post(url, GOOD, missing=5)
        others = [pool.submit(ask, url, model=name, max_tokens=3, temperature=0) for _ in range(20)]
        assert len({tuple(texts(other.result())) for other in others}) == 1
        until(lambda: "a client was disconnected: too slow" in lines and "POST /v1/completions 408" in lines)
        assert b"did not arrive within 2 s" in sender.makefile("rb").read()
        assert b"[DONE]" not in until_broken(reader)


def until_broken(connection):
    "What a connection still brings, up to its end or its reset."
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(2**16):
            got += part
    return got


# (e) Bad requests

BAD = [
    ("/completions", GOOD | {field: value}, field)
    for field, values in dict(
        n=[0, -1, 129, 1.5, "2", True, [1]],
        max_tokens=[-1, "many", 0, 2.0],
        max_completion_tokens=[-3, 0],
        temperature=[-1, 0.001, 2.5, "hot", True],
        top_p=[0, 1.1, "1"],
        top_k=[-1, 2.5],
        seed=["x", 1.5, 2**70],
        logprobs=[True, -1, 21],
        echo=["yes", 1],
        model=[7],
        prompt=[
            5,
            "",
            [],
            [[]],
            ["w3", 3],
            [3, "w3"],
            [[3], "w3"],
            [True],
            [3.5],
            [-1],
            [60],
            ["w3", ""],
            [[3], [60]],
        ],
        stream=[1],
        stream_options=[dict(include_usage=True), 1],
        stop=["", [""], 4, [4], "x" * 257, ["x" * 257], ["w4"] * 17],
        response_format=[dict(type="json_object")],
        tools=[[]],
        frequency_penalty=[0.5],
        suffix=["w"],
        messages=[TALK["messages"]],
        top_logprobs=[1],
        surprise=[1],
    ).items()
    for value in values
]
BAD += [
    ("/chat/completions", TALK | {field: value}, field)
    for field, values in dict(
        logprobs=[1, "yes"],
        top_logprobs=[3, 21, True],
        echo=[True],
        prompt=["w3"],
        messages=[
            [],
            "w3",
            [3],
            [dict(role="user")],
            [dict(role="user", content=None)],
            [dict(role="robot", content="w3")],
            [dict(role="user", content=[])],
            [dict(role="user", content=["w3"])],
            [dict(role="user", content=[dict(type="text")])],
            [dict(role="user", content=[dict(type="text", text=3)])],
            [dict(role="user", content=[dict(type="text", text="w3", x=1)])],
            [dict(role="user", content=[dict(text="w3")])],
            [dict(role="user", content=[dict(type="image_url", image_url=dict(url="w3"))])],
            [dict(role="user", content="w3", name="x")],
        ],
    ).items()
    for value in values
]
BAD += [
    (path, {field: value for field, value in good.items() if field != lack}, lack)
    for path, good in (("/completions", GOOD), ("/chat/completions", TALK))
    for lack in good
    if lack != "max_tokens"
]


@pytest.mark.parametrize("path,body,field", BAD, ids=[f"{i}-{field}" for i, (*_, field) in enumerate(BAD)])
def test_every_bad_field_is_named(url, path, body, field):
    status, reply = post(url, body, path)
    assert (
        status == 400
        and reply["error"]["param"] == field
        and field in reply["error"]["message"]
        and reply["error"]["type"] == "invalid_request_error"
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null x",
        b"\xff\xfe",
        b'{"model": "tiny", "prompt": "w3", "temperature": NaN}',
        b'{"model": "tiny", "prompt": "\\ud800"}',
        b"[" * 100_000,
        b'{"seed": ' + b"9" * 5000 + b"}",
    ],
    ids=range(8),
)
def test_a_body_that_is_not_json_is_said_to_be_so(url, raw):
    status, reply = post(url, raw)
    assert status == 400 and "not JSON" in reply["error"]["message"] and reply["error"]["param"] is None


@pytest.mark.parametrize("raw", [b"[]", b"3", b"null", b'"w3"'])
def test_a_body_that_is_no_object(url, raw):
    assert post(url, raw) == (
        400,
        dict(
            error=dict(
                message="a request is a JSON object", type="invalid_request_error", param=None, code=None
            )
        ),
    )


def test_values_that_ask_for_nothing_are_no_error(url):
    idle = dict(
        stream=False,
        stop=None,
        frequency_penalty=0,
        presence_penalty=0.0,
        tools=None,
        seed=1,
        n=None,
        temperature=None,
    )
    assert texts(ask(url, max_tokens=6, **idle)) == texts(ask(url, max_tokens=6, seed=1))


def test_a_wrong_model_is_not_found(url):
    status, reply = post(url, GOOD | dict(model="gpt-4"))
    assert (status, reply["error"]["param"], reply["error"]["code"]) == (
        404,
        "model",
        "model_not_found",
    ) and "'tiny'" in reply["error"]["message"]
    with (
        ReplyCache(":memory:") as replies,
        pytest.raises(EndpointError, match="HTTP 404.*1 attempt|1 attempt.*HTTP 404"),
    ):
        endpoint.generate_remotely(Endpoint(url, "gpt-4"), FEW[:1], SETTINGS, replies)


def repeated(words):
    return " ".join(["w3"] * words)


def test_a_prompt_that_is_too_long_says_how_many_tokens_fit(url):
    def long_prompt(words, **fields):
        return post(url, GOOD | dict(prompt=repeated(words)) | fields)

    assert (
        long_prompt(90, max_tokens=6)[0] == 200
        and long_prompt(96, max_tokens=0, echo=True, logprobs=0)[0] == 200
    )
    for status, reply in (long_prompt(91, max_tokens=6), long_prompt(91, max_completion_tokens=6)):
        error = reply["error"]
        assert (status, error["param"], error["code"]) == (400, "prompt", "context_length_exceeded")
        assert "has 91 tokens, but 90 fit" in error["message"]
    for words, fields, says in (
        (97, dict(max_tokens=0, echo=True), "has 97 tokens, but 96 fit"),
        (1, dict(max_tokens=96), "has 1 tokens, but 0 fit"),
        (1, dict(max_tokens=2**31), "has 1 tokens, but 0 fit"),
    ):
        assert says in long_prompt(words, **fields)[1]["error"]["message"]
    talk = TALK | dict(messages=[dict(role="user", content=repeated(93))])
    status, reply = post(url, talk, "/chat/completions")
    assert status == 400 and reply["error"]["param"] == "messages"
    assert "has 95 tokens, but 94 fit" in reply["error"]["message"]


def test_without_a_length_the_text_fits_behind_its_prompt(url):
    def whole(words):
        return post(url, dict(model="tiny", prompt=repeated(words), echo=True, seed=1, logprobs=0))

    for words in (1, 50, 95):
        assert len(whole(words)[1]["choices"][0]["logprobs"]["tokens"]) <= 96
    assert post(url, dict(model="tiny", prompt=repeated(96)))[0] == 400


def test_an_encoder_decoder_has_room_for_prompt_and_text_each():
    with running_server(tiny("bart"), "tiny") as url:
        for words, new, status in ((96, 20, 200), (97, 20, 400), (4, 95, 200), (4, 96, 400)):
            assert post(url, GOOD | dict(prompt=" ".join(["w3"] * words), max_tokens=new))[0] == status, (
                words,
                new,
            )


def test_messages_need_a_chat_template_that_takes_them(url):
    with running_server(tiny("llama"), "tiny") as plain:
        status, reply = post(plain, TALK, "/chat/completions")
    assert (
        status == 400
        and reply["error"]["param"] == "messages"
        and "no chat template" in reply["error"]["message"]
        and "/v1/completions" in reply["error"]["message"]
    )
    model = tiny("llama", chat=True)
    model.tokenizer.chat_template = "{{ raise_exception('no system message, please') }}"
    with running_server(model, "tiny") as picky:
        status, reply = post(picky, TALK, "/chat/completions")
    assert status == 400 and "no system message, please" in reply["error"]["message"]


@pytest.mark.parametrize(
    "method,path,status",
    [
        ("GET", "/nothing", 404),
        ("POST", "/embeddings", 404),
        ("POST", "/models", 405),
        ("GET", "/completions", 405),
        ("PUT", "/completions", 501),
        ("DELETE", "/models", 501),
    ],
)
def test_other_paths_and_methods_are_json_errors(url, method, path, status):
    got, reply = post(url, b"{}", path, method)
    assert got == status and reply["error"]["message"]


def raw_reply(url, text):  # Status and body of what is sent as it is
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        return reply.status, json.loads(reply.read())


@pytest.mark.parametrize(
    "head,status",
    [
        (b"", 411),
        (b"Content-Length: -5\r\n", 411),
        (b"Content-Length: x\r\n", 411),
        (b"Content-Length: 99999999999\r\n", 413),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n", 411),
        (b"Content-Length: 50\r\n", 400),
    ],
)
def test_lengths_that_lie(url, head, status):
    assert (
        raw_reply(url, b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n" + head + b'\r\n{"model"')[0] == status
    )


def test_a_header_without_end(url):
    assert raw_reply(url, b"GET /v1/models HTTP/1.1\r\nX: " + b"x" * 66_000 + b"\r\n\r\n")[0] == 431


def test_errors_inside_are_told_without_a_traceback_or_a_text(model, monkeypatch):
    lines, real = [], server.decode_batch
    with running_server(model, "tiny", log=lines.append) as url:
        good = ask(url, temperature=0)
        for error in (
            RuntimeError("secret w3"),
            MemoryError("secret"),
            KeyError("secret"),
            SystemError("secret"),
        ):

            def broken(*args, error=error):
                raise error

            monkeypatch.setattr(server, "decode_batch", broken)
            assert post(url, GOOD) == (
                500,
                dict(
                    error=dict(
                        message=f"internal error: {type(error).__name__}",
                        type="server_error",
                        param=None,
                        code=None,
                    )
                ),
            )
        monkeypatch.setattr(server, "decode_batch", real)
        assert ask(url, temperature=0) == good
    assert [line for line in lines if line.startswith("POST")] == ["POST /v1/completions 200"] + [
        "POST /v1/completions 500"
    ] * 4 + ["POST /v1/completions 200"]
    assert (
        "in broken" in lines[1]
        and "secret" not in "".join(lines)
        and "w3" not in "".join(lines)
        and PROMPT not in "".join(lines)
    )


def test_a_number_that_is_none_is_an_error_inside_and_not_broken_json(model, monkeypatch):
    monkeypatch.setattr(server, "_logprobs", lambda *args: [[(8, float("nan"), [])]])
    with running_server(model, "tiny") as url:
        assert post(url, GOOD | dict(logprobs=0))[0] == 500


def test_a_client_that_hangs_up_disturbs_nobody(url, capfd):
    address = urlsplit(url)
    for text in (b"", b"POST /v1/compl", b"POST /v1/completions HTTP/1.1\r\nContent-Length: 500\r\n\r\n{"):
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(text)
            connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0"
            )  # Reset instead of a goodbye
    assert texts(ask(url, temperature=0, max_tokens=3)) and capfd.readouterr() == ("", "")


def test_an_encoder_cannot_serve():
    model = tiny("llama")
    model.kind = "encoder"
    with pytest.raises(ValueError, match="of kind 'encoder': it cannot write"), running_server(model):
        pass


# (f) and (g) Banks, company


@pytest.mark.parametrize("fields", [dict(), dict(per_call=1), dict(chat=False, logprobs=True)])
def test_a_bank_made_twice_is_the_same_to_the_byte(url, model, tmp_path, fields):
    one, two = (
        files(
            endpoint.fill_endpoint_bank(
                tmp_path / name,
                "d",
                "g",
                FEW,
                Endpoint(url, "tiny", **fields),
                SETTINGS,
                tmp_path / f"{name}.sqlite",
                size=2,
                progress=False,
            )
        )
        for name in "ab"
    )
    assert one == two and len(one) == 4
    bank = read_bank(tmp_path / "a")
    assert bank.groupby("kind").size().to_dict() == dict(greedy=6, sample=18) and bank["text"].nunique() > 15
    at_home = {
        row["sample"]: row["text"]
        for row in generate_texts(model if fields.get("chat", True) else tiny("llama"), FEW, SETTINGS)
        if row["kind"] == "greedy"
    }
    assert dict(bank[bank["kind"] == "greedy"][["sample", "text"]].to_numpy()) == at_home


def test_eight_at_once_are_each_answered_right(url):
    bodies = [
        dict(prompt=f"w{i} w3", n=2, seed=i, max_tokens=10, logprobs=0)
        if i % 2
        else dict(chat=True, seed=i, max_tokens=10)
        for i in range(8)
    ]
    alone = [ask(url, **body) for body in bodies]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda body: ask(url, **body), bodies * 3))
    assert together == alone * 3 and len({canonical_json(reply["choices"]) for reply in alone}) == 8


def test_one_at_a_time_meets_the_model(model, monkeypatch):
    inside, most, real = [], [], server.decode_batch

    def counted(*args):
        inside.append(1)
        most.append(len(inside))
        try:
            return real(*args)
        finally:
            inside.pop()

    monkeypatch.setattr(server, "decode_batch", counted)
    with running_server(model, "tiny") as url, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: ask(url, seed=i, max_tokens=10), range(8)))
    assert most == [1] * 8


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_model_has_a_name_and_the_door_is_closed_behind(model, tmp_path):
    served = tiny("llama")
    served.id = str(tmp_path / "models" / "my-llama")
    with running_server(served) as url:
        assert [listed["id"] for listed in json.load(urllib.request.urlopen(url + "/models"))["data"]] == [
            "my-llama"
        ]
    with pytest.raises(urllib.error.URLError):
        post(url, GOOD)
    served.id, served.revision = "org/my-llama", "abc"
    with running_server(served) as url:
        assert [listed["id"] for listed in json.load(urllib.request.urlopen(url + "/models"))["data"]] == [
            "org/my-llama"
        ]
    assert url.startswith("http://127.0.0.1:") and url.endswith("/v1")


def requested(url, headers, body=None):  # Status and message
    message = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(message, timeout=60) as reply:
            return reply.status, ""
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)["error"]["message"]


@pytest.mark.parametrize(
    "headers,status",
    [
        (dict(Host="evil.example"), 400),
        (dict(Host="127.0.0.1.evil.example:80"), 400),
        (dict(Origin="http://evil.example"), 403),
        (dict(Origin="null"), 403),
        (dict(Origin="http://[::1"), 403),
        (dict(Origin="http://localhost:3000"), 403),  # A page of another port of this machine
        (dict(Origin="http://localhost:3000", Host="localhost:3001"), 403),
        (dict(Origin="http://localhost:3000", Host="localhost:3000"), 200),
        (dict(Origin=""), 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "Cross-Site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"}, 403),
        (dict(Host="localhost"), 200),
        (dict(Host="[::1]:8000"), 200),
    ],
)
def test_pages_of_other_sites_are_refused(url, headers, status):
    assert requested(url + "/models", headers)[0] == status
    assert requested(url + "/completions", headers, json.dumps(GOOD).encode())[0] == status


@pytest.mark.parametrize(
    "part", [b"GET /v1/mod", b"GET /v1/models HTTP/1.1\r\nX-", b"POST /v1/completions HTTP/1.1\r\n"]
)
def test_a_slow_client_is_cut(model, part):
    with (
        running_server(model, "tiny", patience=0.6) as url,
        socket.create_connection(urlsplit(url)[1].split(":")) as slow,
    ):
        letters, cut = 98, False  # Fewer than a request of 99 needs
        slow.sendall(part + b"Content-Length: 99\r\n\r\n" * part.startswith(b"POST"))
        slow.settimeout(0.1)
        while not cut and letters:
            letters -= 1
            try:
                slow.sendall(b"x")  # A letter now and then does not keep it alive
                cut = b"408" in (reply := slow.recv(4096)) or not reply
            except TimeoutError:
                pass
            except OSError:
                cut = True
        assert cut
        assert ask(url, temperature=0, max_tokens=2)


def test_huge_prompts_and_many_texts_are_refused_unread(url, model, monkeypatch):
    tokenized, encode_prompt = [], server.encode_prompt
    monkeypatch.setattr(server, "encode_prompt", lambda *args: tokenized.append(1) or encode_prompt(*args))
    status, reply = post(url, GOOD | dict(prompt="w3 " * 100_000))
    assert status == 413 and "a request may have" in reply["error"]["message"]
    status, reply = post(url, GOOD | dict(prompt="w3 " * 3000))
    assert (status, reply["error"]["code"]) == (400, "context_length_exceeded")
    assert "has 9000 letters, but 6144 could fit" in reply["error"]["message"]
    talk = [dict(role="user", content="w3 " * 1500)] * 2
    assert post(url, TALK | dict(messages=talk), "/chat/completions")[0] == 400
    assert not tokenized
    status, reply = post(url, GOOD | dict(n=128, prompt=repeated(60), max_tokens=90 - 60))
    assert status == 200 and len(tokenized) == 1


def test_texts_are_bounded_by_their_tokens(monkeypatch, url):
    monkeypatch.setattr(server, "MOST_TOKENS", 100)
    assert post(url, GOOD | dict(n=10, max_tokens=9))[0] == 200
    status, reply = post(url, GOOD | dict(n=11, max_tokens=9))
    assert (status, reply["error"]["param"]) == (400, "n")
    assert "are 110 tokens" in reply["error"]["message"] and "ask for 10 texts" in reply["error"]["message"]


def test_turns_come_in_order_and_are_left_after_an_error():
    line, order = server._WaitingLine(most=3), []

    def wait(i):
        with line.turn():
            order.append(i)

    with pytest.raises(KeyError), line.turn():
        raise KeyError
    assert not line.waiting
    with line.turn():
        threads = [threading.Thread(target=wait, args=(i,), daemon=True) for i in range(3)]
        for i, thread in enumerate(threads):
            thread.start()
            while len(line.waiting) < i + 2:
                time.sleep(0.001)
        with pytest.raises(server._BadRequest, match="3 requests are waiting") as error, line.turn():
            pass
        assert error.value.status == 503 and len(line.waiting) == 4
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2] and not line.waiting


def test_too_many_clients_are_turned_away(model, monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTED", 2)
    lines = []
    with running_server(model, "tiny", log=lines.append) as url:
        address = urlsplit(url)[1].split(":")
        with socket.create_connection(address), socket.create_connection(address):
            time.sleep(0.2)
            with pytest.raises(OSError):
                post(url, GOOD)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                assert post(url, GOOD)[0] == 200
                break
            except OSError:
                time.sleep(0.05)
        assert lines[-1].endswith("200") and "a client was turned away: too many are connected" in lines


FROM_FOLDER = """
import signal, sys
# A shell that starts jobs in the background has it ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
from uetrust.generation.serve import serve
serve(sys.argv[1], port=0)
"""


def test_from_a_folder_until_interrupted(tmp_path, model):
    model.model.save_pretrained(tmp_path / "tiny")
    model.tokenizer.save_pretrained(tmp_path / "tiny")
    with subprocess.Popen(
        [sys.executable, "-c", FROM_FOLDER, str(tmp_path / "tiny")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as run:
        try:
            got = texts(ask(run.stdout.readline().strip(), temperature=0, max_tokens=6))
            run.send_signal(signal.SIGINT)
            assert (
                run.wait(60) == 0
                and run.communicate() == ("", "")
                and got == [greedy(model, encode_prompt(model, PROMPT), 6)]
            )
        finally:
            run.kill()
