"""What a judge behind a server is asked, field by field, and how its replies are read."""

# ruff: noqa: F811

import json
import math
from contextlib import ExitStack

import numpy as np
import pandas as pd
import pytest

from tests.helpers import endpoints as te
from tests.helpers.released import DEFINED, released_prompts  # noqa: F401
from uetrust.cli.cli import main
from uetrust.core.checks import Undefined
from uetrust.generation.endpoint import Endpoint, EndpointError, request_with_key
from uetrust.nlg.judge import JUDGE_SETTINGS_HE2024, judge_prompt
from uetrust.nlg.likelihood import IN_OTHER_WORDS_TEMPLATE, TLDR_TEMPLATE
from uetrust.scoring.generators import GeneratorSettings
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics import judges as jg

CHAT, PLAIN = (Endpoint("http://127.0.0.1:9/v1", "toy", chat=chat, concurrency=1) for chat in (True, False))
TEXTS = pd.DataFrame(
    dict(
        id=["a", "b"],
        hypothesis=["Rain fell.", "Fog."],
        source=["It rained.", "It rose."],
        reference=["Wet.", "Dry."],
    )
)
FIXED = dict(model="toy", n=1, max_tokens=16, temperature=0)


def prompt(i, family="wi_in"):
    shown = {name: TEXTS[name][i] for name in ("hypothesis", "source")}
    return judge_prompt(family, "consistency", shown, "texts_first")


@pytest.fixture
def served(monkeypatch):
    "`served(reply)`: the address of a server that answers `reply(body)`, and the bodies that it got"
    with ExitStack() as stack:

        def start(reply, faults=()):
            monkeypatch.setattr(te, "completion", lambda query, chat: reply(query))
            url, log = stack.enter_context(te.server(list(faults)))
            return url, log["seen"]

        yield start


# Requests
def test_a_question_asks_for_one_greedy_reply_of_16_tokens():
    first, second = jg.judge_requests(CHAT, "wi_in", "consistency", TEXTS)
    assert first.body == FIXED | dict(messages=prompt(0)) and second.body["messages"] == prompt(1)
    assert (first.sample, first.kind, first.first, first.n) == ("a", "wi_in consistency", 0, 1)
    (plain, _) = jg.judge_requests(PLAIN, "wi_in", "consistency", TEXTS)
    assert plain.body == FIXED | dict(prompt=prompt(0)[0]["content"]) and plain.path == "/completions"


def test_likeliest_tokens_are_asked_for_as_each_kind_of_server_takes_it():
    (chat, _), (plain, _) = (
        jg.judge_requests(endpoint, "wi_in", "consistency", TEXTS, top=20) for endpoint in (CHAT, PLAIN)
    )
    assert (chat.body["logprobs"], chat.body["top_logprobs"]) == (True, 20)
    assert plain.body["logprobs"] == 20 and "top_logprobs" not in plain.body
    for top in (-1, 21):
        with pytest.raises(ValueError, match=rf"from 0 to 20: servers give no more; got {top}"):
            jg.judge_requests(CHAT, "wi_in", "consistency", TEXTS, top=top)


def test_further_fields_are_added_and_null_removes_one():
    endpoint = Endpoint("http://127.0.0.1:9/v1", "toy", extra=dict(temperature=None, top_k=1))
    (found, _) = jg.judge_requests(endpoint, "wi_in", "consistency", TEXTS)
    assert found.body == dict(model="toy", n=1, max_tokens=16, top_k=1, messages=prompt(0))


def test_the_released_wording_brings_the_settings_of_the_release(released_prompts):
    released_prompts()
    content = f"C Rain fell.|It rained. fluency {DEFINED['fluency']}"
    first, _ = jg.judge_requests(CHAT, "wi_in", "fluency", TEXTS, "he2024")
    message = dict(messages=[dict(role="user", content=content)])
    assert first.body == JUDGE_SETTINGS_HE2024 | dict(model="toy") | message
    first, _ = jg.judge_requests(PLAIN, "wi_in", "fluency", TEXTS, "he2024", top=5)
    assert first.body == dict(model="toy", temperature=0, seed=42, logprobs=5, prompt=content)


def test_the_command_asks_in_the_released_words_and_keeps_its_replies_apart(
    served, released_prompts, tmp_path, capsys
):
    usage = dict(prompt_tokens=1, completion_tokens=1)
    said = dict(C="Score 7.5 of 10", ours="8")

    def reply(body):
        released = body["messages"][0]["content"].startswith("C ")
        return dict(choices=[dict(message=dict(content=said["C" if released else "ours"]))], usage=usage)

    url, seen = served(reply)
    TEXTS.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "o.csv"
    words = ["judge", str(tmp_path / "t.csv"), "--endpoint", url, "--model", "toy", "--dims", "fluency"]
    words += ["--out", str(out)]
    assert main([*words, "--wording", "he2024"]) == 2 and not seen
    assert "chatGPT_35_def0.py: data not at hand" in capsys.readouterr().err
    released_prompts()
    for wording, value, requests in (("he2024", 7, 2), ("texts_first", 8, 4), ("he2024", 7, 4)):
        assert main([*words, "--wording", wording]) == 0
        table = pd.read_csv(out).set_index("name")
        assert table.loc["judge_wi_in_fluency_he2024", "value"].tolist() == [value] * 2
        assert len(seen) == requests and set(table["variant"]) == {wording}
    assert "max_tokens" not in seen[0] and seen[0]["seed"] == 42 and seen[2]["max_tokens"] == 16
    assert main([*words, "--variants", "he2024", "--max-tokens", "9"]) == 0 and seen[-1]["max_tokens"] == 9


def test_an_ice_request_asks_for_five_tokens_and_their_alternatives():
    found = jg.ice_request(PLAIN, "coherence", 7, "Text: a")
    asked = dict(model="toy", n=1, max_tokens=5, temperature=0, logprobs=5, prompt="Text: a")
    assert found == request_with_key(PLAIN, "7", "ICE coherence", 0, 1, asked)
    more = Endpoint("http://127.0.0.1:9/v1", "toy", chat=False, extra=dict(top_k=1))
    assert jg.ice_request(more, "coherence", 7, "Text: a").body == asked | dict(top_k=1)
    with pytest.raises(ValueError, match="toy is used through its chat, and ICE lets a model complete"):
        jg.ice_request(CHAT, "coherence", 7, "Text: a")


@pytest.mark.parametrize(
    "method, asked",
    [
        ("echo", dict(n=1, max_tokens=1, temperature=0, echo=True, logprobs=0)),
        ("prompt_logprobs", dict(n=1, max_tokens=1, temperature=0, prompt_logprobs=0)),
        ("cohere", dict(max_tokens=0, return_likelihoods="ALL", raw_prompting=True)),
    ],
)
def test_a_given_text_is_asked_for_in_three_ways(monkeypatch, tmp_path, method, asked):
    sent = []

    def replies(endpoint, requests, cache):
        sent.extend(requests)
        return [None, None], {}

    monkeypatch.setattr(jg, "request_replies", replies)
    pairs = [("It rained. ", "Rain"), ("Wet. ", "Fog")]
    assert jg.given_text_logps(PLAIN, pairs, tmp_path / "r.sqlite", method) == [None, None]
    assert [request.body for request in sent] == [
        dict(model="toy", prompt=text) | asked for text in ("It rained. Rain", "Wet. Fog")
    ]
    named = [(request.sample, request.kind, request.first, request.n) for request in sent]
    assert named == [("pair 1", "probability", 0, 1), ("pair 2", "probability", 0, 1)]
    assert {request.path for request in sent} == {"/generate" if method == "cohere" else "/completions"}


# Shown texts
@pytest.mark.parametrize(
    "value, why",
    [
        (None, "is missing"),
        (np.nan, "is missing"),
        (" \n", "is empty"),
        (7, "is 7, not a text"),
        ("half \ud83d", "holds half a character"),
    ],
)
def test_a_text_that_a_judge_is_shown_must_be_one(value, why):
    texts = TEXTS.assign(source=pd.Series(["Grün.", value], dtype=object))
    with pytest.raises(ValueError, match=rf"^mine.csv, row 2 \('b'\): source {why}. The judge needs a text"):
        jg.check_shown_texts(texts, ["wi_in"], "mine.csv")
    with pytest.raises(ValueError, match=r"^row 2 \('b'\): source"):
        jg.check_shown_texts(texts, ["wi_in"])
    jg.check_shown_texts(texts, ["wi_gt"])
    jg.check_shown_texts(TEXTS.drop(columns="source"), ["wi_in"])


def test_a_question_of_ones_own_has_one_place_for_the_source():
    texts = dict(hypothesis=["Rain {source}"], source=["It rained."])
    for own in ("no place", "{source} {source}"):
        with pytest.raises(ValueError, match=r"needs \{source\} exactly once, got"):
            jg.judge_templates("own", "fluency", texts, own)
    found = jg.judge_templates("own", "fluency", texts, "{dim}: {source} | {hypothesis}")
    assert found == [("fluency: {source} | Rain { source}", "It rained.")]
    assert jg.judge_templates("wi_in", "fluency", texts)[0][1] == "It rained."
    gt = jg.judge_templates("wi_gt", "fluency", dict(hypothesis=["Rain"], reference=["Wet."]))
    assert gt[0][1] == "Wet." and "Rain" in gt[0][0] and "{source}" in gt[0][0]
    with pytest.raises(ValueError):
        jg.judge_templates("wi_in", "fluency", dict(hypothesis=["a", "b"], source=["c"]))


# Replies
def listed(*places, chat=True, text="3", **choice):
    "Choice of a reply; a place is (token, likely tokens -> probability)"
    logs = [(token, {other: math.log(p) for other, p in likely.items()}) for token, likely in places]
    if not chat:
        found = dict(
            tokens=[token for token, _ in logs],
            token_logprobs=[likely[token] for token, likely in logs],
            top_logprobs=[likely for _, likely in logs],
        )
        return dict(logprobs=found, text=text) | choice
    content = [
        dict(
            token=token,
            logprob=likely[token],
            top_logprobs=[dict(token=other, logprob=logp) for other, logp in likely.items()],
        )
        for token, likely in logs
    ]
    return dict(index=0, logprobs=dict(content=content), message=dict(content=text)) | choice


def answered(*places, chat=True, scale=(1, 10)):
    "Probability of each answer that has one, or the note"
    try:
        found = jg.answer_logps(jg.reply_candidates(listed(*places, chat=chat)), scale)
    except Undefined as why:
        return str(why)
    return {i + scale[0]: pytest.approx(p) for i, p in enumerate(np.exp(found)) if p}


ONE_OR_NINE = {"1": 0.9, "9": 0.1}


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize(
    "places,found",
    [
        # Candidates that differ in white space are one; of the second place nothing is taken
        ([("3", {"3": 0.5, " 3": 0.25, "4\n": 0.125}), ("9", {"9": 1})], {3: 0.75, 4: 0.125}),
        # A grade of several tokens, and what the server says of their end
        ([("1", ONE_OR_NINE), ("0", {"0": 0.99, "": 0.01})], {1: 0.009, 9: 0.1, 10: 0.891}),
        ([("1", ONE_OR_NINE), ("0", {"0": 0.99})], {9: 0.1, 10: 0.891}),
        ([("1", ONE_OR_NINE), ("<end>", {"0": 0.2, "<end>": 0.7, "5": 0.1})], {1: 0.63, 9: 0.1, 10: 0.18}),
        ([("1", ONE_OR_NINE), ("", {"0": 0.2, "": 0.8})], {1: 0.72, 9: 0.1, 10: 0.18}),
        ([("1", ONE_OR_NINE), (".", {"0": 0.2, ".": 0.8}), ("5", {"5": 1})], {1: 0.72, 9: 0.1, 10: 0.18}),
        ([(" 1", {" 1": 0.6, "1": 0.3, "9": 0.1}), ("0", {"0": 1})], {9: 0.1, 10: 0.9}),
        ([(" ", {" ": 0.8, "7": 0.2}), ("1", ONE_OR_NINE), ("0", {"0": 1})], {7: 0.2, 9: 0.08, 10: 0.72}),
        # What the other reply would have been is not known
        ([("9", ONE_OR_NINE)], "may begin with '1' (probability 0.9), which may be 1 or 10"),
        ([("1", ONE_OR_NINE)], "may begin with '1' (probability 0.9)"),
        ([("9", {"9": 0.99, "1": 0.01})], "may begin with '1' (probability 0.01)"),
        # ... unless its tokenizer has 10 in one piece, or it changes nothing
        ([("9", {"1": 0.2, "9": 0.5, "10": 0.3})], {1: 0.2, 9: 0.5, 10: 0.3}),
        ([("9", {"9": 0.9999, "1": 0.0001})], {9: 0.9999}),
        # Other words are no answers, and neither are other numbers
        ([("9", {"9": 0.6, "The": 0.2, "11": 0.1, "0": 0.05, "99": 0.05})], {9: 0.6}),
    ],
)
def test_probabilities_of_answers_are_multiplied_along_their_tokens(places, found, chat):
    assert answered(*places, chat=chat) == found if isinstance(found, dict) else found in answered(*places)


def test_a_scale_without_such_beginnings_needs_the_first_token_only():
    assert answered(("4", {"4": 0.5, "1": 0.5}), scale=(1, 5)) == {1: 0.5, 4: 0.5}


def test_the_expected_grade_of_ten_in_two_tokens(served, tmp_path):
    "1.80 by the first token; 8.91 + .009 + .9 along both; missing where the other token may be anything"
    two = listed(("1", ONE_OR_NINE), ("0", {"0": 0.99, "": 0.01}), text="10")
    one = listed(("9", ONE_OR_NINE), text="9")

    def reply(body):
        choice = two if "Fog" in body["messages"][0]["content"] else one
        return dict(choices=[choice], usage=dict(prompt_tokens=1, completion_tokens=1))

    url, _ = served(reply)
    asked = te.endpoint(url), [("wi_in", "consistency")], TEXTS, tmp_path / "r.sqlite"
    table = jg.judge_scores(*asked, top=5, progress=False).table.set_index(["name", "sample"])
    expected = table.loc["judge_wi_in_consistency_expected"]
    assert expected["value"]["b"] == pytest.approx(9.819) and np.isnan(expected["value"]["a"])
    assert "may be 1 or 10" in expected["note"]["a"] and not expected["note"]["b"]
    assert table.loc["judge_wi_in_consistency", "value"].to_dict() == dict(a=9, b=10)


def test_a_grade_that_was_cut_is_missing_and_counted(served, tmp_path, capsys):
    "More might follow, such as a half or another grade; its tokens have their probabilities all the same"
    whole, cut = (listed(("8", {"8": 1}), text="8", finish_reason=why) for why in ("stop", "length"))
    url, seen = served(
        lambda body: dict(
            choices=[cut if "Fog" in body["messages"][0]["content"] else whole],
            usage=dict(prompt_tokens=1, completion_tokens=1),
        )
    )
    TEXTS.to_csv(tmp_path / "t.csv", index=False)
    words = ["judge", str(tmp_path / "t.csv"), "--endpoint", url, "--model", "toy", "--dims", "fluency"]
    assert main([*words, "--top", "5", "--out", str(tmp_path / "o.csv")]) == 0
    said = capsys.readouterr()
    table = pd.read_csv(tmp_path / "o.csv").set_index(["name", "sample"])
    for name in ("judge_wi_in_fluency", "judge_wi_in_fluency_he2024"):
        assert np.isnan(table.at[(name, "b"), "value"]) and table.at[(name, "a"), "value"] == 8
        assert "cut at its greatest length" in table.at[(name, "b"), "note"]
    assert table.loc["judge_wi_in_fluency_expected", "value"].tolist() == [8, 8]
    assert "1 of 2 replies were cut at their greatest length and have no grade" in said.err
    assert "the first that of 'b': allow more with --max-tokens" in said.err
    assert main([*words, "--max-tokens", "99"]) == 0 and seen[-1]["max_tokens"] == 99


@pytest.mark.parametrize(
    "ids,shown", [(["a", "a"], "a"), ([1, "1"], "1 and '1'"), (["a", "b", "a"], "a"), ([7, 7], "7")]
)
def test_two_texts_of_one_id_are_refused_before_anything_is_sent(served, tmp_path, capsys, ids, shown):
    url, seen = served(lambda body: pytest.fail("was sent"))
    file = tmp_path / "t.jsonl"
    rows = [dict(id=name, hypothesis=f"Rain {i}.", source="It rained.") for i, name in enumerate(ids)]
    file.write_text("\n".join(map(json.dumps, rows)))
    for more in ([], ["--dry-run", "--price-in", "1"]):
        assert main(["judge", str(file), "--endpoint", url, "--model", "toy", *more]) == 2
        said = capsys.readouterr().err
        assert f"these occur twice: {shown}. Rename them, or leave the repeated rows out" in said
    with pytest.raises(ValueError, match="occur twice"):
        texts = pd.DataFrame(rows)
        jg.judge_scores(te.endpoint(url), [("wi_in", "fluency")], texts, tmp_path / "r.sqlite")
    with pytest.raises(ValueError, match="occur twice"):
        compute_metrics(pd.DataFrame(rows), {}, ["output_length"], progress=False)
    assert not seen


def replied(*choices):
    def ask(endpoint, requests, cache):
        refused = {request.sample: "no" for request, choice in zip(requests, choices) if choice is None}
        return [choice and dict(choices=[choice, {}]) for choice in choices], refused

    return ask


def test_replies_of_a_server_are_statistics_by_question():
    watched = []
    first = listed(("1", {"1": 0.5, "10": 0.25}))
    silent = dict(message=dict(content=None), finish_reason="length")
    found, refused = jg.remote_judge_statistics(
        CHAT, [("wi_in", "consistency")], TEXTS, "", top=5, watch=watched.append, ask=replied(first, silent)
    )
    assert found["reply_wi_in_consistency"] == ["3", None] and watched == [2]
    one, none = found["answers_wi_in_consistency"]
    assert none is None and np.exp(one).tolist() == pytest.approx([0.5, *[0] * 8, 0.25])
    why = dict(b="the reply has no text (finish_reason 'length')")
    assert refused == {"wi_in_consistency": why}
    plain, refused = jg.remote_judge_statistics(
        PLAIN, [("wo", "fluency")], TEXTS, "", ask=replied(None, dict(text="4"))
    )
    assert plain == dict(reply_wo_fluency=[None, "4"]) and refused == dict(wo_fluency=dict(a="no"))


def test_every_wording_is_asked_about_every_text(served, tmp_path):
    def reply(body):
        said = "7" if "Fog" in body["messages"][0]["content"] else "3"
        return dict(
            choices=[dict(index=0, message=dict(content=said))],
            usage=dict(prompt_tokens=1, completion_tokens=1),
        )

    url, got = served(reply)
    asked = [("wi_in", "consistency")]
    found = jg.judge_scores(
        te.endpoint(url), asked, TEXTS, tmp_path / "r.sqlite", ("texts_first", "rater"), progress=False
    )
    table = found.table
    strict = table[table["name"] == "judge_wi_in_consistency"]
    assert strict["variant"].tolist() == ["texts_first"] * 2 + ["rater"] * 2
    assert strict["value"].tolist() == [3, 7, 3, 7] and strict["sample"].tolist() == list("abab")
    assert list(table.index) == list(range(len(table))) and len(got) == 4
    assert list(table) == ["variant", "sample", "name", "value", "note"] and found.refused == {}
    assert set(table["name"]) == {"judge_wi_in_consistency", "judge_wi_in_consistency_he2024"}
    effects = jg.wording_effects(table.iloc[::-1].reset_index(drop=True))
    assert effects["wordings"].tolist() == [2, 2] and effects["texts"].tolist() == [2, 2]
    assert effects["name"].tolist() == list(dict.fromkeys(table["name"][::-1])), "in the order of the table"
    assert effects["sd"].tolist() == [0, 0] and effects["share"].tolist() == [0, 0]


def test_completions_are_read_from_the_cache_where_nothing_is_sent(served, tmp_path):
    url, got = served(
        lambda body: dict(
            choices=[dict(index=0, text="yes"), dict(index=1, text="no")], usage=dict(prompt_tokens=9)
        ),
    )
    plain = te.endpoint(url, chat=False)
    requests = [
        request_with_key(plain, name, "q", 0, 1, dict(model="toy", n=1, prompt=name)) for name in "ab"
    ]
    cache = tmp_path / "r.sqlite"
    nothing = jg.request_completions(plain, requests, cache, send=False, progress=False)
    assert got == [] and nothing["why"].tolist() == ["not asked"] * 2 and nothing["reply"].isna().all()
    assert nothing["tokens"].isna().all()
    one = jg.request_completions(plain, requests[:1] * 2, cache, progress=False)
    assert len(got) == 1 and one.to_dict("list") == dict(reply=["yes"] * 2, why=[""] * 2, tokens=[9, 9])
    kept = jg.request_completions(plain, requests, cache, send=False, progress=False)
    assert len(got) == 1 and kept["why"].tolist() == ["", "not asked"]


def test_completions_of_ice_are_read_or_refused(monkeypatch):
    monkeypatch.setattr(jg, "request_replies", replied(dict(text=" 5"), None))
    examples = [dict(hypothesis="Snow.", score=0.5, source="Snow fell.")]
    found, why = jg.ice_replies(PLAIN, "coherence", examples, TEXTS, "")
    assert found == dict(reply_ice_coherence=[" 5", None]) and why == dict(b="no")


# Given texts
def echo(tokens, logps, **more):
    return dict(choices=[dict(text="", logprobs=dict(tokens=tokens, token_logprobs=logps) | more), {}])


PROMPT, TEXT = "It TL;DR: rain fell", "rain fell"
WORDS, LOGPS = ["It", " TL;DR: ", "rain", " fell", "."], [None, -1.0, -0.5, -0.25, -9.0]


def read(reply, prompt=PROMPT, text=TEXT):
    return jg.text_token_logps(jg.prompt_token_logps(reply), prompt, text).tolist()


def test_the_token_that_was_written_is_no_part_of_a_given_text():
    "A server that counts the tokens of the prompt says where it ends; else the last token was written."
    assert read(echo(WORDS, LOGPS) | dict(usage=dict(prompt_tokens=4))) == [-0.5, -0.25]
    assert read(echo(WORDS, LOGPS)) == read(echo(WORDS, LOGPS) | dict(usage=None)) == [-0.5, -0.25]
    offsets = [0, 2, 10, 14, 19]
    assert read(echo(WORDS, LOGPS, text_offset=offsets)) == [-0.5, -0.25]
    assert [begin for *_, begin in jg.prompt_token_logps(echo(WORDS, LOGPS, text_offset=offsets))] == offsets[
        :4
    ]
    assert [begin for *_, begin in jg.prompt_token_logps(echo(WORDS, LOGPS))] == [None] * 4


def test_a_token_that_begins_before_the_text_and_ends_in_it_counts():
    joined = echo(["It", " TL;DR: ra", "in fell", "."], [None, -1.0, -0.5, -9.0])
    assert read(joined) == [-1.0, -0.5]
    assert read(joined | dict(), text=" fell") == [-0.5]


@pytest.mark.parametrize(
    "words, logps", [(["rain", " fell", "."], [None, -0.5, -9.0]), (["x", "."], [-1.0, -9.0])]
)
def test_a_text_that_nothing_precedes_has_no_probability(words, logps):
    with pytest.raises(Undefined, match="did not give the whole text back"):
        read(echo(words, logps), "rain fell", "rain fell" if len(words) > 2 else "")


def test_a_server_that_lists_no_probability_is_named():
    for reply in (dict(choices=[dict(text="a")]), dict(choices=[dict(text="a", logprobs=None)])):
        with pytest.raises(EndpointError, match="it must echo the prompt of a completion with its logprobs"):
            jg.prompt_token_logps(reply)


def test_gpt_score_asks_for_the_summary_behind_each_reference(monkeypatch):
    asked = []

    def given(endpoint, pairs, cache, method):
        asked.append(pairs)
        return [np.array([-float(i)]) for i in range(len(pairs))]

    monkeypatch.setattr(jg, "given_text_logps", given)
    found = jg.echo_statistics(PLAIN, TEXTS.assign(reference=[["Wet.", "Moist."], "Dry."]), "")
    assert asked == [
        [("It rained." + TLDR_TEMPLATE, "rain fell."), ("It rose." + TLDR_TEMPLATE, "fog.")],
        [
            ("Wet." + IN_OTHER_WORDS_TEMPLATE, "rain fell."),
            ("Moist." + IN_OTHER_WORDS_TEMPLATE, "rain fell."),
            ("Dry." + IN_OTHER_WORDS_TEMPLATE, "fog."),
        ],
    ]
    assert [[logp.tolist() for logp in row] for row in found["echo_logp_reference_hypothesis"]] == [
        [[0.0], [-1.0]],
        [[-2.0]],
    ]
    assert set(jg.echo_statistics(PLAIN, TEXTS[["hypothesis", "source"]], "")) == {
        "echo_logp_source_hypothesis"
    }


def test_a_judge_of_settings_is_named_by_its_model_and_revision():
    for settings, name in (
        (dict(model="m", revision="r"), "m"),
        (dict(serve="s"), "s"),
        (dict(model="m", serve="s"), "m"),
    ):
        judge = jg.JudgeServer(GeneratorSettings("g", **settings), "replies.sqlite")
        assert (judge.name, judge.version) == (name, settings.get("revision", ""))
    assert judge != jg.JudgeServer(judge.generator, judge.replies), "each is a model of its own"


def test_a_server_of_settings_answers_by_the_number_of_a_text(served, tmp_path):
    usage = dict(prompt_tokens=1, completion_tokens=1)

    def reply(body):
        said = "7" if "Fog" in body["messages"][0]["content"] else "6"
        return dict(choices=[dict(index=0, message=dict(content=said))], usage=usage)

    url, _ = served(reply, [(400, {}, "too long")])
    settings = GeneratorSettings("g", model="toy", endpoint=url, concurrency=1)
    judge = jg.JudgeServer(settings, str(tmp_path / "r.sqlite"))
    texts = dict(hypothesis=["Rain.", "Fog.", "Snow."], source=["A.", "B.", "C."])
    found, cut = jg.server_judge_statistics(judge, ["reply_wi_in_consistency"], texts)
    first, second, third = found["reply_wi_in_consistency"]
    assert (second, third, cut) == ("7", "6", {}) and isinstance(first, Undefined)
    assert str(first).startswith("the judge gave no reply: ") and "too long" in str(first)


@pytest.mark.parametrize(
    "tokens, exclusive",
    [
        ([[1], [1, 2], [1, 2, 3], [4]], [0.3, 0.2, 0.1, 0.05]),
        ([[1], [1], [1, 2], [4]], [0.4, 0.1, 0.2, 0.05]),
    ],
)
def test_an_answer_is_counted_without_the_next_longer_ones(tokens, exclusive):
    logp = np.log([0.6, 0.3, 0.1, 0.05]) if len(tokens[1]) == 2 else np.log([0.6, 0.3, 0.2, 0.05])
    assert np.exp(jg.exclusive_answer_logps(logp, tokens)).tolist() == pytest.approx(exclusive)


def test_an_answer_that_is_always_continued_has_no_probability():
    found = jg.exclusive_answer_logps(np.log([0.2, 0.3]), [[1], [1, 2]])
    assert found[0] == -np.inf and math.exp(found[1]) == pytest.approx(0.3)
