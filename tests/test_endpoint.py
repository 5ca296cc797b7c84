"""Endpoints: whatever the server does, every text is asked and paid once, the budget holds, and the key stays where it was."""

import json
import logging
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.store import digest
from uetrust.generation.bank import read_bank
from uetrust.generation.decoding import HE2024, Decoding
from uetrust.generation.endpoint import (
    BudgetReached,
    Cache,
    Endpoint,
    EndpointError,
    about,
    api_key,
    ask,
    estimate,
    fill,
    generate,
    pause,
    plan,
    retry_after,
)

SAMPLES = pd.DataFrame(
    dict(
        id=[f"s{i}" for i in range(8)],
        source=[f"Bulletin {i}: the mayor opened bridge number {i}." for i in range(8)],
    )
)
S = Decoding(samples=3, max_new_tokens=20)
KEY = "sk-very-secret-0123456789"
WORDS = "a the mayor bridge opened closed on monday friday".split()


def written(q, i):
    "Text i of a request: words drawn by the request itself, as a seeded server would"
    r = random.Random(digest([q, i if q["temperature"] else 0]))
    return [r.choice(WORDS) for _ in range(r.randint(2, 6))]


def completion(q, chat):
    out = []
    for i in range(q["n"]):
        w = written(q, i)
        lp = [-(j + 1) / 8 for j in range(len(w))]
        probs = (
            (
                dict(content=[dict(token=t, logprob=p) for t, p in zip(w, lp)])
                if chat
                else dict(tokens=w, token_logprobs=lp)
            )
            if q.get("logprobs")
            else None
        )
        out.append(
            dict(index=i, finish_reason="stop", logprobs=probs)
            | (dict(message=dict(role="assistant", content=" ".join(w))) if chat else dict(text=" ".join(w)))
        )
    return dict(
        choices=out[::-1],
        usage=dict(prompt_tokens=30, completion_tokens=sum(len(written(q, i)) for i in range(q["n"]))),
    )


@contextmanager
def server(faults=(), slow=0):
    "Answers like a model; the first requests meet `faults`: a status with headers and body, 'drop', 'cut', 'hang', or 'ok'"
    log, faults, lock = dict(served=[], seen=[], at=[], keys=[]), list(faults), threading.Lock()

    class H(BaseHTTPRequestHandler):
        def log_message(self, *a):
            pass

        def say(self, code, body, head=(), length=None):
            self.send_response(code)
            for k, v in dict(head, **{"Content-Length": str(length or len(body))}).items():
                self.send_header(k, v)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.say(200, b"{}")

        def do_POST(self):
            q = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                log["seen"].append(q)
                log["at"].append(time.monotonic())
                log["keys"].append(self.headers.get("Authorization"))
                f = faults.pop(0) if faults else "ok"
            time.sleep(slow)
            good = json.dumps(completion(q, "messages" in q)).encode()
            if f == "drop":
                return self.connection.close()
            if f == "cut":
                return self.say(200, good[:40], length=len(good))
            if f == "hang":
                return time.sleep(1)
            if f != "ok":
                return self.say(f[0], f[2].encode(), f[1])
            with lock:
                log["served"].append(q)
            self.say(200, good)

    s = ThreadingHTTPServer(("127.0.0.1", 0), H)
    s.daemon_threads = True
    threading.Thread(target=s.serve_forever, kwargs=dict(poll_interval=0.01), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{s.server_port}/v1", log
    finally:
        s.shutdown()
        s.server_close()


def endpoint(url, **kw):
    return Endpoint(url, "toy", **(dict(backoff=0.01, timeout=10, concurrency=4) | kw))


def files(folder):
    return {p.name: p.read_bytes() for p in Path(folder).iterdir() if not p.name.startswith(".")}


@pytest.fixture
def cache(tmp_path):
    with Cache(tmp_path / "replies.sqlite") as c:
        yield c


# Answers


@pytest.mark.parametrize("chat", [True, False])
def test_texts_and_logprobs_are_those_of_the_server(cache, chat):
    with server() as (url, log):
        rows = generate(endpoint(url, chat=chat, logprobs=True), SAMPLES, S, cache)
    assert len(rows) == 8 * 4 and len(log["seen"]) == 16
    by = {
        (q["prompt"] if not chat else q["messages"][0]["content"], q["temperature"]): q for q in log["seen"]
    }
    for r in rows:
        q = by[
            S.prompt.replace("{source}", SAMPLES.set_index("id").loc[r["sample"], "source"]),
            float(r["kind"] == "sample"),
        ]
        w = written(q, r["k"])
        assert (
            r["text"] == " ".join(w)
            and r["logprobs"] == [-(j + 1) / 8 for j in range(len(w))]
            and (r["finish"], r["ids"], r["truncated"]) == ("stop", None, None)
        )


def test_what_is_sent_is_what_was_asked():
    e = Endpoint("http://x/v1", "m", extra={"max_tokens": None, "max_completion_tokens": 7, "stop": ["\n"]})
    greedy, drawn, *_ = plan(e, SAMPLES, replace(HE2024, samples=10))
    assert (greedy.body["temperature"], greedy.n, "seed" in greedy.body) == (0, 1, False)
    assert {
        k: drawn.body[k] for k in ("model", "n", "temperature", "top_p", "max_completion_tokens", "stop")
    } == dict(model="m", n=10, temperature=1, top_p=1, max_completion_tokens=7, stop=["\n"])
    assert (
        drawn.body["messages"][0]["content"]
        == "Only give the summary of below text. \n " + SAMPLES["source"][0]
    )
    assert "max_tokens" not in drawn.body and "top_k" not in drawn.body and drawn.most_tokens[1] == 70
    assert "seed" not in plan(replace(e, send_seed=False), SAMPLES, HE2024)[1].body


def test_asked_one_by_one_text_k_does_not_depend_on_how_many_there_are(cache):
    with server() as (url, log):
        e = endpoint(url, per_call=1)
        few, many = (
            {
                (r["sample"], r["kind"], r["k"]): r["text"]
                for r in generate(e, SAMPLES, replace(S, samples=K), cache)
            }
            for K in (2, 4)
        )
    assert few == {k: v for k, v in many.items() if k in few} and len(log["seen"]) == 8 * (1 + 4)


def test_another_seed_is_another_request(cache):
    a, b = (plan(Endpoint("http://x/v1", "m"), SAMPLES, replace(S, seed=s)) for s in (1, 2))
    assert [x.key == y.key for x, y in zip(a, b)] == [True, False] * 8
    assert (
        len({r.key for r in plan(Endpoint("http://x/v1", "m", send_seed=False, per_call=1), SAMPLES, S)})
        == 8 * 4
    ), "unseeded requests for different texts must not share a reply"
    assert not {r.key for r in a} & {
        r.key for r in plan(Endpoint("http://x/v1", "other"), SAMPLES, replace(S, seed=1))
    }
    assert not {r.key for r in a} & {
        r.key for r in plan(Endpoint("http://x/v1", "m", revision="2"), SAMPLES, replace(S, seed=1))
    }


def test_a_server_that_ignores_n_is_found_out(cache):
    one = json.dumps(dict(choices=[dict(message=dict(content="x"))]))
    with (
        server([(200, {}, one)] * 20) as (url, _),
        pytest.raises(
            EndpointError, match=r"gave 1 of 3 texts for sample 's0'.*per_call = 1 \(--per-call 1\)"
        ),
    ):
        generate(endpoint(url), SAMPLES, S, cache)


def test_an_empty_answer_is_an_empty_text_and_not_an_error(cache):
    none = json.dumps(dict(choices=[dict(message=dict(content=None), finish_reason="content_filter")]))
    with server([(200, {}, none)] * 8) as (url, _):
        rows = generate(endpoint(url), SAMPLES, replace(S, samples=0), cache)
    assert {(r["text"], r["finish"], r["logprobs"]) for r in rows} == {("", "content_filter", None)}


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


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_every_passing_fault_is_survived(cache, tmp_path, fault):
    with server() as (url, _), Cache(tmp_path / "calm") as calm:
        right = generate(endpoint(url), SAMPLES, S, calm)
    with server([fault] * 5) as (url, log):
        assert generate(endpoint(url), SAMPLES, S, cache) == right
    assert len(log["seen"]) == 16 + 5 and len(log["served"]) == 16


def test_a_server_that_hangs_is_left(cache):
    with server(["hang"] * 2) as (url, log):
        start = time.monotonic()
        rows = generate(endpoint(url, timeout=0.2, concurrency=2), SAMPLES, S, cache)
    assert len(rows) == 32 and len(log["seen"]) == 18 and time.monotonic() - start < 5


def test_all_kinds_of_faults_at_once(cache):
    storm = FAULTS * 3
    random.Random(0).shuffle(storm)
    with server(storm) as (url, log):
        rows = generate(endpoint(url, retries=30, backoff=0.001), SAMPLES, S, cache)
    assert len(rows) == 32 and len(log["served"]) == 16 and len({digest(q) for q in log["served"]}) == 16


@pytest.mark.parametrize(
    "code,body,calls",
    [
        (400, "unknown field n", 1),
        (401, "bad key", 1),
        (404, "no such model", 1),
        (429, '{"error":{"code":"insufficient_quota"}}', 1),
        (302, "", 1),
        (500, "oops", 4),
    ],
)
def test_a_fault_that_stays_is_an_error_in_the_servers_words(cache, code, body, calls):
    with (
        server([(code, {"Location": "/elsewhere"}, body)] * 99) as (url, log),
        pytest.raises(EndpointError) as e,
    ):
        generate(endpoint(url, concurrency=1, retries=3), SAMPLES[:1], S, cache)
    assert (
        len(log["seen"]) == calls
        and f"HTTP {code}: {body}" in str(e.value)
        and "sample 's0'" in str(e.value)
        and f"{calls} attempt" in str(e.value)
    )


def test_nobody_listens(cache):
    with pytest.raises(EndpointError, match="ConnectionRefusedError"):
        generate(endpoint("http://127.0.0.1:9/v1", retries=1, price_out=1, budget=1), SAMPLES[:1], S, cache)
    assert cache.spent() == (0, 0)


def test_retry_after_is_respected(cache):
    with server([(429, {"Retry-After": "0.4"}, "slow down")]) as (url, log):
        generate(endpoint(url, backoff=0.001), SAMPLES[:1], replace(S, samples=0), cache)
    first, second = log["at"]
    assert 0.4 <= second - first < 1.5


def test_a_server_that_wants_too_much_patience_is_an_error(cache):
    with (
        server([(429, {"Retry-After": "3600"}, "come back")]) as (url, _),
        pytest.raises(EndpointError, match="asks to wait 3600 s, longer than longest_wait=120"),
    ):
        generate(endpoint(url), SAMPLES[:1], S, cache)


@given(st.text("0123456789abcdef", min_size=8, max_size=8), st.integers(0, 8))
def test_pauses_double_are_spread_and_are_the_same_every_time(key, i):
    e = Endpoint("http://x/v1", "m", backoff=2)
    assert 2 * 2**i * 0.5 <= pause(e, key, i) <= 2 * 2**i * 1.5 and pause(e, key, i) == pause(e, key, i)
    assert 7 <= pause(e, key, i, 7.0) <= 9


def test_retry_after_dates():
    from email.utils import formatdate

    assert 8 < retry_after(formatdate(time.time() + 10, usegmt=True)) <= 10 and retry_after("-5") == 0


def test_one_failure_stops_the_others_and_keeps_what_came(cache):
    with server(["ok"] * 3 + [(400, {}, "no")] * 99, slow=0.02) as (url, log), pytest.raises(EndpointError):
        generate(endpoint(url, concurrency=2), SAMPLES, S, cache)
    assert len(log["seen"]) <= 6 and estimate(endpoint(url), SAMPLES, S, cache)["cached"] == 3


# Nothing is paid twice


def test_a_second_run_asks_nothing_and_a_moved_server_is_the_same(cache):
    with server() as (url, log):
        first = generate(endpoint(url), SAMPLES, S, cache)
    assert generate(endpoint("http://127.0.0.1:9/v1"), SAMPLES, S, cache) == first and len(log["seen"]) == 16


def test_equal_requests_are_sent_once(cache):
    twins = pd.DataFrame(dict(id=list("abcd"), source="the same text"))
    with server(slow=0.05) as (url, log):
        rows = generate(endpoint(url), twins, replace(S, samples=0), cache)
    assert len(log["seen"]) == 1 and len({r["text"] for r in rows}) == 1 and len(rows) == 4


def test_raw_replies_are_kept_under_the_digest_of_their_request(cache, tmp_path):
    with server() as (url, log):
        generate(endpoint(url), SAMPLES, S, cache)
    kept = (
        sqlite3.connect(tmp_path / "replies.sqlite")
        .execute("select key, request, reply from reply")
        .fetchall()
    )
    assert {k for k, _, _ in kept} == {r.key for r in plan(endpoint(url), SAMPLES, S)}
    assert all(json.loads(raw) == completion(json.loads(q)["body"], True) for _, q, raw in kept)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[3])
from test_endpoint import S, SAMPLES, endpoint, fill
fill(sys.argv[1]+'/bank', 'd', 'g', SAMPLES, endpoint(sys.argv[2], concurrency=1), S, sys.argv[1]+'/replies.sqlite', size=3, progress=False)
"""


def test_killed_three_times_it_pays_at_most_the_request_under_way_again(tmp_path):
    with server() as (url, _):
        quiet = files(
            fill(
                tmp_path / "quiet",
                "d",
                "g",
                SAMPLES,
                endpoint(url),
                S,
                tmp_path / "quiet.sqlite",
                size=3,
                progress=False,
            )
        )
    with server(slow=0.1) as (url, log):
        run = [sys.executable, "-c", SCRIPT, str(tmp_path), url, str(Path(__file__).parent)]
        for n in (3, 7, 11):
            p = subprocess.Popen(run)
            while len(log["seen"]) < n:
                time.sleep(0.005)
            p.send_signal(signal.SIGKILL)
            assert p.wait() == -9
        subprocess.run(run, check=True)
    strip = {k: v.replace(url.encode(), b"") for k, v in files(tmp_path / "bank").items()}
    assert strip.keys() == quiet.keys() and len(read_bank(tmp_path / "bank")) == 32
    assert read_bank(tmp_path / "bank").equals(read_bank(tmp_path / "quiet"))
    assert 16 <= len(log["seen"]) <= 16 + 3, "only a request under way at a kill may be sent again"
    fresh = tmp_path / "again"
    fill(fresh, "d", "g", SAMPLES, endpoint(url), S, tmp_path / "replies.sqlite", size=3, progress=False)
    assert files(fresh) == files(tmp_path / "bank"), (
        "from the cache alone, at the same address, the same bytes"
    )


# Money


def paid(log, e):
    return sum(e.cost(30, sum(len(written(q, i)) for i in range(q["n"]))) for q in log["served"])


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("budget", [0.0005, 0.001, 0.0015, 0.002])
def test_the_budget_is_never_passed(cache, budget, concurrency):
    with server(slow=0.005) as (url, log):
        e = endpoint(url, price_in=1, price_out=5, budget=budget, concurrency=concurrency)
        try:
            done = len(generate(e, SAMPLES, S, cache)) == 32
        except BudgetReached:
            done = False
    assert paid(log, e) <= budget and cache.spent() == (pytest.approx(paid(log, e)), 0)
    assert done or sum(cache.spent()) + e.cost(*max(r.most_tokens for r in plan(e, SAMPLES, S))) > budget, (
        "it stopped although there was enough"
    )


def test_too_small_a_budget_sends_nothing_and_a_larger_one_goes_on(cache):
    with server() as (url, log):
        e = endpoint(url, price_in=1, price_out=5, budget=1e-5)
        with pytest.raises(BudgetReached, match="the budget of 1e-05 would be passed: 0 paid"):
            generate(e, SAMPLES, S, cache)
        assert not log["seen"]
        assert len(generate(replace(e, budget=1.0), SAMPLES, S, cache)) == 32


def test_what_the_server_may_have_counted_stays_set_aside(cache):
    with server(["cut", (500, {}, ""), "drop", (504, {}, ""), (429, {}, ""), (200, {}, "nonsense")]) as (
        url,
        _,
    ):
        e = endpoint(url, price_in=1, price_out=5, concurrency=1)
        generate(e, SAMPLES[:1], replace(S, samples=0), cache)
    assert cache.spent()[1] == pytest.approx(4 * e.cost(*plan(e, SAMPLES, S)[0].most_tokens))


def test_a_budget_holds_over_restarts(tmp_path):
    with server() as (url, log):
        e = endpoint(url, price_in=1, price_out=5, budget=0.0012)
        for _ in range(3):
            with Cache(tmp_path / "c") as c, pytest.raises(BudgetReached):
                generate(e, SAMPLES, S, c)
    assert 0 < paid(log, e) <= 0.0012


def test_without_a_usage_report_the_most_is_counted(cache):
    silent = json.dumps(dict(choices=[dict(message=dict(content="x"))]))
    with server([(200, {}, silent)]) as (url, _):
        e = endpoint(url, price_in=1, price_out=5)
        generate(e, SAMPLES[:1], replace(S, samples=0), cache)
    assert cache.spent()[0] == pytest.approx(e.cost(*plan(e, SAMPLES, S)[0].most_tokens))


def test_a_dry_run_sends_nothing_and_bounds_the_cost(cache):
    with server() as (url, log):
        e = endpoint(url, price_in=1, price_out=5)
        t = estimate(e, SAMPLES, S, cache)
        assert not log["seen"] and (t["requests"], t["cached"], t["tokens_out"]) == (16, 0, 8 * (1 + 3) * 20)
        generate(e, SAMPLES[:4], S, cache)
        assert paid(log, e) <= t["cost_most"] and estimate(e, SAMPLES, S, cache)["cached"] == 8
        generate(e, SAMPLES, S, cache)
        assert estimate(e, SAMPLES, S, cache)["cost_most"] == 0


# The key


def test_the_key_goes_to_the_server_and_nowhere_else(tmp_path, monkeypatch, capfd, caplog):
    monkeypatch.setenv("MY_KEY", KEY + "\n")
    caplog.set_level(logging.DEBUG)
    told = json.dumps(dict(choices=[dict(message=dict(content=f"your key is {KEY}"))]))
    faults = [(429, {"Retry-After": "0"}, f"wait, {KEY}"), (200, {}, f"nonsense {KEY}"), (200, {}, told)]
    with server(faults + ["ok"] * 3 + [(401, {}, f"Incorrect API key provided: {KEY}")] * 9) as (url, log):
        e = endpoint(url, key_env="MY_KEY", concurrency=1)
        with pytest.raises(EndpointError) as err:
            fill(tmp_path / "bank", "d", "g", SAMPLES, e, S, tmp_path / "c.sqlite", size=2, progress=True)
    assert set(log["keys"]) == {f"Bearer {KEY}"}
    assert "Incorrect API key provided: ***" in str(err.value)
    import traceback

    seen = [
        repr(e),
        str(err.value),
        "".join(traceback.format_exception(err.value)),
        caplog.text,
        *capfd.readouterr(),
        json.dumps(about(e, "d", "g", S)),
    ]
    assert not [s for s in seen if KEY in s]
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    with Cache(tmp_path / "c.sqlite") as c:
        assert "your key is ***" in str(ask(e, plan(e, SAMPLES, S)[:1], c))


def test_a_redirect_does_not_carry_the_key_away(cache, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with (
        server() as (other, elsewhere),
        server([(307, {"Location": other + "/chat/completions"}, "")] * 9) as (url, _),
        pytest.raises(EndpointError, match="HTTP 307"),
    ):
        generate(endpoint(url, key_env="MY_KEY"), SAMPLES, S, cache)
    assert not elsewhere["seen"]


def test_a_missing_or_broken_key_is_said_without_showing_it(cache, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    e = endpoint("http://127.0.0.1:9/v1", key_env="MY_KEY", price_out=1, budget=1)
    with pytest.raises(ValueError, match="MY_KEY holds no API key"):
        generate(e, SAMPLES, S, cache)
    monkeypatch.setenv("MY_KEY", KEY + "\nX-Evil: 1")
    with pytest.raises(ValueError, match="characters that an API key cannot have") as err:
        generate(e, SAMPLES, S, cache)
    assert KEY not in str(err.value) and cache.spent() == (0, 0)


def test_no_key_is_sent_when_none_is_named(cache, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with server() as (url, log):
        generate(endpoint(url), SAMPLES[:1], S, cache)
    assert set(log["keys"]) == {None} and api_key(endpoint(url)) == ""


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "ftp://h/v1", f"https://{KEY}@h/v1", f"https://h/v1?key={KEY}"]
)
def test_addresses_that_cannot_work_or_carry_a_key_are_refused(url):
    with pytest.raises(ValueError) as err:
        Endpoint(url, "m")
    assert KEY not in str(err.value)
