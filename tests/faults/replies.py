"""Replies of servers, one of four damaged: the three others keep their scores, and a note names the item."""

import csv
import io
import json
import zipfile

from tests.faults.harness import fault

TOKENS = ["The", " council", " met", "."]
LOGPROBS = [-0.1, -0.2, -0.3, -0.4]  # msp 1.0
TEXT = "The council met."


def at(token, logp):
    return dict(token=token, logprob=logp, top_logprobs=[])


def chat(i, text, tokens, logprobs, end="stop", **message):
    told = dict(content=[at(*pair) for pair in zip(tokens, logprobs)]) if logprobs else None
    said = dict(role="assistant", content=text) | message
    return dict(id=f"r{i}", choices=[dict(index=0, message=said, logprobs=told, finish_reason=end)])


def batch(i, *said, **more):
    body = chat(i, *said, **more)
    return dict(id=f"batch_{i}", custom_id=f"r{i}", response=dict(status_code=200, body=body), error=None)


def own_log(i, *said, **more):
    return dict(id=f"r{i}", prompt="Say it.", completion=chat(i, *said, **more))


def plain(i, text, tokens, logprobs, end="stop"):
    told = dict(tokens=tokens, token_logprobs=logprobs, top_logprobs=None) if logprobs else None
    return dict(id=f"r{i}", choices=[dict(index=0, text=text, logprobs=told, finish_reason=end)])


def responses(i, text, tokens, logprobs, end="stop"):
    part = dict(type="output_text", text=text, logprobs=[at(*pair) for pair in zip(tokens, logprobs or [])])
    cut = dict(length="max_output_tokens").get(end, end)
    details = dict(incomplete_details=dict(reason=cut)) if end != "stop" else {}
    content = [part] if text is not None else []
    return dict(id=f"r{i}", object="response", output=[dict(type="message", content=content)], **details)


def parts(i, text, tokens, logprobs, end="stop"):
    return chat(i, [dict(type="text", text=text)] if text is not None else None, tokens, logprobs, end)


def vllm(i, text, tokens, logprobs, end="stop"):
    told = [
        {str(k): dict(logprob=logp, decoded_token=token)}
        for k, (token, logp) in enumerate(zip(tokens, logprobs))
    ]
    output = dict(text=text, token_ids=list(range(len(told))), logprobs=told or None, finish_reason=end)
    return dict(request_id=f"r{i}", prompt="Say it.", outputs=[output])


def sglang(i, text, tokens, logprobs, end="stop"):
    told = [[logp, k, token] for k, (token, logp) in enumerate(zip(tokens, logprobs))]
    return dict(
        text=text, meta_info=dict(id=f"r{i}", finish_reason=dict(type=end), output_token_logprobs=told)
    )


def table(i, text, tokens, logprobs, end="stop"):
    return dict(id=f"r{i}", hypothesis=text, tokens=tokens, logprobs=logprobs)


SHAPES = [chat, batch, own_log, plain, responses, parts, vllm, sglang, table]


def with_logp(value):
    return TEXT, TOKENS, [-0.1, value, -0.3, -0.4]


# What is wrong -> text, tokens and log-probabilities of the third item; its msp, or None; words of the note
DAMAGE = {
    "a null": (with_logp(None), None, "a token has no log-probability"),
    "a sentinel": (with_logp(-9999.0), None, "no token that was written is so unlikely"),
    "minus infinity": (with_logp(float("-inf")), None, "no token that was written is so unlikely"),
    "not a number": (with_logp(float("nan")), None, "a token has no log-probability"),
    "a probability": (with_logp(0.8), None, "Are these probabilities?"),
    "a word": (with_logp("high"), None, "logprobs must be numbers"),
    "a truth value": (with_logp(True), None, "logprobs must be numbers"),
    "a list": (with_logp([]), None, "logprobs must be numbers"),
    "rounding above 0": (with_logp(0.002), 0.8, "is rounding and counts as 0"),
    "tokens of another text": ((TEXT, ["A", " dog", " ran", "."], LOGPROBS), None, "do not spell the text"),
    "reasoning before it": (
        (TEXT, ["<think>", " So", "</think>", *TOKENS], [-1.0, -1.0, -1.0, *LOGPROBS]),
        1.0,
        "only the tokens that spell the text",
    ),
    "a stop word behind it": ((TEXT, [*TOKENS, " Q", ":"], [*LOGPROBS, -2.0, -2.0]), 1.0, "only the tokens"),
    "the end of the text": ((TEXT, [*TOKENS, "</s>"], [*LOGPROBS, -0.5]), 1.5, ""),
    "reasoning in the text": (
        (f"<think>Hm.</think> {TEXT}", ["<think>", "Hm", ".", "</think>", *TOKENS], [-1.0] * 4 + LOGPROBS),
        1.0,
        "reasoning before the answer is left out",
    ),
}


def scores_of(outcome):
    return {row["id"]: row["msp"] for row in csv.DictReader(io.StringIO(outcome.out))}


def damaged(folder, given):
    make, ((text, tokens, logprobs), _, _) = given
    records = [make(i, TEXT, TOKENS, LOGPROBS) for i in range(4)]
    records[2] = make(2, text, tokens, logprobs)
    (folder / "x.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return ["score", "x.jsonl", "--method", "msp", "--csv"]


for shape in SHAPES:
    for name, found in DAMAGE.items():

        def only_its_item_loses(folder, outcome, found=found):
            scores, (_, expected, note) = scores_of(outcome), found
            assert [float(scores[f"r{i}"]) for i in (0, 1, 3)] == [1.0] * 3
            assert (scores["r2"] == "") if expected is None else abs(float(scores["r2"]) - expected) < 1e-9
            assert note in outcome.err and (not note or "'r2'" in outcome.err)

        fault("right", cases={f"of {shape.__name__} with {name}": (shape, found)}, check=only_its_item_loses)(
            damaged
        )


# Why there is no text -> the third reply; words of the note
ABSENT = {
    "a refusal": (batch(2, None, [], [], refusal="I cannot help."), "1 refusal ('r2')"),
    "a refusal as the end": (batch(2, "", [], [], "refusal"), "1 refusal ('r2')"),
    "a tool call": (
        batch(2, None, [], [], "tool_calls", tool_calls=[dict(type="function")]),
        "1 tool call ('r2')",
    ),
    "a content filter": (batch(2, "", [], [], "content_filter"), "stopped by a content filter ('r2')"),
    "reasoning that was cut": (
        batch(2, None, [], [], "length", reasoning_content="Hm"),
        "reasoning without an answer ('r2')",
    ),
    "reasoning in tags that was cut": (batch(2, "<think>Hm", [], []), "reasoning without an answer ('r2')"),
    "null as its text": (batch(2, None, [], []), "1 reply without a text ('r2')"),
    "an image as its text": (batch(2, [dict(type="image_url")], [], []), "1 reply without a text ('r2')"),
    "status 500": (
        batch(2, TEXT, TOKENS, LOGPROBS) | dict(response=dict(status_code=500, body=chat(2, TEXT, [], []))),
        "1 failed request ('r2')",
    ),
    "an error beside it": (
        batch(2, TEXT, TOKENS, LOGPROBS) | dict(error=dict(code="x")),
        "1 failed request ('r2')",
    ),
    "no reply": (dict(custom_id="r2", response=None, error=dict(code="expired")), "1 failed request ('r2')"),
    "no choices": (dict(custom_id="r2", response=dict(body=dict(choices=[]))), "1 failed request ('r2')"),
    "a number as its text": (batch(2, 5, [], []), "1 cannot be read"),
}


def absent(folder, given):
    records = [batch(i, TEXT, TOKENS, LOGPROBS) for i in range(4)]
    records[2] = given[0]
    (folder / "x.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return ["score", "x.jsonl", "--method", "msp", "--csv"]


for name, found in ABSENT.items():

    def it_is_named(folder, outcome, found=found):
        assert list(scores_of(outcome)) == ["r0", "r1", "r3"]
        assert "1 of 4 records left out: " in outcome.err and found[1] in outcome.err

    fault("right", cases={f"of which one is {name}": found}, check=it_is_named)(absent)


def all_absent(folder, given):
    (folder / "x.jsonl").write_text((json.dumps(given[0]) + "\n") * 1)
    return ["score", "x.jsonl", "--method", "msp", "--csv"]


for name, found in ABSENT.items():
    fault("error", "x.jsonl", cases={f"of which all are {name}": found})(all_absent)


def cut_and_filtered(folder):
    ends = ["length", "content_filter", "length", "stop"]
    records = [batch(i, TEXT, TOKENS, LOGPROBS, end) for i, end in enumerate(ends)]
    (folder / "x.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return ["score", "x.jsonl", "--method", "msp", "--csv"]


def ends_are_counted(folder, outcome):
    assert len(scores_of(outcome)) == 4
    assert "2 of 4 texts were cut at" in outcome.err and "1 of 4 texts was stopped by a" in outcome.err


fault("right", check=ends_are_counted)(cut_and_filtered)


ENCODINGS = {"UTF-16": "utf-16", "Latin-1": "latin-1"}


@fault("error", "x.eval", "samples/1.json", "UTF-8", cases=ENCODINGS)
def a_log_of_inspect_with_a_member_in(folder, encoding):
    sample = dict(id="é", epoch=1, input="a", output=dict(choices=[dict(message=dict(content="é"))]))
    with zipfile.ZipFile(folder / "x.eval", "w") as archive:
        archive.writestr("samples/1.json", json.dumps(sample, ensure_ascii=False).encode(encoding))
    return ["score", "x.eval", "--method", "output_length"]
