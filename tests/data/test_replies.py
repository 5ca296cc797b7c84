"""Replies of servers: parts are joined, refusals and calls of tools are missing texts and counted."""

import json

from tests.helpers.reported import CASES, scored


def test_refusals_and_tool_calls_are_missing_texts_and_counted(capsys, tmp_path):
    scores, messages = scored(capsys, tmp_path, "a03_refusal_and_tool_call.jsonl", "--method", "msp")
    assert list(scores.index) == ["doc-0", "doc-1", "doc-4"]
    assert "2 of 5 records left out: 1 refusal ('doc-2'), 1 tool call ('doc-3')" in messages


def test_content_parts_of_replies_and_requests_are_joined(capsys, tmp_path):
    options = ["--data", str(CASES / "a18_requests.jsonl"), "--metric", "rouge_l_true"]
    scores, _ = scored(capsys, tmp_path, "a18_content_parts.jsonl", *options)
    assert scores["rouge_l_true"].min() > 0.8


def piece(name, delta=None, end=None, **fields):
    choice = dict(index=0, delta=delta or {}, finish_reason=end)
    if content := (delta or {}).get("content"):
        choice["logprobs"] = dict(content=[dict(token=content, logprob=-0.5, top_logprobs=[])])
    return dict(id=name, object="chat.completion.chunk", choices=[choice]) | fields


def stream(name, *words):  # As servers of OpenAI's kind send it, with the number of tokens
    pieces = [piece(name, dict(role="assistant", content="")), *(piece(name, dict(content=w)) for w in words)]
    return [*pieces, piece(name, end="stop"), piece(name, choices=[], usage=dict(completion_tokens=2))]


def scored_pieces(capsys, tmp_path, pieces, code=0):
    (tmp_path / "streams.jsonl").write_text("".join(json.dumps(record) + "\n" for record in pieces))
    return scored(capsys, tmp_path, tmp_path / "streams.jsonl", "--method", "msp", code=code)


def test_the_piece_with_the_number_of_tokens_belongs_to_its_stream(capsys, tmp_path):
    pieces = [*stream("a", "Rain", "."), *stream("b", "It", " snowed", ".")]
    scores, messages = scored_pieces(capsys, tmp_path, pieces)
    assert scores["msp"].to_dict() == dict(a=1.0, b=1.5) and "failed" not in messages
    _, messages = scored_pieces(capsys, tmp_path, [*pieces, piece("c", choices=[], usage={})])
    assert "1 of 12 records left out: 1 failed request ('c')" in messages


def test_two_streams_of_one_id_are_two_texts(capsys, tmp_path):
    pieces = [*stream("a", "Rain", "."), *stream("b", "Snow"), *stream("a", "It", " rained", ".")]
    _, messages = scored_pieces(capsys, tmp_path, pieces, code=2)
    assert "these ids occur twice: a" in messages
    scores, _ = scored_pieces(capsys, tmp_path, [record | dict(id=None) for record in pieces])
    assert scores["msp"].to_dict() == {"row 1": 1.0, "row 2": 0.5, "row 3": 1.5}


def test_a_piece_after_the_end_that_says_nothing_is_no_text(capsys, tmp_path):
    tail = dict(role="assistant", content="")  # As OpenRouter and SGLang send it
    tails = [piece("a", tail, usage=dict(completion_tokens=2)), piece("a", tail, end="stop")]
    scores, messages = scored_pieces(capsys, tmp_path, [*stream("a", "Rain", "."), *tails])
    assert scores["msp"].to_dict() == dict(a=1.0) and "left out" not in messages
    _, messages = scored_pieces(capsys, tmp_path, [*stream("a", "Rain", "."), *stream("a")])
    assert "3 of 8 records left out: 3 reply without a text ('a')" in messages


def test_choices_that_a_stream_sends_one_after_the_other_are_samples(capsys, tmp_path):
    first, second = stream("a", "Rain", "."), stream("a", "It", " rained", ".")
    for record in second[:-1]:
        record["choices"][0]["index"] = 1
    scores, messages = scored_pieces(capsys, tmp_path, [*first[:-1], *second])
    assert scores["msp"].to_dict() == dict(a=1.0) and "the others are its samples" in messages
