"""What a judge behind a server is asked, field by field, and how its replies are read."""

import math
from contextlib import ExitStack

import numpy as np
import pandas as pd
import pytest
import test_endpoint as te

from uetrust.core.checks import Undefined
from uetrust.generation.endpoint import Endpoint, EndpointError, request_with_key
from uetrust.nlg.judge import judge_prompt
from uetrust.nlg.likelihood import IN_OTHER_WORDS_TEMPLATE, TLDR_TEMPLATE
from uetrust.scoring import judges as jg
from uetrust.scoring.generators import GeneratorSettings

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


def test_an_ice_request_asks_for_five_tokens_and_their_alternatives():
    found = jg.ice_request(PLAIN, "coherence", 7, "Text: a")
    asked = dict(model="toy", n=1, max_tokens=5, temperature=0, logprobs=5, prompt="Text: a")
    assert found == request_with_key(PLAIN, "7", "ICE coherence", 0, 1, asked)
    more = Endpoint("http://127.0.0.1:9/v1", "toy", chat=False, extra=dict(top_k=1))
    assert jg.ice_request(more, "coherence", 7, "Text: a").body == asked | dict(top_k=1)
    with pytest.raises(ValueError, match="toy is asked through its chat, and ICE lets a model complete"):
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
def listed(*tokens, chat=True):
    if not chat:
        return dict(logprobs=dict(top_logprobs=[dict(tokens), {"9": 0.0}]), text="3")
    found = [dict(token=token, logprob=logp) for token, logp in tokens]
    other = dict(top_logprobs=[dict(token="9", logprob=0.0)])
    return dict(logprobs=dict(content=[dict(top_logprobs=found), other]), message=dict(content="3"))


@pytest.mark.parametrize("chat", [True, False])
def test_probabilities_of_the_first_token_add_up_over_white_space(chat):
    choice = listed(("3", math.log(0.5)), (" 3", math.log(0.25)), ("4\n", math.log(0.125)), chat=chat)
    found = {token: math.exp(logp) for token, logp in jg.first_token_logps(choice).items()}
    assert found == pytest.approx({"3": 0.75, "4": 0.125})
    assert jg.first_token_logps(dict(logprobs=None)) == jg.first_token_logps({}) == {}


def replied(*choices):
    def ask(endpoint, requests, cache):
        refused = {request.sample: "no" for request, choice in zip(requests, choices) if choice is None}
        return [choice and dict(choices=[choice, {}]) for choice in choices], refused

    return ask


def test_replies_of_a_server_are_statistics_by_question():
    watched = []
    first = listed(("1", math.log(0.5)), ("10", math.log(0.25)))
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
    table = jg.judge_scores(
        te.endpoint(url), asked, TEXTS, tmp_path / "r.sqlite", ("texts_first", "rater"), progress=False
    )
    strict = table[table["name"] == "judge_wi_in_consistency"]
    assert strict["variant"].tolist() == ["texts_first"] * 2 + ["rater"] * 2
    assert strict["value"].tolist() == [3, 7, 3, 7] and strict["sample"].tolist() == list("abab")
    assert list(table.index) == list(range(len(table))) and len(got) == 4
    assert list(table) == ["variant", "sample", "name", "value", "note"] and table.attrs["refused"] == {}
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
