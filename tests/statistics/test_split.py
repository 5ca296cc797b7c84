"""Claims of texts by a model behind a server, through the command that users type."""

import json
import os

import pandas as pd
import pytest

from tests.helpers.command_runs import judge_server
from uetrust.cli.cli import main
from uetrust.statistics.split import read_claims


@pytest.fixture
def replies(tmp_path):
    rows = [
        dict(
            id="a",
            text="Ana Cole opened the pool. It rained.",
            tokens=["Ana", " Cole", " opened", " the", " pool", ".", " It", " rained", "."],
            logprobs=[-0.1, -0.2, -0.3, -0.1, -0.5, -0.1, -1.0, -2.0, -0.1],
        ),
        dict(id="b", text="Fees rose.", tokens=["Fees", " rose", "."], logprobs=[-1.0, -3.0, -0.1]),
    ]
    file = tmp_path / "replies.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def test_a_server_splits_texts_and_the_claims_are_scored(replies, capsys):
    out, scores = replies.with_name("claims.csv"), replies.with_name("scores.csv")
    with judge_server("1. Ana Cole opened the pool.\n- It rained.") as url:
        command = ["split", str(replies), "--endpoint", f"{url}/v1", "--model", "m", "--out", str(out)]
        assert main(command) == 0
    claims = pd.read_csv(out)
    assert list(claims) == ["document", "sentence", "claim"] and len(claims) == 6
    assert claims["document"].tolist() == ["a"] * 4 + ["b"] * 2
    assert claims["sentence"].tolist() == [0, 0, 1, 1, 0, 0]
    assert "6 claims of 2 texts" in capsys.readouterr().err
    # Without a server: every reply is kept
    assert main(command) == 0 and pd.read_csv(out).equals(claims)
    assert main(["score", str(replies), "--claims", str(out), "--method", "msp", "--out", str(scores)]) == 0
    table = pd.read_csv(scores)
    assert (
        table["msp"].tolist()[:2] == pytest.approx([1.3, 3.1])
        and table["msp"].isna().tolist()[4:] == [True] * 2
    )
    assert "2 of 6 claims have no score: they share no word with their text" in capsys.readouterr().out


def test_replies_without_claims_are_counted_and_end_in_an_error(replies, capsys):
    with judge_server(" \n--\n") as url:
        assert main(["split", str(replies), "--endpoint", f"{url}/v1", "--model", "m"]) == 2
    said = capsys.readouterr().err
    assert "3 sentences gave no claim, the first 'a sentence 0': the reply lists no claim" in said
    assert "no reply of the server could be used" in said


def test_a_dry_run_asks_nothing(replies, capsys):
    command = ["split", str(replies), "--endpoint", "http://127.0.0.1:9/v1", "--model", "m", "--dry-run"]
    assert main(command) == 0
    assert "requests 3" in capsys.readouterr().out
    assert os.listdir(replies.parent) == [replies.name]  # Not even an empty file of replies


def chat_reply(name, content, **said):
    choice = dict(index=0, message=dict(role="assistant", content=content, **said), finish_reason="stop")
    body = dict(object="chat.completion", choices=[choice])
    return dict(custom_id=name, response=dict(status_code=200, body=body))


@pytest.mark.parametrize("options", [[], ["--csv"], ["--dry-run"]])
def test_texts_that_are_not_split_are_named(replies, capsys, options):
    refused = chat_reply("b", None, refusal="I cannot.")
    lost = dict(custom_id="c", response=dict(status_code=500, body={}), error=dict(message="overloaded"))
    rows = [chat_reply("a", "It rained."), refused, lost]
    replies.write_text("\n".join(map(json.dumps, rows)))
    with judge_server("It rained.") as url:
        assert main(["split", str(replies), "--endpoint", f"{url}/v1", "--model", "m", *options]) == 0
    said = capsys.readouterr()
    assert "note: 2 of 3 records left out: 1 refusal ('b'), 1 failed request ('c')\n" in said.err
    assert "note" not in said.out


@pytest.mark.parametrize(
    ("reply", "claims"),
    [
        ("It rained.\n\nIt snowed.", ["It rained.", "It snowed."]),
        ("• a b\n2) c d\n(3) e f\n– g", ["a b", "c d", "e f", "g"]),
        ("* a\n* a", ["a"]),
        ("The facts are:\n- a", ["a"]),
        ("1990 was warm.", ["1990 was warm."]),
        ("", []),
    ],
)
def test_lists_are_read_however_they_are_written(reply, claims):
    assert read_claims(reply) == claims
