"""Server: stop strings, several prompts, contents in parts, and the bytes and places of tokens."""

import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests.helpers.requested import GOOD, TALK, ask, joined, post, streamed, texts
from tests.helpers.writers import tiny
from uetrust.generation import serve as server
from uetrust.generation.serve import running_server
from uetrust.models.load import load_model

LLAMA = Path(__file__).parents[2] / "data" / "models" / "tiny-llama"
PROMPTS = ["The council", "On Monday the mayor said that", "Summary:"]
WRITE = dict(prompt=PROMPTS[0], max_tokens=24, temperature=0)
BULLETIN = "Summarize: Mr Usher said on Monday that the council set aside 220 thousand euros for the stage."
TALKED = dict(messages=[dict(role="user", content=BULLETIN)], max_tokens=24, temperature=0)


@pytest.fixture(scope="module")
def model():
    return load_model(str(LLAMA))


@pytest.fixture(scope="module")
def url(model):
    with running_server(model, "tiny") as address:
        yield address


@pytest.fixture(scope="module")
def whole(url):
    "The greedy text and its tokens, without a stop string"
    (choice,) = ask(url, **WRITE, logprobs=1)["choices"]
    assert len(choice["text"]) > 60 and choice["finish_reason"] == "length"
    return choice


# (a) Stop strings


def stop_strings(text):
    "Parts of a text of 1 to 12 letters: within a token, whole tokens, across several"
    return [text[start : start + size] for start in range(0, 40, 7) for size in (1, 2, 5, 12)]


def test_a_text_ends_before_the_first_stop_string(url, whole):
    for stop in stop_strings(whole["text"]):
        (choice,) = ask(url, **WRITE, stop=stop)["choices"]
        expected = (whole["text"].split(stop)[0], "stop")
        assert (choice["text"], choice["finish_reason"]) == expected, stop


def test_of_several_stop_strings_the_one_that_is_complete_first_counts(url, whole):
    text = whole["text"]  # set aside 220 thousand euros for the historic stage. ...
    for stops, cut in (
        (["thousand", "aside"], 4),
        (["aside 220 thousand euros", "thou"], 14),  # The longer one begins before and is complete later
        (["thousand", "hou"], 15),  # The same within a token
        (["d e", "and"], 19),
        (["and", "sand"], 18),  # Both are complete at once
        (["@", "220"], 10),
    ):
        assert texts(ask(url, **WRITE, stop=stops)) == [text[:cut]]


def test_a_stop_string_that_does_not_appear_changes_nothing(url, whole):
    (choice,) = ask(url, **WRITE, stop=["@", "zzz"] * 8, logprobs=1)["choices"]
    assert choice == whole


@pytest.mark.parametrize("stop,tokens", [("thou", 4), ("for", 6), ("euros for", 6)])
def test_no_token_is_written_after_the_stop_string(url, monkeypatch, stop, tokens):
    steps, real = [], server.decode_batch

    def counted(model, ids_of, settings, keys, stopping):
        def step(*values, **options):
            steps.append(1)
            return stopping[0](*values, **options)

        return real(model, ids_of, settings, keys, [step])

    monkeypatch.setattr(server, "decode_batch", counted)
    used = ask(url, **WRITE, stop=stop)["usage"]["completion_tokens"]
    assert used == tokens and len(steps) == tokens


@pytest.mark.parametrize("kind", ["llama", "bart", "t5"])
def test_each_of_n_texts_has_its_own_end(kind):
    fields, stops = dict(prompt="w3 w9 w20 w4", n=16, seed=3, max_tokens=20, logprobs=0), ["w3", "w40"]
    with running_server(tiny(kind), "tiny") as url:
        free, ended = (ask(url, **fields, **stop) for stop in ({}, dict(stop=stops)))
    cuts = 0
    for before, after in zip(free["choices"], ended["choices"]):
        cut = min(len(before["text"].split(stop)[0]) for stop in stops)
        assert after["text"] == before["text"][:cut]
        assert after["finish_reason"] == ("stop" if cut < len(before["text"]) else before["finish_reason"])
        n = len(after["logprobs"]["tokens"])
        assert after["logprobs"]["tokens"] == before["logprobs"]["tokens"][:n]
        cuts += cut < len(before["text"])
    assert 3 < cuts < 16
    tokens = [choice["logprobs"]["tokens"] for choice in free["choices"]]
    assert not any("</s>" in of_text[:-1] for of_text in tokens), "nothing comes after an end"
    assert kind != "t5" or any(of_text[-1] == "</s>" for of_text in tokens)
    assert ended["usage"]["completion_tokens"] < free["usage"]["completion_tokens"]


def test_log_probabilities_end_with_the_text(url, whole):
    for stop in stop_strings(whole["text"]):
        reply = ask(url, **WRITE, stop=stop, logprobs=1)
        (choice,), at = reply["choices"], whole["text"].find(stop)
        kept = [start for start in whole["logprobs"]["text_offset"] if start < at]
        assert choice["logprobs"]["text_offset"] == kept, "those that begin before the stop string"
        found = choice["logprobs"]["token_logprobs"]
        np.testing.assert_allclose(found, whole["logprobs"]["token_logprobs"][: len(kept)], atol=1e-5)
        assert len(kept) <= reply["usage"]["completion_tokens"] <= 24


@pytest.mark.parametrize("chat", [True, False])
def test_a_text_that_is_empty_before_its_stop_string_has_no_tokens(url, chat):
    fields = TALKED if chat else WRITE
    first = texts(ask(url, chat, **fields))[0][0]
    reply = ask(url, chat, **fields, stop=first, logprobs=True if chat else 1)
    (choice,) = reply["choices"]
    assert texts(reply) == [""] and choice["finish_reason"] == "stop"
    assert choice["logprobs"]["content" if chat else "tokens"] == []


@pytest.mark.parametrize("chat", [True, False])
def test_a_stream_ends_before_the_stop_string_too(url, chat):
    fields = TALKED if chat else WRITE
    (text,) = texts(ask(url, chat, **fields))
    for stop in (text[10:12], text[7:25], [text[12:14] + "@", text[20:24]]):
        (choice,) = ask(url, chat, **fields, stop=stop)["choices"]
        found = joined(streamed(url, chat, **fields, stop=stop))
        assert found == [(texts(dict(choices=[choice]))[0], "stop")]


def sent(shown, stops, end):
    found = []
    pieces = server._Pieces(lambda i, text: found.append(text), stops)
    for text in shown:
        pieces.see(0, text)
    pieces.end(0, end)
    return found


def test_what_may_begin_a_stop_string_waits():
    shown = ["It is EN", "It is ENOUGH to", "It is ENOUGH to END", "It is ENOUGH to END now"]
    # The last three letters wait in any case
    assert sent(shown, ["END now"], "It is ENOUGH to ") == ["It is", " ENOUGH", " to ", "", ""]
    assert sent(shown, ["UGH now"], shown[-1]) == ["It is", " ENO", "UGH to ", "END ", "now"]
    assert sent(["abab", "ababab", "abababd..."], ["ababc"], "abababd...") == ["", "", "abababd", "..."]


def test_memory_that_ends_repeats_no_stop(url, monkeypatch):
    fields = dict(prompt=PROMPTS[0], n=4, seed=1, max_tokens=12, stop=["e"])
    expected, real = texts(ask(url, **fields)), server.decode_batch

    def twice(model, ids_of, settings, keys, *rest):
        found = real(model, ids_of, settings, keys, *rest)
        if len(keys[0]) > 1:
            raise MemoryError
        return found

    def halved(run, rows):
        try:
            return run(rows)
        except MemoryError:
            return [text for row in rows for text in run([row])]

    monkeypatch.setattr(server, "decode_batch", twice)
    monkeypatch.setattr(server, "halve_when_out_of_memory", halved)
    assert texts(ask(url, **fields)) == expected
    assert [text for text, _ in joined(streamed(url, **fields), 4)] == expected


# (b) Prompts


@pytest.mark.parametrize("fields", [dict(n=3, seed=5), dict(temperature=0, echo=True, logprobs=2)])
def test_several_prompts_are_answered_as_each_alone(url, fields):
    alone = [ask(url, prompt=prompt, max_tokens=8, **fields) for prompt in PROMPTS]
    reply = ask(url, prompt=PROMPTS, max_tokens=8, **fields)
    choices = [choice for one in alone for choice in one["choices"]]
    assert [choice["index"] for choice in reply["choices"]] == list(range(len(choices)))
    assert [choice | dict(index=0) for choice in reply["choices"]] == [
        choice | dict(index=0) for choice in choices
    ]
    assert reply["usage"] == {name: sum(one["usage"][name] for one in alone) for name in reply["usage"]}


def test_token_ids_are_taken_as_they_are(url, model):
    ids = [model.tokenizer(prompt).input_ids for prompt in PROMPTS]
    fields = dict(max_tokens=8, temperature=0, logprobs=1)
    of_text, of_ids = ask(url, prompt=PROMPTS, **fields), ask(url, prompt=ids, **fields)
    assert of_text["choices"] == of_ids["choices"] and of_text["usage"] == of_ids["usage"]
    assert ask(url, prompt=ids[0], **fields)["choices"] == of_text["choices"][:1]
    bare = ask(url, prompt=ids[0][1:], **fields)  # Without the start token that a text gets
    assert bare["usage"]["prompt_tokens"] == len(ids[0]) - 1 and texts(bare) != texts(of_text)[:1]


def test_token_ids_are_echoed_as_their_text(url, model):
    ids = model.tokenizer("The café costs 5 €").input_ids
    (choice,) = ask(url, prompt=[ids], max_tokens=1, temperature=0, echo=True, logprobs=1)["choices"]
    found = choice["logprobs"]
    assert choice["text"].startswith("The café costs 5 €")
    assert len(found["tokens"]) == len(found["text_offset"]) == len(ids) + 1
    euro = [start for start, i in zip(found["text_offset"], ids) if "âĤ¬" in model.tokenizer.decode([i])]
    assert found["text_offset"][-1] == len("The café costs 5 €") and not euro
    assert found["text_offset"][:2] == [0, 0] and sorted(found["text_offset"]) == found["text_offset"]


@pytest.mark.parametrize("n", [1, 2])
def test_several_prompts_are_streamed(url, n):
    fields = dict(prompt=PROMPTS, n=n, seed=2, max_tokens=8, echo=True, stop=["e "])
    whole = ask(url, **fields)
    chunks = streamed(url, **fields, stream_options=dict(include_usage=True))
    expected = [(choice["text"], choice["finish_reason"]) for choice in whole["choices"]]
    assert joined(chunks[:-1], 3 * n) == expected and chunks[-1]["usage"] == whole["usage"]


@pytest.mark.parametrize(
    "fields,says",
    [
        (dict(prompt=["a"] * 129), "has 129 prompts, but a request may have 128"),
        (dict(prompt=["a", "b" * 30_000]), "prompt[1] has 30000 letters, but 16384 could fit"),
        (dict(prompt=["a", "b " * 400]), "prompt[1] has"),
        (dict(prompt=[[1, 2], [900]]), "prompt[1] has token id 900, but this model has 0 to 899"),
        (dict(prompt=[1, -1]), "prompt has token id -1"),
        (dict(prompt=[1] * 252, max_tokens=5), "prompt has 252 tokens, but 251 fit"),
        (dict(prompt=[[1] * 246] * 99, max_tokens=9), "the first 65 prompts with their texts are 16575 "),
        (dict(prompt=["a", "b"], n=128, max_tokens=100), "the first 2 prompts with their texts"),
    ],
)
def test_prompts_that_are_too_many_or_wrong_are_named(url, fields, says):
    status, reply = post(url, GOOD | fields)
    assert (status, reply["error"]["param"]) == (400, "prompt") and says in reply["error"]["message"]


def test_no_more_prompts_are_tokenized_than_may_be_answered(url, monkeypatch):
    tokenized, real = [], server.encode_prompt
    monkeypatch.setattr(server, "encode_prompt", lambda *args: tokenized.append(1) or real(*args))
    status, _ = post(url, GOOD | dict(prompt=["the mayor " * 60] * 128, max_tokens=0, echo=True))
    assert status == 400 and 1 < len(tokenized) < 128


def test_nothing_is_scored_for_a_client_that_has_left(model, monkeypatch):
    scored, looks, real = [], [], server.score_tokens

    def leave():
        looks.append(1)
        if len(looks) == 3:
            raise ConnectionAbortedError

    monkeypatch.setattr(
        server, "score_tokens", lambda *args, **options: scored.append(1) or real(*args, **options)
    )
    fields = dict(model="tiny", prompt=PROMPTS * 9, max_tokens=0, echo=True, logprobs=0)
    with pytest.raises(ConnectionAbortedError):
        server._completion_reply(model, "tiny", fields, False, leave)
    assert len(scored) == 2


# (c) Messages


def test_a_content_in_parts_is_their_text_together(url):
    def answered(content):
        talk = dict(messages=[dict(role="user", content=content)], max_tokens=8, seed=1)
        return post(url, TALK | talk, "/chat/completions")

    parts = [dict(type="text", text=text) for text in ("Summarize: the co", "uncil met", ".")]
    (status, in_parts), (_, whole) = answered(parts), answered("Summarize: the council met.")
    assert status == 200 and in_parts | dict(id="") == whole | dict(id="")


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file", "refusal", ""])
def test_a_part_that_is_no_text_is_named(url, kind):
    content = [dict(type="text", text="w3"), {"type": kind, kind or "x": dict(url="https://example.org")}]
    talk = dict(messages=[dict(role="user", content="w3"), dict(role="user", content=content)])
    status, reply = post(url, TALK | talk, "/chat/completions")
    assert (status, reply["error"]["param"]) == (400, "messages")
    assert f"a part of type {kind!r}" in reply["error"]["message"]


# (d) Bytes and places of tokens

HARD = "naïve café, 5 € — 日本語 and 🤖!\n\nEnd"


def sentencepiece():
    "A tokenizer that writes spaces as ▁ and unknown letters as bytes"
    letters = {f"<0x{byte:02X}>": byte for byte in range(256)}
    pieces = letters | {piece: 256 + k for k, piece in enumerate(["<unk>", "▁", "a", "n", "d", "E"])}
    words = Tokenizer(models.BPE(pieces, [], unk_token="<unk>", byte_fallback=True))
    words.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    words.decoder = decoders.Sequence(parts)
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>")


@pytest.mark.parametrize("kind", ["byte-level", "sentencepiece"])
def test_bytes_of_tokens_together_are_those_of_the_text(model, kind):
    tokenizer = model.tokenizer if kind == "byte-level" else sentencepiece()
    name, ids = server._token_names(tokenizer), tokenizer(HARD, add_special_tokens=False).input_ids
    together = b"".join(name(i)[1] for i in ids).decode()
    assert together.removeprefix(" ") == HARD
    halves = [token for token, raw in map(name, ids) if raw not in (token.encode(), f" {token}".encode())]
    assert len(halves) > 8 and set(halves) == {"\ufffd"} or kind != "byte-level"


def test_special_and_unknown_tokens_have_bytes(model):
    name = server._token_names(model.tokenizer)
    assert name(1) == ("<s>", b"<s>") and name(10**6) == ("", b"")
    assert server._token_names(tiny("llama").tokenizer)(8) == ("w3", b"w3")


def test_every_token_of_a_chat_has_its_bytes(url):
    (choice,) = ask(url, True, max_tokens=20, temperature=0, logprobs=True, top_logprobs=3)["choices"]
    content = choice["logprobs"]["content"]
    together = b"".join(bytes(token["bytes"]) for token in content).decode()
    assert together.removesuffix("</s>").lstrip() == choice["message"]["content"]
    for token in content:
        assert len(token["top_logprobs"]) == 3
        for entry in (token, *token["top_logprobs"]):
            assert bytes(entry["bytes"]).decode("utf-8", "replace").strip() == entry["token"].strip()


def test_of_tokens_with_the_same_text_the_more_probable_one_counts():
    rows, top = [(3, -0.5, [(3, -0.5), (4, -1.5), (5, -2.5)])], 3
    of = server._client_logprobs(
        {3: ("\ufffd", b"\xe2"), 4: ("\ufffd", b"\x82"), 5: ("a", b"a")}.get, rows, top, False
    )
    assert of["top_logprobs"] == [{"\ufffd": -0.5, "a": -2.5}]


def test_tokens_begin_where_their_letters_stand(url, whole):
    found = whole["logprobs"]
    for token, start in zip(found["tokens"], found["text_offset"]):
        assert whole["text"][start:].startswith(token.strip())
    (echoed,) = ask(url, **WRITE, logprobs=1, echo=True)["choices"]
    shift = len(PROMPTS[0])
    ours = [start - shift for start in echoed["logprobs"]["text_offset"] if start >= shift]
    assert ours == found["text_offset"]


@pytest.mark.parametrize("kind", ["byte-level", "sentencepiece"])
def test_a_letter_of_several_tokens_has_one_place(model, kind):
    class Of:
        tokenizer = model.tokenizer if kind == "byte-level" else sentencepiece()

    ids = Of.tokenizer(HARD, add_special_tokens=False).input_ids
    text = Of.tokenizer.decode(ids)
    name, starts = server._token_names(Of.tokenizer), server._offsets(Of, ids)
    assert starts == sorted(starts)
    robot = HARD.index("🤖")
    assert starts.count(robot) == 4 - (kind == "byte-level") or starts.count(robot) >= 3
    for i, start in zip(ids, starts):
        token = name(i)[1].decode("utf-8", "replace").strip()
        assert "\ufffd" in token or not token or text[start:].startswith(token)


def test_the_reply_is_json_for_any_client(url):
    reply = ask(url, prompt=[1, 373, 226, 164], max_tokens=4, temperature=0, echo=True, logprobs=5)
    assert json.loads(json.dumps(reply)) == reply
