"""Replies of servers: parts are joined, refusals and calls of tools are missing texts and counted."""

from tests.helpers.reported import CASES, scored


def test_refusals_and_tool_calls_are_missing_texts_and_counted(capsys, tmp_path):
    scores, messages = scored(capsys, tmp_path, "a03_refusal_and_tool_call.jsonl", "--method", "msp")
    assert list(scores.index) == ["doc-0", "doc-1", "doc-4"]
    assert "2 of 5 records left out: 1 refusal ('doc-2'), 1 tool call ('doc-3')" in messages


def test_content_parts_of_replies_and_requests_are_joined(capsys, tmp_path):
    options = ["--data", str(CASES / "a18_requests.jsonl"), "--metric", "rouge_l_true"]
    scores, _ = scored(capsys, tmp_path, "a18_content_parts.jsonl", *options)
    assert scores["rouge_l_true"].min() > 0.8
