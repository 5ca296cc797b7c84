"""Judges behind servers that fail, lie or never end, and caches that are none: `uetrust judge`."""

import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

from tests.faults.harness import SERVERS, fault, run_command, start_answers

WORDS = "one two three four five six".split()
BAD = "three"  # The summary that the server answers oddly
NOWHERE = "http://127.0.0.1:9/v1"
MONEY = ["--price-in", "1", "--price-out", "2", "--budget", "20"]


def completion(content="4", usage=None):
    usage = dict(prompt_tokens=300, completion_tokens=1) if usage is None else usage
    choice = dict(index=0, message=dict(role="assistant", content=content), finish_reason="stop")
    return json.dumps(dict(choices=[choice], usage=usage)).encode()


def good(asked, number):
    return 200, completion()


def odd_for_one(reply):
    "Answer of a server that gives `reply` for one summary."
    return lambda asked, number: reply if is_bad(asked) else good(asked, number)


def is_bad(asked):
    return f"It rained {BAD}." in asked["messages"][0]["content"]


def ask(folder, url, *options, rows=None):
    texts = rows or [dict(id=word, hypothesis=f"It rained {word}.", source="Rain fell.") for word in WORDS]
    (folder / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts))
    dims = ["--families", "wi_in", "--dims", "fluency", "--out", "scores.csv", "--retries", "1"]
    return ["judge", "mine.jsonl", "--endpoint", url, "--model", "m", *dims, *options]


def scores(folder):
    table = pd.read_csv(folder / "scores.csv")
    return table[table["name"] == "judge_wi_in_fluency"].set_index("sample")


def only_the_bad_one_is_missing(folder, outcome):
    table = pd.read_csv(folder / "scores.csv")
    assert (table["value"].isna() == (table["sample"] == BAD)).all(), table
    assert table["note"][table["sample"] == BAD].str.contains("the judge gave no reply").all()
    assert "1 of 6 requests got no reply" in outcome.err


def asked_again(folder, outcome):
    only_the_bad_one_is_missing(folder, outcome)
    SERVERS[-1].answer, before = good, len(SERVERS[-1].calls)
    again = run_command(ask(folder, f"http://127.0.0.1:{SERVERS[-1].server_port}/v1"), folder)
    assert again.code == 0 and len(SERVERS[-1].calls) == before + 1, again.err
    assert scores(folder)["value"].notna().all() and "got no reply" not in again.err


ODD = dict(number=7, object=dict(text="4"), true=True, parts_of_numbers=[1, 2], half_a_character="\ud800")


@fault(
    "right",
    check=asked_again,
    cases={
        **{f"content {name}": (200, completion(value)) for name, value in ODD.items()},
        "always 500": (500, b"oops"),
        "too long": (400, b"too long"),
        "resets": None,
        "no json": (200, b"<html>"),
        "deep": (200, b"[" * 100_000),
    },
)
def one_odd_reply(folder, reply):
    return ask(folder, start_answers(odd_for_one(reply)))


def declined(finish, **message):
    reply = json.loads(completion(None))
    reply["choices"][0] |= dict(finish_reason=finish)
    reply["choices"][0]["message"] |= message
    return 200, json.dumps(reply).encode()


DECLINED = dict(filter=declined("content_filter"), refusal=declined("stop", refusal="I cannot say."))
DECLINED |= dict(tool=declined("tool_calls", tool_calls=[dict(id="c", type="function")]))


@fault("right", check=only_the_bad_one_is_missing, cases=DECLINED)
def declined_reply(folder, reply):
    return ask(folder, start_answers(odd_for_one(reply)))


def endless():
    while True:
        yield b" " * 2**16


@fault("right", check=only_the_bad_one_is_missing, limit=60)
def endless_reply(folder):
    def answer(asked, number):
        return (200, endless()) if is_bad(asked) else good(asked, number)

    return ask(folder, start_answers(answer))


def all_have_scores(folder, outcome):
    assert scores(folder)["value"].tolist() == [4] * 6


USAGES = dict(text="many", number=3, negative=dict(prompt_tokens=-(10**9), completion_tokens=-5))
USAGES |= dict(words=dict(prompt_tokens="300"), huge=dict(prompt_tokens=10**400), list=[1], nothing=None)


@fault("right", check=all_have_scores, cases=USAGES)
def odd_usage(folder, usage):
    return ask(folder, start_answers(lambda *_: (200, completion(usage=usage or {}))), *MONEY)


PARTS = [dict(type="text", text="4"), dict(type="text", text=" ")]
ODD_CHOICES = dict(index="first", finish_reason=7, logprobs="none")


@fault("right", check=all_have_scores, cases=dict(parts=PARTS, fields=ODD_CHOICES, logprobs=[1]))
def reply_in_another_form(folder, form):
    reply = json.loads(completion(form if form is PARTS else "4"))
    reply["choices"][0] |= form if form is ODD_CHOICES else {}
    reply["choices"][0] |= dict(logprobs=dict(content=form)) if form == [1] else {}
    return ask(folder, start_answers(lambda *_: (200, json.dumps(reply).encode())), "--top", "5")


@fault("error", "HTTP 500", "sample")
def all_fail(folder):
    return ask(folder, start_answers(lambda *_: (500, b"oops")))


@fault("error", "HTTP 401", "bad key")
def key_refused(folder):
    return ask(folder, start_answers(lambda *_: (401, b"bad key")))


# Money


def nothing_is_set_aside(folder, outcome):
    with sqlite3.connect(folder / "mine.jsonl.replies.sqlite") as cache:
        assert cache.execute("select count(*) from pending").fetchone() == (0,)


@fault("error", "did not answer", check=nothing_is_set_aside, limit=20)
def server_whose_name_is_unknown(folder):
    return ask(folder, "http://nowhere.invalid/v1", *MONEY)


@fault("error", "nothing listens at", "start the server", check=nothing_is_set_aside, limit=20)
def server_that_refuses_the_connection(folder):
    return ask(folder, NOWHERE, *MONEY)


@fault("error", "did not answer", "SSL", check=nothing_is_set_aside)
def server_without_tls(folder):
    return ask(folder, start_answers(good).replace("http:", "https:"), *MONEY)


def paid_once(folder, outcome):
    all_have_scores(folder, outcome)
    keys = [asked["idempotency"] for asked in SERVERS[-1].calls]
    assert len(keys) == 7 and len(set(keys)) == 6
    with sqlite3.connect(folder / "mine.jsonl.replies.sqlite") as cache:
        booked = cache.execute("select count(*), round(total(cost), 9) from reply").fetchone()
        assert booked == (6, 0.001812)
    assert "spent 0.001812 in all\n" in outcome.err


@fault("right", check=paid_once)
def reset_after_sending(folder):
    return ask(
        folder, start_answers(lambda asked, number: None if number == 2 else good(asked, number)), *MONEY
    )


MANY = [dict(id=f"t{i}", hypothesis=f"It rained {i} days.", source="Rain fell.") for i in range(40)]


def slow(asked, number):
    time.sleep(0.3)
    return good(asked, number)


def others_at_work(folder, url):
    "Seven more judges of the same texts; each writes a table of its own."
    argv = [word.replace("mine.jsonl", "../mine.jsonl") for word in ask(folder, url, *MONEY, rows=MANY)]
    for i in range(7):
        (folder / f"other{i}").mkdir()
    pool = ThreadPoolExecutor(7)
    AT_WORK[:] = [pool.submit(run_command, argv, folder / f"other{i}", limit=60) for i in range(7)]


AT_WORK = []  # Outcomes of the other judges, when they are done


def eight_have_all_and_paid_once(folder, outcome):
    assert [one.result().code for one in AT_WORK] == [0] * 7, [one.result().err for one in AT_WORK]
    assert min(outcome.seconds, *(one.result().seconds for one in AT_WORK)) > 1, "all eight are at work"
    tables = [scores(path)["value"] for path in (folder, *folder.glob("other?"))]
    assert len(tables) == 8 and all(len(table) == 40 and table.eq(4).all() for table in tables)
    assert len(SERVERS[-1].calls) == 40, "every request is sent once, whoever sends it"
    with sqlite3.connect(folder / "mine.jsonl.replies.sqlite") as cache:
        booked = cache.execute("select count(*), round(total(cost), 9) from reply").fetchone()
    assert booked == (40, round(40 * 0.000302, 9))


@fault("right", check=eight_have_all_and_paid_once, limit=60)
def eight_judges_at_once(folder):
    url = start_answers(slow)
    others_at_work(folder, url)
    return ask(folder, url, *MONEY, rows=MANY)


def told_what_may_be_lost(folder, outcome):
    only_the_bad_one_is_missing(folder, outcome)
    assert "may have been spent for 1 request that got no reply" in outcome.err
    assert sum(map(is_bad, SERVERS[-1].calls)) == 2


@fault("right", check=told_what_may_be_lost)
def reset_every_time(folder):
    return ask(folder, start_answers(odd_for_one(None)), *MONEY, "--retries", "6")


@fault(
    "error",
    "number from 0",
    cases={
        f"{option} {value}": (option, value)
        for option in ("--price-in", "--price-out", "--budget", "--retries")
        for value in ("-1", "nan")
        if (option, value) != ("--retries", "nan")
    },
)
def odd_prices(folder, given):
    return ask(folder, NOWHERE, *MONEY, f"{given[0]}={given[1]}")


# What is wrong before anything is asked


ADDRESSES = ["http://[::1", "ftp://h", "http://h:99999/v1", f"http://{'a' * 70}/v1", "http://h/ v1"]


@fault("error", "--endpoint", cases={url[:24]: url for url in ADDRESSES})
def odd_address(folder, url):
    return ask(folder, url)


@fault("error", "top (--top)", "20", cases={str(top): top for top in (21, 10**9, -1)})
def odd_top(folder, top):
    return ask(folder, NOWHERE, f"--top={top}")


@fault(
    "error",
    "mine.jsonl",
    "row 2",
    "'b'",
    cases=dict(null=None, number=5, list=["x"]),
)
def odd_source(folder, value):
    rows = [dict(id=name, hypothesis="It rained.", source="Rain.") for name in "abc"]
    rows[1]["source"] = value
    return ask(folder, NOWHERE, rows=rows)


@fault("error", "mine.jsonl", "row 3", "hypothesis is missing", cases=dict(send=[], dry=["--dry-run"]))
def null_hypothesis(folder, options):
    rows = [dict(id=name, hypothesis="It rained.", source="Rain.") for name in "ab"]
    return ask(folder, NOWHERE, *options, rows=[*rows, dict(id="c", hypothesis=None, source="x")])


@fault("error", "--out", "scores.xlsx", cases=dict(send=[], dry=["--dry-run"]))
def wrong_ending(folder, options):
    return ask(folder, NOWHERE, *options, "--out", "scores.xlsx")


def other_program(path):
    with sqlite3.connect(path) as database:
        database.execute("create table songs(title text)")


def other_reply_table(path):
    with sqlite3.connect(path) as database:
        database.execute("create table reply(who text)")


CACHES = dict(
    folder=lambda path: path.mkdir(),
    garbage=lambda path: path.write_bytes(b"no database at all" * 100),
    other=other_program,
    other_reply=other_reply_table,
    below_a_file=lambda path: None,
)


@fault("error", "cannot hold replies", "--cache", cases=CACHES)
def cache_that_is_none(folder, make):
    make(folder / "c.sqlite")
    below = "mine.jsonl/c.sqlite" if make is CACHES["below_a_file"] else "c.sqlite"
    return ask(folder, NOWHERE, "--cache", below)


def nothing_was_paid_twice(folder, outcome):
    all_have_scores(folder, outcome)
    assert len(SERVERS[-1].calls) == 6 + 1


@fault("right", check=nothing_was_paid_twice)
def poisoned_cache(folder):
    "A content that an older version kept as good is asked again; the others are not."
    url = start_answers(good)
    run_command(ask(folder, url), folder)
    with sqlite3.connect(folder / "mine.jsonl.replies.sqlite") as cache:
        key = cache.execute("select key from reply limit 1").fetchone()
        cache.execute("update reply set reply=? where key=?", (completion(7).decode(), *key))
    return ask(folder, url)


def what_was_paid_is_delivered(folder, outcome):
    table, calls = scores(folder), SERVERS[-1].calls
    assert 0 < table["value"].notna().sum() < 200 and "can no longer be kept" in outcome.err
    assert table["value"].notna().sum() == len(calls), "every paid reply is in the table"


@fault("right", disk=150_000, check=what_was_paid_is_delivered)
def full_disk(folder):
    rows = [dict(id=f"t{i}", hypothesis=f"It rained {i}.", source="Rain fell.") for i in range(200)]
    return ask(folder, start_answers(good), rows=rows)


def key_is_kept_in_texts(folder, outcome):
    with sqlite3.connect(folder / "mine.jsonl.replies.sqlite") as cache:
        (raw,) = cache.execute("select reply from reply limit 1").fetchone()
    assert "The next exam: 4" in raw and "***" not in raw


@fault("right", check=key_is_kept_in_texts, env=dict(MY_KEY="x"))
def short_key(folder):
    reply = completion("The next exam: 4")
    return ask(folder, start_answers(lambda *_: (200, reply)), "--key-env", "MY_KEY")


@fault("error", "wrong *** in next", env=dict(MY_KEY="x"))
def short_key_in_an_error(folder):
    return ask(folder, start_answers(lambda *_: (401, b"wrong x in next")), "--key-env", "MY_KEY")


def warned_once(folder, outcome):
    assert outcome.err.count("warning: the API key goes to http://nowhere.invalid/v1 over plain http") == 1


@fault("error", "did not answer", check=warned_once, env=dict(MY_KEY="0123456789"), limit=20)
def key_over_plain_http(folder):
    return ask(folder, "http://nowhere.invalid/v1", "--key-env", "MY_KEY")


# Keys that come back, files that are read, and characters that steer a terminal

LONG_KEY = "sk-proj-Zx81/qL\"w0-Vb77'uT+93kkQ=pEe\\RtYy"
PLACES = "error json object content finish no_completion".split()


def pieces_in(text):
    spelled = (LONG_KEY, json.dumps(LONG_KEY)[1:-1], repr(LONG_KEY)[1:-1])
    return [key[i : i + 8] for key in spelled for i in range(len(key) - 7) if key[i : i + 8] in text]


def nothing_of_the_key(folder, outcome):
    table = folder / "scores.csv"
    shown = outcome.out + outcome.err + (table.read_text() if table.exists() else "")
    assert pieces_in(shown) == [], shown


def giving_back(place, pad):
    said = f"{'x' * pad}{LONG_KEY}"
    choice = dict(index=0, message=dict(role="assistant", content="4"), finish_reason="stop")
    if place == "error":
        return 400, said.encode()
    if place == "json":
        return 400, json.dumps(dict(error=dict(message=said))).encode()
    if place == "no_completion":
        return 200, json.dumps(dict(detail=said)).encode()
    if place == "finish":
        choice |= dict(finish_reason=said, message=dict(role="assistant", content=None, refusal="no"))
    else:
        choice["message"]["content"] = dict(note=said) if place == "object" else f"{said} is no grade"
    return 200, json.dumps(dict(choices=[choice])).encode()


CUTS = {f"{place} at {pad}": (place, pad) for place in PLACES for pad in (0, 40, 170)}


@fault("right", check=nothing_of_the_key, env=dict(MY_KEY=LONG_KEY), cases=CUTS)
def a_key_in_the_reply(folder, given):
    return ask(folder, start_answers(odd_for_one(giving_back(*given))), "--key-env", "MY_KEY")


@fault("error", "HTTP 401", "***", check=nothing_of_the_key, env=dict(MY_KEY=LONG_KEY))
def a_key_that_is_refused_and_given_back(folder):
    return ask(folder, start_answers(lambda *_: (401, LONG_KEY[3:].encode())), "--key-env", "MY_KEY")


WITH_KEYS = [
    "http://h/v1#KEY",
    "http://h/v1?k=KEY",
    "http://a:KEY@h/v1",
    "http://h:x/v1#KEY",
    "KEY",
    "h/v1#KEY",
]


@fault(
    "error", "endpoint", check=nothing_of_the_key, env=dict(MY_KEY=LONG_KEY), cases={u: u for u in WITH_KEYS}
)
def an_address_with_a_key(folder, url):
    return ask(folder, url.replace("KEY", LONG_KEY), "--key-env", "MY_KEY")


@fault("error", "--key-env", "not shown", check=nothing_of_the_key)
def a_key_for_the_name_of_its_variable(folder):
    return ask(folder, NOWHERE, "--key-env", LONG_KEY)


def with_reply(**values):
    row = dict(key="k", request='{"path": "/chat/completions"}', reply="{}", cost=0.0) | values

    def make(path):
        with sqlite3.connect(path) as database:
            database.execute("create table reply(key text primary key, request text, reply text, cost real)")
            database.execute("insert into reply values (?,?,?,?)", tuple(row.values()))

    return make


def with_claim(owner, since=1.0, cost=1.0):
    def make(path):
        with_reply()(path)
        with sqlite3.connect(path) as database:
            columns = "id integer primary key, key text, cost real, owner text, since real"
            database.execute(f"create table pending({columns})")
            database.execute("insert into pending values (1, 'k', ?, ?, ?)", (cost, owner, since))

    return make


def cut_short(path):
    with_reply(reply="x" * 100_000)(path)
    path.write_bytes(path.read_bytes()[:5000])


DAMAGED = dict(request_null=with_reply(request=None), reply_null=with_reply(reply=None), cut=cut_short)
DAMAGED |= dict(reply_bytes=with_reply(reply=b"\x00\xff"), request_bytes=with_reply(request=b"{}"))
DAMAGED |= dict(
    cost_text=with_reply(cost="free"), cost_null=with_reply(cost=None), key_null=with_reply(key=None)
)
DAMAGED |= dict(owner_word=with_claim("someone"), owner_pid=with_claim("host many 1 x"))
DAMAGED |= dict(since_text=with_claim("host 1 1 x", "yesterday"), claim_cost=with_claim(None, None, "much"))


@fault("error", "c.sqlite", "cannot hold replies", "Name another file", cases=DAMAGED)
def damaged_cache(folder, make):
    make(folder / "c.sqlite")
    return ask(folder, NOWHERE, "--cache", "c.sqlite")


@fault(
    "error",
    "c.sqlite",
    "is damaged",
    "delete it",
    cases=dict(list="[]", number="3", path='{"path": 7}', text="no"),
)
def cache_with_a_foreign_request(folder, request):
    url = start_answers(good)
    run_command(ask(folder, url, "--cache", "c.sqlite"), folder)
    with sqlite3.connect(folder / "c.sqlite") as cache:
        cache.execute("update reply set request=?", (request,))
    return ask(folder, url, "--cache", "c.sqlite")


def input_kept(folder, outcome):
    assert len((folder / "mine.jsonl").read_text().splitlines()) == 6


OVER_INPUT = dict(cache="mine.jsonl", dot="./mine.jsonl", above="../{folder}/mine.jsonl")


@fault("error", "mine.jsonl", "would be overwritten by --cache", check=input_kept, cases=OVER_INPUT)
def replies_over_the_texts(folder, path):
    return ask(folder, NOWHERE, "--cache", path.format(folder=folder.name))


ODD_NAMES = dict(esc="\x1b[2J", bel="\x1b]0;t\x07", csi="\x9b31m", bidi="\u202ex", cr="a\rb")


def steers_nothing(folder, outcome):
    assert not set("\x1b\x07\x9b\u202e\r") & set(outcome.out + outcome.err), (outcome.out, outcome.err)


@fault("right", check=steers_nothing, cases=ODD_NAMES)
def ids_that_steer_a_terminal(folder, odd):
    rows = [dict(id=f"{word}{odd}", hypothesis=f"It rained {word}.", source="Rain.") for word in WORDS]
    return ask(folder, start_answers(odd_for_one((400, f"no {odd}".encode()))), rows=rows)


@fault("error", "did not answer", check=steers_nothing, cases=ODD_NAMES)
def a_server_that_steers_a_terminal(folder, odd):
    return ask(folder, start_answers(lambda *_: (401, f"no {odd}".encode())))
