"""Endpoints: whatever the server does, texts are paid once, the budget holds, and the key stays secret."""

import json
import logging
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.endpoints import FAULTS, SAMPLES, SETTINGS, completion, endpoint, server, written
from tests.helpers.paths import ROOT
from uetrust.core.store import canonical_json, value_digest
from uetrust.generation.bank import read_bank
from uetrust.generation.decoding import HE2024_DECODING
from uetrust.generation.endpoint import (
    BudgetReached,
    Endpoint,
    EndpointError,
    ReplyCache,
    _api_key,
    _connection_failure,
    _endpoint_provenance,
    _RequestUnanswered,
    _retry_after,
    _retry_pause,
    _transaction,
    checked_reply,
    estimate_cost,
    fill_endpoint_bank,
    generate_remotely,
    masked,
    text_requests,
)

KEY = "sk-very-secret-0123456789"


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if not path.name.startswith(".")}


@pytest.fixture
def cache(tmp_path):
    with ReplyCache(tmp_path / "replies.sqlite") as replies:
        yield replies


# Answers
@pytest.mark.parametrize("chat", [True, False])
def test_texts_and_logprobs_are_those_of_the_server(cache, chat):
    with server() as (url, log):
        rows = generate_remotely(endpoint(url, chat=chat, logprobs=True), SAMPLES, SETTINGS, cache)
    assert len(rows) == 8 * 4 and len(log["seen"]) == 16
    requests = {
        (
            request["prompt"] if not chat else request["messages"][0]["content"],
            request["temperature"],
        ): request
        for request in log["seen"]
    }
    for row in rows:
        request = requests[
            SETTINGS.prompt.replace("{source}", SAMPLES.set_index("id").loc[row["sample"], "source"]),
            float(row["kind"] == "sample"),
        ]
        words = written(request, row["k"])
        assert (
            row["text"] == " ".join(words)
            and row["logprobs"] == [-(j + 1) / 8 for j in range(len(words))]
            and (row["finish"], row["ids"], row["truncated"]) == ("stop", None, None)
        )


ODD_LOGPROBS = [
    dict(tokens=["a"], token_logprobs=["-1"]),
    dict(tokens=["a"], token_logprobs=[True]),
    dict(tokens=["a"], token_logprobs=[-1, -2]),
    dict(tokens="a", token_logprobs=[-1]),
    dict(tokens=["a"], token_logprobs=[-1], top_logprobs={"a": -1}),
    dict(tokens=["a"], token_logprobs=[-1], top_logprobs=["a"]),
]


@pytest.mark.parametrize("odd", ODD_LOGPROBS, ids=json.dumps)
def test_log_probabilities_in_an_unknown_form_are_missing_and_the_text_is_kept(cache, odd):
    reply = dict(choices=[dict(index=0, text="a", finish_reason="stop", logprobs=odd)])
    with server([(200, {}, json.dumps(reply))]) as (url, _):
        toy, greedy = endpoint(url, chat=False, logprobs=True), replace(SETTINGS, samples=0)
        (row,) = generate_remotely(toy, SAMPLES[:1], greedy, cache)
    assert (row["text"], row["logprobs"]) == ("a", None)


def test_alternatives_are_kept_as_they_came_also_where_a_token_has_none():
    listed = dict(tokens=["a", "b"], token_logprobs=[None, -1], top_logprobs=[None, {"b": -1, "c": -2}])
    reply = dict(choices=[dict(index=0, text="ab", finish_reason="stop", logprobs=listed)])
    assert checked_reply(json.dumps(reply), chat=False)["choices"][0]["logprobs"] == listed


def test_two_texts_of_cohere_count_the_prompt_of_the_first():
    texts = [dict(text="", token_likelihoods=[dict(token=word) for word in words]) for words in ("abc", "d")]
    read = checked_reply(json.dumps(dict(generations=texts)), chat=False)
    assert read["usage"] == dict(prompt_tokens=3) and len(read["choices"]) == 2


def test_what_is_sent_is_what_was_asked():
    server = Endpoint(
        "http://x/v1", "m", extra={"max_tokens": None, "max_completion_tokens": 7, "stop": ["\n"]}
    )
    greedy, drawn, *_ = text_requests(server, SAMPLES, replace(HE2024_DECODING, samples=10))
    assert (greedy.body["temperature"], greedy.n, "seed" in greedy.body) == (0, 1, False)
    assert {
        name: drawn.body[name]
        for name in ("model", "n", "temperature", "top_p", "max_completion_tokens", "stop")
    } == dict(model="m", n=10, temperature=1, top_p=1, max_completion_tokens=7, stop=["\n"])
    assert (
        drawn.body["messages"][0]["content"]
        == "Only give the summary of below text. \n " + SAMPLES["source"][0]
    )
    assert "max_tokens" not in drawn.body and "top_k" not in drawn.body and drawn.most_tokens[1] == 70
    assert "seed" not in text_requests(replace(server, send_seed=False), SAMPLES, HE2024_DECODING)[1].body


def test_asked_one_by_one_text_k_does_not_depend_on_how_many_there_are(cache):
    with server() as (url, log):
        toy = endpoint(url, per_call=1)
        few, many = (
            {
                (row["sample"], row["kind"], row["k"]): row["text"]
                for row in generate_remotely(toy, SAMPLES, replace(SETTINGS, samples=n), cache)
            }
            for n in (2, 4)
        )
    assert few == {name: text for name, text in many.items() if name in few} and len(log["seen"]) == 8 * (
        1 + 4
    )


def test_another_seed_is_another_request(cache):
    first, second = (
        text_requests(Endpoint("http://x/v1", "m"), SAMPLES, replace(SETTINGS, seed=seed)) for seed in (1, 2)
    )
    assert [one.key == other.key for one, other in zip(first, second)] == [True, False] * 8
    assert (
        len(
            {
                request.key
                for request in text_requests(
                    Endpoint("http://x/v1", "m", send_seed=False, per_call=1), SAMPLES, SETTINGS
                )
            }
        )
        == 8 * 4
    ), "unseeded requests for different texts must not share a reply"
    assert not {request.key for request in first} & {
        request.key
        for request in text_requests(Endpoint("http://x/v1", "other"), SAMPLES, replace(SETTINGS, seed=1))
    }
    assert not {request.key for request in first} & {
        request.key
        for request in text_requests(
            Endpoint("http://x/v1", "m", revision="2"), SAMPLES, replace(SETTINGS, seed=1)
        )
    }


def test_a_server_that_ignores_n_is_found_out(cache):
    one = json.dumps(dict(choices=[dict(message=dict(content="x"))]))
    with (
        server([(200, {}, one)] * 20) as (url, _),
        pytest.raises(
            EndpointError, match=r"gave 1 of 3 texts for sample 's0'.*per_call = 1 \(--per-call 1\)"
        ),
    ):
        generate_remotely(endpoint(url), SAMPLES, SETTINGS, cache)


def null_reply(finish, **message):
    return json.dumps(dict(choices=[dict(message=dict(content=None) | message, finish_reason=finish)]))


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_an_empty_answer_is_an_empty_text_and_not_an_error(cache, finish):
    with server([(200, {}, null_reply(finish, tool_calls=[]))] * 8) as (url, _):
        rows = generate_remotely(endpoint(url), SAMPLES, replace(SETTINGS, samples=0), cache)
    assert {(row["text"], row["finish"], row["logprobs"]) for row in rows} == {("", finish, None)}


@pytest.mark.parametrize(
    "finish, message",
    [
        ("content_filter", {}),
        ("stop", dict(refusal="I cannot help with that.")),
        ("tool_calls", dict(tool_calls=[dict(id="c", type="function")])),
    ],
)
def test_a_declined_answer_is_missing_and_not_an_empty_text(cache, finish, message):
    with server([(200, {}, null_reply(finish, **message))] * 8) as (url, calls):
        for _ in range(2):  # The reply is kept: it is not paid twice
            with pytest.raises(EndpointError, match=f"gave no text for sample 's0'.*{finish}"):
                generate_remotely(endpoint(url), SAMPLES[:1], replace(SETTINGS, samples=0), cache)
        assert len(calls["seen"]) == 1


@pytest.mark.parametrize("fails", [1, 2])
def test_the_other_texts_are_kept_when_a_request_fails(cache, fails):
    with server([(400, {}, "too long")] * fails) as (url, calls):
        with pytest.raises(EndpointError, match="too long" if fails == 1 else "too long.*2 of 16 requests"):
            generate_remotely(endpoint(url), SAMPLES, SETTINGS, cache)
        assert len(calls["served"]) == 16 - fails
        assert len(generate_remotely(endpoint(url), SAMPLES, SETTINGS, cache)) == 4 * 8
        assert len(calls["served"]) == 16


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_every_passing_fault_is_survived(cache, tmp_path, fault):
    with server() as (url, _), ReplyCache(tmp_path / "calm") as calm:
        right = generate_remotely(endpoint(url), SAMPLES, SETTINGS, calm)
    with server([fault] * 5) as (url, log):
        assert generate_remotely(endpoint(url), SAMPLES, SETTINGS, cache) == right
    assert len(log["seen"]) == 16 + 5 and len(log["served"]) == 16


def test_a_server_that_hangs_is_left(cache):
    with server(["hang"] * 2) as (url, log):
        rows = generate_remotely(endpoint(url, timeout=1, concurrency=2), SAMPLES, SETTINGS, cache)
        assert not log["waited for"]  # The server still hangs
    assert len(rows) == 32 and len(log["seen"]) == 18


def test_all_kinds_of_faults_at_once(cache):
    storm = FAULTS * 3
    random.Random(0).shuffle(storm)
    with server(storm) as (url, log):
        rows = generate_remotely(endpoint(url, retries=30, backoff=0.001), SAMPLES, SETTINGS, cache)
    assert (
        len(rows) == 32
        and len(log["served"]) == 16
        and len({value_digest(request) for request in log["served"]}) == 16
    )


@pytest.mark.parametrize(
    "code,body,calls,attempts",
    [
        (400, "unknown field n", 2, 1),  # May be about one text: the other one is sent
        (401, "bad key", 1, 1),
        (404, "no such model", 1, 1),
        (429, '{"error":{"code":"insufficient_quota"}}', 1, 1),
        (302, "", 1, 1),
        (429, "slow down", 4, 4),  # Another request would be refused as well
        (500, "oops", 8, 4),
    ],
)
def test_a_fault_that_stays_is_an_error_in_the_servers_words(cache, code, body, calls, attempts):
    with (
        server([(code, {"Location": "/elsewhere"}, body)] * 99) as (url, log),
        pytest.raises(EndpointError) as error,
    ):
        generate_remotely(endpoint(url, concurrency=1, retries=3), SAMPLES[:1], SETTINGS, cache)
    assert (
        len(log["seen"]) == calls
        and f"HTTP {code}: {body}" in str(error.value)
        and "sample 's0'" in str(error.value)
        and f"{attempts} attempt{'s' if attempts > 1 else ''}:" in str(error.value)
    )


@pytest.mark.parametrize("retries, pauses", [(0, []), (1, [0.5]), (2, [0.5, 1.0]), (6, [0.5, 1.0])])
def test_an_address_where_nothing_listens_is_tried_up_to_three_times(cache, monkeypatch, retries, pauses):
    "With longer and longer pauses between, and none after the last."
    slept = []
    monkeypatch.setattr("uetrust.generation.endpoint.time.sleep", slept.append)
    toy = endpoint("http://127.0.0.1:9/v1", retries=retries, backoff=0.5)
    with pytest.raises(EndpointError, match="nothing listens at http://127.0.0.1:9/v1"):
        generate_remotely(toy, SAMPLES[:1], SETTINGS, cache)
    assert slept == pauses


def test_nobody_listens(cache):
    with pytest.raises(EndpointError, match="ConnectionRefusedError"):
        generate_remotely(
            endpoint("http://127.0.0.1:9/v1", retries=1, price_out=1, budget=1), SAMPLES[:1], SETTINGS, cache
        )
    assert cache.spent() == cache.unsure() == (0, 0), "what was never sent cannot have been counted"


def test_a_server_of_this_machine_is_not_asked_through_a_proxy(cache, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with server() as (url, log):
        assert len(generate_remotely(endpoint(url), SAMPLES[:1], SETTINGS, cache)) == 4


def test_input_and_output_may_cost_the_same():
    assert endpoint("http://127.0.0.1:9/v1", price_in=2, price_out=2, budget=1).cost(10**6, 10**6) == 4


@pytest.mark.parametrize(
    "why, unsent",
    [
        (ConnectionRefusedError(111, "refused"), True),
        (OSError(101, "no way"), True),
        (OSError(5, "?"), False),
    ],
)
def test_a_request_that_never_left_is_told_from_one_that_got_no_reply(why, unsent):
    failed = _connection_failure(urllib.error.URLError(why), "")
    assert (failed.error is EndpointError, failed.error is _RequestUnanswered) == (unsent, not unsent)


def test_drawn_texts_have_temperature_1_unless_another_is_asked_for():
    toy = endpoint("http://127.0.0.1:9/v1")
    for settings, drawn in ((SETTINGS, 1), (replace(SETTINGS, temperature=0.5), 0.5)):
        greedy, sampled = text_requests(toy, SAMPLES[:1], settings)
        assert (greedy.body["temperature"], sampled.body["temperature"]) == (0, drawn)


def test_provenance_states_what_a_server_was_asked_for():
    plain, with_top = (
        _endpoint_provenance(endpoint("http://127.0.0.1:9/v1", **more), "d", "g", SETTINGS)["settings"]
        for more in ({}, dict(logprobs=True, top_logprobs=3))
    )
    assert (plain["temperature"], plain["top_p"], plain["top_k"]) == (1, 1, 0)
    assert (plain.get("top_logprobs"), with_top["top_logprobs"]) == (None, 3)


def test_retry_after_is_respected(cache):
    with server([(429, {"Retry-After": "0.4"}, "slow down")]) as (url, log):
        generate_remotely(endpoint(url, backoff=0.001), SAMPLES[:1], replace(SETTINGS, samples=0), cache)
    first, second = log["at"]
    assert 0.4 <= second - first


def test_a_server_that_wants_too_much_patience_is_an_error(cache):
    with (
        server([(429, {"Retry-After": "3600"}, "come back")]) as (url, _),
        pytest.raises(EndpointError, match="asks to wait 3600 s, longer than longest_wait=120"),
    ):
        generate_remotely(endpoint(url), SAMPLES[:1], SETTINGS, cache)


def test_a_pause_of_our_own_that_is_too_long_is_told(cache):
    with (
        server([(503, {}, "")]) as (url, _),
        pytest.raises(
            EndpointError, match=r"The next attempt has to wait \d+ s, longer than longest_wait=1\."
        ),
    ):
        generate_remotely(endpoint(url, backoff=9, longest_wait=1), SAMPLES[:1], SETTINGS, cache)


def test_a_server_is_not_said_to_ask_for_too_much_where_no_attempt_is_left(cache):
    "A request that may have been billed is sent again once only."
    paid = endpoint("http://x/v1", price_in=1, price_out=1, resends=0, budget=9)
    with server([(502, {"Retry-After": "1"}, "")] * 9) as (url, _), pytest.raises(EndpointError) as error:
        generate_remotely(replace(paid, url=url), SAMPLES[:1], SETTINGS, cache)
    assert "in 1 attempt" in str(error.value) and "asks to wait" not in str(error.value)


@given(st.text("0123456789abcdef", min_size=8, max_size=8), st.integers(0, 8))
def test_pauses_double_are_spread_and_are_the_same_every_time(key, i):
    server = Endpoint("http://x/v1", "m", backoff=2)
    assert 2 * 2**i * 0.5 <= _retry_pause(server, key, i) <= 2 * 2**i * 1.5 and _retry_pause(
        server, key, i
    ) == _retry_pause(server, key, i)
    assert 7 <= _retry_pause(server, key, i, 7.0) <= 9


def test_retry_after_dates():
    from email.utils import formatdate

    assert 8 < _retry_after(formatdate(time.time() + 10, usegmt=True)) <= 10 and _retry_after("-5") == 0


def test_a_server_that_answers_nothing_is_not_asked_for_everything(cache):
    with server([(400, {}, "no")] * 99, slow=0.02) as (url, log), pytest.raises(EndpointError):
        generate_remotely(endpoint(url, concurrency=1), SAMPLES, SETTINGS, cache)
    assert 3 <= len(log["seen"]) <= 4  # Of 16


def test_a_wrong_key_stops_the_others_and_keeps_what_came(cache):
    with server(["ok"] * 3 + [(401, {}, "no")] * 99, slow=0.02) as (url, log), pytest.raises(EndpointError):
        generate_remotely(endpoint(url, concurrency=2), SAMPLES, SETTINGS, cache)
    assert len(log["seen"]) <= 6 and estimate_cost(endpoint(url), SAMPLES, SETTINGS, cache)["cached"] == 3


# Nothing is paid twice
def test_a_second_run_asks_nothing_and_a_moved_server_is_the_same(cache):
    with server() as (url, log):
        first = generate_remotely(endpoint(url), SAMPLES, SETTINGS, cache)
    assert (
        generate_remotely(endpoint("http://127.0.0.1:9/v1"), SAMPLES, SETTINGS, cache) == first
        and len(log["seen"]) == 16
    )


def test_equal_requests_are_sent_once(cache):
    twins = pd.DataFrame(dict(id=list("abcd"), source="the same text"))
    with server(slow=0.05) as (url, log):
        rows = generate_remotely(endpoint(url), twins, replace(SETTINGS, samples=0), cache)
    assert len(log["seen"]) == 1 and len({row["text"] for row in rows}) == 1 and len(rows) == 4


def test_raw_replies_are_kept_under_the_digest_of_their_request(cache, tmp_path):
    with server() as (url, log):
        generate_remotely(endpoint(url), SAMPLES, SETTINGS, cache)
    kept = (
        sqlite3.connect(tmp_path / "replies.sqlite")
        .execute("select key, request, reply from reply")
        .fetchall()
    )
    assert {key for key, _, _ in kept} == {
        request.key for request in text_requests(endpoint(url), SAMPLES, SETTINGS)
    }
    assert all(json.loads(raw) == completion(json.loads(request)["body"], True) for _, request, raw in kept)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[3])
from tests.helpers.endpoints import SAMPLES, SETTINGS, endpoint
from uetrust.generation.endpoint import fill_endpoint_bank
folder, toy = sys.argv[1], endpoint(sys.argv[2], concurrency=1)
replies = folder+'/replies.sqlite'
fill_endpoint_bank(folder+'/bank', 'd', 'g', SAMPLES, toy, SETTINGS, replies, size=3, progress=False)
"""


def test_killed_three_times_it_pays_at_most_the_request_under_way_again(tmp_path):
    with server() as (url, _):
        quiet = files(
            fill_endpoint_bank(
                tmp_path / "quiet",
                "d",
                "g",
                SAMPLES,
                endpoint(url),
                SETTINGS,
                tmp_path / "quiet.sqlite",
                size=3,
                progress=False,
            )
        )
    with server(slow=0.1) as (url, log):
        run = [sys.executable, "-c", SCRIPT, str(tmp_path), url, str(ROOT)]
        for n in (3, 7, 11):
            process = subprocess.Popen(run)
            while len(log["seen"]) < n:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -9
        subprocess.run(run, check=True)
    strip = {name: data.replace(url.encode(), b"") for name, data in files(tmp_path / "bank").items()}
    assert strip.keys() == quiet.keys() and len(read_bank(tmp_path / "bank")) == 32
    assert read_bank(tmp_path / "bank").equals(read_bank(tmp_path / "quiet"))
    assert 16 <= len(log["seen"]) <= 16 + 3, "only a request under way at a kill may be sent again"
    fresh = tmp_path / "again"
    fill_endpoint_bank(
        fresh, "d", "g", SAMPLES, endpoint(url), SETTINGS, tmp_path / "replies.sqlite", size=3, progress=False
    )
    assert files(fresh) == files(tmp_path / "bank"), (
        "from the cache alone, at the same address, the same bytes"
    )


# Money
def paid(log, toy):
    return sum(
        toy.cost(30, sum(len(written(request, i)) for i in range(request["n"]))) for request in log["served"]
    )


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("budget", [0.0005, 0.001, 0.0015, 0.002])
def test_the_budget_is_never_passed(cache, budget, concurrency):
    with server(slow=0.005) as (url, log):
        toy = endpoint(url, price_in=1, price_out=5, budget=budget, concurrency=concurrency)
        try:
            done = len(generate_remotely(toy, SAMPLES, SETTINGS, cache)) == 32
        except BudgetReached:
            done = False
    assert paid(log, toy) <= budget and cache.spent() == (pytest.approx(paid(log, toy)), 0)
    assert (
        done
        or sum(cache.spent())
        + toy.cost(*max(request.most_tokens for request in text_requests(toy, SAMPLES, SETTINGS)))
        > budget
    ), "it stopped although there was enough"


def test_too_small_a_budget_sends_nothing_and_a_larger_one_goes_on(cache):
    with server() as (url, log):
        toy = endpoint(url, price_in=1, price_out=5, budget=1e-5)
        with pytest.raises(BudgetReached, match="the budget of 1e-05 would be passed: 0 paid"):
            generate_remotely(toy, SAMPLES, SETTINGS, cache)
        assert not log["seen"]
        assert len(generate_remotely(replace(toy, budget=1.0), SAMPLES, SETTINGS, cache)) == 32


LOST = ["cut", (500, {}, ""), "drop", (504, {}, ""), (429, {}, ""), (200, {}, "nonsense")]


def test_what_the_server_may_have_counted_stays_set_aside_until_the_reply(cache):
    one = (SAMPLES[:1], replace(SETTINGS, samples=0), cache)
    with server(LOST) as (url, log):
        toy = endpoint(url, price_in=1, price_out=5, concurrency=1)
        most = toy.cost(*text_requests(toy, SAMPLES, SETTINGS)[0].most_tokens)
        with pytest.raises(EndpointError, match="in 3 attempts"):  # Two of them may have been counted
            generate_remotely(toy, *one)
        assert cache.unsure() == (1, pytest.approx(2 * most)) and len(log["seen"]) == 3
        with pytest.raises(EndpointError, match="in 3 attempts"):
            generate_remotely(toy, *one)
        assert cache.unsure() == (1, pytest.approx(2 * most)), "bounded, however often it is sent"
        generate_remotely(toy, *one)
    assert cache.unsure() == (0, 0) and cache.spent() == (pytest.approx(paid(log, toy)), 0)
    assert len(set(log["idempotency"])) == 1


def test_resets_cannot_fill_the_budget_for_good(cache):
    with server(["drop", "ok"] * 16) as (url, log):
        toy = endpoint(url, price_in=1, price_out=5, concurrency=1, budget=0.01)
        generate_remotely(toy, SAMPLES, SETTINGS, cache)
    assert len(log["seen"]) == 32 and cache.spent() == (pytest.approx(paid(log, toy)), 0)


def test_requests_under_way_count_in_the_budget(tmp_path):
    with ReplyCache(tmp_path / "c") as ours, ReplyCache(tmp_path / "c") as theirs:
        ticket, stop = theirs.reserve("a", 0.6, 1), threading.Event()
        threading.Timer(0.5, stop.set).start()
        assert ours.reserve("b", 0.6, 1, stop) is None, "it waits for the outcome of the other"
        theirs.release(ticket, counted=True)
        with pytest.raises(BudgetReached, match="0 paid, 0.6 set aside"):
            ours.reserve("b", 0.6, 1)
        assert ours.reserve("b", 0.4, 1)


def test_a_claim_that_is_left_is_free_for_others(tmp_path):
    with ReplyCache(tmp_path / "c") as ours, ReplyCache(tmp_path / "c") as theirs:
        stop = threading.Event()
        threading.Timer(0.5, stop.set).start()
        ticket = theirs.reserve("a", 0.6, 1)
        assert ours.reserve("a", 0.1, 1, stop) is None
        theirs.release(ticket, counted=False)
        assert ours.spent() == (0, 0) and (ticket := ours.reserve("a", 0.6, 1))
        request = text_requests(Endpoint("http://x/v1", "m"), SAMPLES, SETTINGS)[0]._replace(key="a")
        ours.settle(ticket, request, json.dumps(completion(request.body, True)), 0.1)
        assert theirs.reserve("a", 0.6, 1) is None and theirs.spent() == (0.1, 0)
        theirs.reserve("b", 0.2, 1)
    with ReplyCache(tmp_path / "c") as later:
        assert later.unsure() == (1, 0.2), "of a run that ended nobody knows"


def test_a_claim_of_a_dead_process_or_of_another_one_with_its_number_is_taken_over(tmp_path):
    with ReplyCache(tmp_path / "c") as cache:
        host, pid, start, run = cache.owner.split()
        dead = subprocess.Popen(["true"])
        dead.wait()
        for i, owner in enumerate(
            (f"{host} {dead.pid} {start} {run}", f"{host} {pid} 1 {run}", f"elsewhere 1 1 {run}")
        ):
            claim = "insert into pending(key, cost, owner, since) values (?,?,?,?)"
            cache.db.execute(claim, (f"k{i}", 0.1, owner, time.time() - 7200))
            assert cache.reserve(f"k{i}", 0.1, 9), owner


TWIN = """
import sys
sys.path.insert(0, sys.argv[3])
from tests.helpers.endpoints import SAMPLES, SETTINGS, endpoint
from uetrust.generation.endpoint import ReplyCache, generate_remotely
with ReplyCache(sys.argv[1] + "/c") as cache:
    toy = endpoint(sys.argv[2], price_in=1, price_out=5, budget=1)
    assert len(generate_remotely(toy, SAMPLES, SETTINGS, cache)) == 32
"""


def test_two_processes_at_once_pay_once_and_book_all(tmp_path):
    with server(slow=0.05) as (url, log):
        run = [sys.executable, "-c", TWIN, str(tmp_path), url, str(ROOT)]
        twins = [subprocess.Popen(run) for _ in range(2)]
        assert [twin.wait(120) for twin in twins] == [0, 0]
        with ReplyCache(tmp_path / "c") as cache:
            booked = paid(log, endpoint(url, price_in=1, price_out=5))
            assert len(log["served"]) == 16 and cache.spent() == (pytest.approx(booked), 0)


def test_a_cache_of_an_older_version_is_opened_and_its_reservations_can_be_released(tmp_path):
    with sqlite3.connect(tmp_path / "c") as old:
        old.execute("create table reply(key text primary key, request text, reply text, cost real)")
        old.execute("create table pending(id integer primary key, key text, cost real)")
        request = text_requests(Endpoint("http://x/v1", "m"), SAMPLES, SETTINGS)[0]
        old.execute("insert into pending(key, cost) values (?, 0.7)", (request.key,))
        old.execute("insert into reply values ('odd', '{}', '7', -5)")
    with ReplyCache(tmp_path / "c") as cache:
        assert cache.spent() == (0, 0.7) and cache.get("odd") is None
        ticket = cache.reserve(request.key, 0.2, 1)
        cache.settle(ticket, request, json.dumps(completion(request.body, True)), 0.1)
        assert cache.spent() == (0.1, 0)


@pytest.mark.parametrize("top_p", [0.55, 0.75, 0.95])
def test_top_p_is_sent_as_it_is(top_p):
    requests = text_requests(Endpoint("http://x/v1", "m"), SAMPLES, replace(SETTINGS, top_p=top_p))
    assert [request.body["top_p"] for request in requests[:2]] == [1, top_p]


def test_a_budget_holds_over_restarts(tmp_path):
    with server() as (url, log):
        toy = endpoint(url, price_in=1, price_out=5, budget=0.0012)
        for _ in range(3):
            with ReplyCache(tmp_path / "c") as replies, pytest.raises(BudgetReached):
                generate_remotely(toy, SAMPLES, SETTINGS, replies)
    assert 0 < paid(log, toy) <= 0.0012


def test_without_a_usage_report_the_most_is_counted(cache):
    silent = json.dumps(dict(choices=[dict(message=dict(content="x"))]))
    with server([(200, {}, silent)]) as (url, _):
        toy = endpoint(url, price_in=1, price_out=5)
        generate_remotely(toy, SAMPLES[:1], replace(SETTINGS, samples=0), cache)
    assert cache.spent()[0] == pytest.approx(toy.cost(*text_requests(toy, SAMPLES, SETTINGS)[0].most_tokens))


def test_a_dry_run_sends_nothing_and_bounds_the_cost(cache):
    with server() as (url, log):
        toy = endpoint(url, price_in=1, price_out=5, budget=9)
        costs = estimate_cost(toy, SAMPLES, SETTINGS, cache)
        assert costs["budget_left"] == estimate_cost(toy, SAMPLES, SETTINGS)["budget_left"] == toy.budget
        sent = [canonical_json(request.body) for request in text_requests(toy, SAMPLES, SETTINGS)]
        assert costs["tokens_in"] == len("".join(sent).encode()) // 4, "a token has about four bytes"
        assert not log["seen"] and (costs["requests"], costs["cached"], costs["tokens_out"]) == (
            16,
            0,
            8 * (1 + 3) * 20,
        )
        generate_remotely(toy, SAMPLES[:4], SETTINGS, cache)
        assert (
            paid(log, toy) <= costs["cost_most"]
            and estimate_cost(toy, SAMPLES, SETTINGS, cache)["cached"] == 8
        )
        generate_remotely(toy, SAMPLES, SETTINGS, cache)
        done = estimate_cost(toy, SAMPLES, SETTINGS, cache)
        assert done["cost_most"] == 0 and done["budget_left"] == toy.budget - cache.spent()[0]


# The key
def test_the_key_goes_to_the_server_and_nowhere_else(tmp_path, monkeypatch, capfd, caplog):
    monkeypatch.setenv("MY_KEY", KEY + "\n")
    caplog.set_level(logging.DEBUG)
    faults = [(429, {"Retry-After": "0"}, f"wait, {KEY}"), (200, {}, f"nonsense {KEY}")]
    with server(faults + ["ok"] * 3 + [(401, {}, f"Incorrect API key provided: {KEY}")] * 9) as (url, log):
        toy = endpoint(url, key_env="MY_KEY", concurrency=1)
        with pytest.raises(EndpointError) as error:
            fill_endpoint_bank(
                tmp_path / "bank",
                "d",
                "g",
                SAMPLES,
                toy,
                SETTINGS,
                tmp_path / "c.sqlite",
                size=2,
                progress=True,
            )
    assert set(log["keys"]) == {f"Bearer {KEY}"}
    assert "Incorrect API key provided: ***" in str(error.value)
    import traceback

    seen = [
        repr(toy),
        str(error.value),
        "".join(traceback.format_exception(error.value)),
        caplog.text,
        *capfd.readouterr(),
        json.dumps(_endpoint_provenance(toy, "d", "g", SETTINGS)),
    ]
    assert not [text for text in seen if KEY in text]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("key", [KEY, "x"])
def test_a_reply_is_kept_as_it_came_whatever_the_key(cache, monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    quote = json.dumps(dict(choices=[dict(message=dict(content=f"The next exam of {KEY}"))]))
    with server([(200, {}, quote), (401, {}, f"no {key}")]) as (url, _):
        toy = endpoint(url, key_env="MY_KEY", concurrency=1)
        with pytest.raises(EndpointError, match=r"HTTP 401: no \*\*\*"):
            generate_remotely(toy, SAMPLES[:1], SETTINGS, cache)
        reply = cache.get(text_requests(toy, SAMPLES, SETTINGS)[0].key)
    assert reply["choices"][0]["message"]["content"] == f"The next exam of {KEY}"


def test_a_redirect_does_not_carry_the_key_away(cache, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with (
        server() as (other, elsewhere),
        server([(307, {"Location": other + "/chat/completions"}, "")] * 9) as (url, _),
        pytest.raises(EndpointError, match="HTTP 307"),
    ):
        generate_remotely(endpoint(url, key_env="MY_KEY"), SAMPLES, SETTINGS, cache)
    assert not elsewhere["seen"]


def test_a_missing_or_broken_key_is_said_without_showing_it(cache, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    toy = endpoint("http://127.0.0.1:9/v1", key_env="MY_KEY", price_out=1, budget=1)
    with pytest.raises(ValueError, match="MY_KEY holds no API key"):
        generate_remotely(toy, SAMPLES, SETTINGS, cache)
    monkeypatch.setenv("MY_KEY", KEY + "\nX-Evil: 1")
    with pytest.raises(ValueError, match="characters that an API key cannot have") as error:
        generate_remotely(toy, SAMPLES, SETTINGS, cache)
    assert KEY not in str(error.value) and cache.spent() == (0, 0)


def test_no_key_is_sent_when_none_is_named(cache, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with server() as (url, log):
        generate_remotely(endpoint(url), SAMPLES[:1], SETTINGS, cache)
    assert set(log["keys"]) == {None} and _api_key(endpoint(url)) == ""


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "ftp://h/v1", f"https://{KEY}@h/v1", f"https://h/v1?key={KEY}"]
)
def test_addresses_that_cannot_work_or_carry_a_key_are_refused(url):
    with pytest.raises(ValueError) as error:
        Endpoint(url, "m")
    assert KEY not in str(error.value)


@pytest.mark.parametrize("secret, shown", [("12345678", "a***b"), ("1234567", "a1234567b")])
def test_a_key_of_eight_signs_is_masked_wherever_it_stands_and_a_shorter_one_as_a_word(secret, shown):
    assert masked(f"a{secret}b", secret) == shown and masked(f"key {secret}!", secret) == "key ***!"


@pytest.mark.parametrize(
    "retries, count", [(0, "in 1 attempt:"), (1, "in 2 attempts:"), (2, "in 3 attempts:")]
)
def test_attempts_are_counted_in_the_error(cache, retries, count):
    with server([(500, {}, "oops")] * 99) as (url, _), pytest.raises(EndpointError, match=count):
        toy = endpoint(url, concurrency=1, retries=retries)
        generate_remotely(toy, SAMPLES[:1], replace(SETTINGS, samples=0), cache)


def test_a_transaction_whose_commit_fails_is_undone():
    database = sqlite3.connect(":memory:", isolation_level=None)
    for statement in (
        "pragma foreign_keys=on",
        "create table a(id integer primary key)",
        "create table b(a references a deferrable initially deferred)",
    ):
        database.execute(statement)
    with pytest.raises(sqlite3.IntegrityError), _transaction(database, database.execute):
        database.execute("insert into b values (1)")  # Refused at the end only
    assert not database.in_transaction
    with _transaction(database, database.execute):
        database.execute("insert into a values (1)")
    assert database.execute("select count(*) from a").fetchone() == (1,)
