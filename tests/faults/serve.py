"""Servers that are asked for too much, by strangers, or at an impossible address: `uetrust serve`."""

import http.client
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults.harness import fault

LLAMA = Path(__file__).parents[2] / "data" / "models" / "tiny-llama"
GOOD = dict(model="tiny-llama", prompt="The council", max_tokens=3, temperature=0)


def address(folder, seconds=60):
    "Host and port that the command has printed."
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        printed = Path(f"{folder}.out")
        if printed.exists() and (found := re.search(r"http://(.*):(\d+)/v1", printed.read_text())):
            return found[1], int(found[2])
        time.sleep(0.05)
    raise TimeoutError(Path(f"{folder}.err").read_text())


def post(folder, fields=(), headers=(), body=None):
    "Status and message of one request."
    _, port = address(folder)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = body or json.dumps(GOOD | dict(fields)).encode()
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json", **dict(headers)})
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read()).get("error", {}).get("message", "")


def serve(folder, *options):
    return ["serve", LLAMA, "--port", "0", *options]


def refused(status, text, **request):
    "What a client sees: the request is refused, and the next one is answered."

    def meanwhile(folder):
        post(folder)
        found, message = post(folder, **request)
        assert (found, text in message) == (status, True), (found, message)
        assert post(folder)[0] == 200

    return meanwhile


def answered_as(folder, headers):
    assert post(folder, headers=headers)[0] == 200


def many_huge_prompts(folder):
    "While 20 clients send 16 MB each, others are answered."
    post(folder)
    body = json.dumps(GOOD | dict(prompt="a " * 2**22)).encode()
    threads = [threading.Thread(target=post, args=(folder, (), (), body), daemon=True) for _ in range(20)]
    for thread in threads:
        thread.start()
    assert post(folder)[0] == 200
    for thread in threads:
        thread.join(20)


def streamed(folder):
    "Events of a stream: pieces first, then [DONE]."
    _, port = address(folder)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps(GOOD | dict(max_tokens=20, stream=True)).encode()
    connection.request("POST", "/v1/completions", body)
    *pieces, done = connection.getresponse().read().decode().strip().split("\n\n")
    assert len(pieces) > 3 and done == "data: [DONE]"
    assert all(json.loads(piece.removeprefix("data: "))["choices"] for piece in pieces)


def streams_that_are_left(folder):
    "20 clients ask for long streams and leave; the next one is answered, and nobody gets their texts."
    post(folder)
    for _ in range(20):
        sent_request(folder, max_tokens=200, temperature=1, stream=True).close()
    assert post(folder)[0] == 200


def sent_request(folder, missing=0, **fields):
    "An open connection with a request, without its last bytes, that takes hardly anything of a reply."
    _, port = address(folder)
    body = json.dumps(GOOD | fields).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    connection.connect(("127.0.0.1", port))
    connection.sendall(head.encode() + body[: len(body) - missing])
    return connection


OPEN = []  # Connections, open until the tests end: a client that leaves ends its text


NAME = "n" * 250  # Stands in every chunk of a stream: too much for the buffers on the way


def clients_that_stop_halfway(folder):
    "Four clients stop in the middle of a request, two read nothing of a stream; 20 others are answered."
    post(folder, dict(model=NAME))
    long = dict(model=NAME, stream=True, n=128, max_tokens=60, temperature=1)
    OPEN.extend(sent_request(folder, missing=5) for _ in range(4))
    OPEN.extend(sent_request(folder, **long) for _ in range(2))
    with ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(post, folder, dict(model=NAME)) for _ in range(20)]
        assert [answer.result()[0] for answer in answers] == [200] * 20


def interrupted_at_work(folder):
    OPEN.append(sent_request(folder, max_tokens=200, n=8, temperature=1))
    time.sleep(0.1)


SEEN = dict(
    answered=lambda folder: post(folder),
    huge_prompt=refused(413, "a request may have", body=b"x" * 2**24),
    long_prompt=refused(400, "could fit", fields=dict(prompt="a" * 2**17)),
    many_texts=refused(400, "ask for", fields=dict(n=128, max_tokens=200)),
    many_prompts=refused(400, "may have 128", fields=dict(prompt=["The"] * 129)),
    many_tokens=refused(400, "send fewer at a time", fields=dict(prompt=["a " * 200] * 128)),
    unknown_token=refused(400, "token id 900", fields=dict(prompt=[[1], [900]])),
    endless_stop=refused(400, "1 to 256 letters", fields=dict(stop="a" * 10_000)),
    foreign_host=refused(400, "foreign", headers=dict(Host="evil.example")),
    foreign_origin=refused(403, "other sites", headers=dict(Origin="http://evil.example")),
    page_of_another_port=refused(403, "other ports", headers=dict(Origin="http://127.0.0.1:9")),
    page_without_a_name=refused(403, "other ports", headers=dict(Origin="null")),
    cross_site=refused(403, "other ports", headers={"Sec-Fetch-Site": "cross-site"}),
    same_site=refused(403, "other ports", headers={"Sec-Fetch-Site": "same-site"}),
    same_origin=lambda folder: answered_as(folder, {"Sec-Fetch-Site": "same-origin"}),
    typed_by_hand=lambda folder: answered_as(folder, {"Sec-Fetch-Site": "none"}),
    huge_prompts_of_many=many_huge_prompts,
    streamed=streamed,
    streams_that_are_left=streams_that_are_left,
    stream_with_logprobs=refused(400, "logprobs", fields=dict(stream=True, logprobs=1)),
    interrupted=interrupted_at_work,
)


def quiet(folder, outcome):
    assert outcome.err == "" and "Traceback" not in outcome.out


def serving(folder, _):
    return serve(folder)


for name, seen in SEEN.items():
    fault("right", meanwhile=seen, check=quiet, limit=60, cases={name: None})(serving)


@fault("right", meanwhile=clients_that_stop_halfway, check=quiet, limit=60)
def many_stop_halfway(folder):
    (folder / NAME).symlink_to(LLAMA)
    return ["serve", folder / NAME, "--port", "0"]


def warned(folder, outcome):
    assert "warning: 0.0.0.0 can be reached from other machines" in outcome.err


@fault("right", meanwhile=SEEN["answered"], check=warned, limit=60)
def open_to_all(folder):
    return serve(folder, "--host", "0.0.0.0")


@fault("error", "--port", cases=dict(large=99999, negative=-1))
def impossible_port(folder, port):
    return serve(folder, f"--port={port}")


TAKEN = socket.socket()


@fault("error", "cannot listen at 127.0.0.1", "in use")
def port_in_use(folder):
    if TAKEN.getsockname()[1] == 0:
        TAKEN.bind(("127.0.0.1", 0))
        TAKEN.listen()
    return serve(folder, "--port", TAKEN.getsockname()[1])


@fault(
    "error",
    "cannot listen at",
    "--host",
    cases=dict(nobody="nowhere.invalid", words="a b", other="203.0.113.7"),
)
def impossible_host(folder, host):
    return serve(folder, "--host", host)


@fault("error", "nothing")
def no_checkpoint(folder):
    return ["serve", "./nothing"]


@fault("error", "ID@COMMIT", cases=dict(commit="org/name@", id="@0a1b2c"))
def a_pin_without_its(folder, name):
    return ["serve", name]
