"""Requests to a running server, as a client sends them, and what comes back."""

import json
import urllib.error
import urllib.request

PROMPT = "w3 w9 w20 w4"
GOOD = dict(model="tiny", prompt="w3", max_tokens=2)
TALK = dict(model="tiny", messages=[dict(role="user", content="w3")], max_tokens=2)


def post(url, body, path="/completions", method="POST"):
    "Status and parsed reply; `body` as it is when bytes, else as JSON"
    message = urllib.request.Request(
        url + path,
        body if isinstance(body, bytes) else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(message, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def ask(url, chat=False, **fields):
    status, reply = post(
        url,
        dict(model="tiny")
        | (dict(messages=[dict(role="user", content=PROMPT)]) if chat else dict(prompt=PROMPT))
        | fields,
        "/chat/completions" if chat else "/completions",
    )
    assert status == 200, reply
    return reply


def texts(reply):
    return [
        choice["message"]["content"] if "message" in choice else choice["text"] for choice in reply["choices"]
    ]


def events(reply):
    "Data of the server-sent events of an open reply, as they come."
    for line in reply:
        if line.strip():
            assert line.startswith(b"data: "), line
            yield line[len("data: ") :].strip().decode()


def open_stream(url, chat=False, **fields):
    body = dict(messages=[dict(role="user", content=PROMPT)]) if chat else dict(prompt=PROMPT)
    path = "/chat/completions" if chat else "/completions"
    body = json.dumps(dict(model="tiny", stream=True) | body | fields).encode()
    return urllib.request.urlopen(
        urllib.request.Request(url + path, body, {"Content-Type": "application/json"}), timeout=60
    )


def streamed(url, chat=False, **fields):
    "Chunks of a stream that ends as it must."
    with open_stream(url, chat, **fields) as reply:
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        *chunks, last = events(reply)
    assert last == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


def piece(choice):
    return choice["delta"].get("content", "") if "delta" in choice else choice["text"]


def joined(chunks, n=1):
    "Text and reason of the end of each choice."
    found = [choice for chunk in chunks for choice in chunk["choices"]]
    texts = ["".join(piece(choice) for choice in found if choice["index"] == i) for i in range(n)]
    whys = [[c["finish_reason"] for c in found if c["index"] == i and c["finish_reason"]] for i in range(n)]
    return [(text, *why) for text, why in zip(texts, whys)]
