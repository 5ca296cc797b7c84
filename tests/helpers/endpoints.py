"""A server of texts that fails as it is told, and an endpoint that asks it."""

import json
import random
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd

from uetrust.core.store import value_digest
from uetrust.generation.decoding import Decoding
from uetrust.generation.endpoint import Endpoint

SAMPLES = pd.DataFrame(
    dict(
        id=[f"s{i}" for i in range(8)],
        source=[f"Bulletin {i}: the mayor opened bridge number {i}." for i in range(8)],
    )
)
SETTINGS = Decoding(samples=3, max_new_tokens=20)
WORDS = "a the mayor bridge opened closed on monday friday".split()


def written(asked, i):
    "Text i of a request: words drawn by the request itself, as a seeded server would"
    rng = random.Random(value_digest([asked, i if asked["temperature"] else 0]))
    return [rng.choice(WORDS) for _ in range(rng.randint(2, 6))]


def choice(asked, i, chat):
    words = written(asked, i)
    logps, text = [-(j + 1) / 8 for j in range(len(words))], " ".join(words)
    content = [dict(token=word, logprob=logp) for word, logp in zip(words, logps)]
    logprobs = dict(content=content) if chat else dict(tokens=words, token_logprobs=logps)
    reply = dict(message=dict(role="assistant", content=text)) if chat else dict(text=text)
    return dict(index=i, finish_reason="stop", logprobs=logprobs if asked.get("logprobs") else None) | reply


def completion(asked, chat):
    choices = [choice(asked, i, chat) for i in range(asked["n"])]
    length = sum(len(written(asked, i)) for i in range(asked["n"]))
    return dict(choices=choices[::-1], usage=dict(prompt_tokens=30, completion_tokens=length))


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def say(self, code, body, headers=(), length=None):
        self.send_response(code)
        for name, value in dict(headers, **{"Content-Length": str(length or len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.say(200, b"{}")

    def do_POST(self):
        asked, log = json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self.server.log
        with self.server.lock:
            log["seen"].append(asked)
            log["at"].append(time.monotonic())
            log["keys"].append(self.headers.get("Authorization"))
            log["idempotency"].append(self.headers.get("Idempotency-Key"))
            fault = self.server.faults.pop(0) if self.server.faults else "ok"
        time.sleep(self.server.slow)
        good = json.dumps(completion(asked, "messages" in asked)).encode()
        if fault == "drop":
            return self.connection.close()
        if fault == "cut":
            return self.say(200, good[:40], length=len(good))
        if fault == "hang":
            return log["waited for"].append(self.server.end.wait(60))
        if fault != "ok":
            return self.say(fault[0], fault[2].encode(), fault[1])
        with self.server.lock:
            log["served"].append(asked)
        self.say(200, good)


@contextmanager
def server(faults=(), slow=0):
    "Answers like a model; the first requests meet `faults`: (status, headers, body), drop, cut, hang or ok"
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.log, http.faults, http.slow = (
        {name: [] for name in ("served", "seen", "at", "keys", "idempotency", "waited for")},
        list(faults),
        slow,
    )
    http.lock, http.daemon_threads, http.end = threading.Lock(), True, threading.Event()
    threading.Thread(target=http.serve_forever, kwargs=dict(poll_interval=0.01), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/v1", http.log
    finally:
        http.end.set()
        http.shutdown()
        http.server_close()


def endpoint(url, **options):
    return Endpoint(url, "toy", **(dict(backoff=0.01, timeout=10, concurrency=4) | options))


# Faults
FAULTS = [
    (429, {"Retry-After": "0"}, "slow down"),
    (500, {}, "oops"),
    (503, {}, ""),
    (408, {}, ""),
    (200, {}, '{"choices": ['),
    (200, {}, '{"error": "busy"}'),
    (200, {}, "[]"),
    (200, {}, '{"choices": []}'),
    (200, {}, '{"choices": [{"message": "x"}]}'),
    "drop",
    "cut",
]
