"""`uetrust score` on files of other tools: what is named, what is explained, where it is written."""

import json

import pandas as pd
import pytest

from tests.helpers.command_runs import write_summaries
from tests.helpers.outputs import FOLDER
from tests.helpers.reply_files import explained
from uetrust.cli.cli import main
from uetrust.report.cards import list_scores


def test_named_methods_of_a_file_are_computed_and_no_others(replies, capsys):
    assert main(["score", str(replies), "--method", "msp", "md", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["scores"]
    assert set(rows[0]) == {"id", "msp"}
    assert main(["score", str(replies), "--method", "msp", "md"]) == 0
    assert "md: lacks greedy_state; train_states" in capsys.readouterr().out
    assert main(["score", str(replies), "--method", "mps"]) == 2
    assert "Did you mean 'msp'" in capsys.readouterr().err
    assert main(["score", str(replies), "--method", "md"]) == 2
    assert "nothing that was asked for can be computed" in capsys.readouterr().err
    assert main(["score", str(replies), "--method", "rouge_l"]) == 2
    assert "is no uncertainty method" in capsys.readouterr().err


def test_explain_says_what_is_missing_and_how_to_get_it(capsys):
    full = explained(capsys, FOLDER / "openai_batch_output.jsonl")
    bare = explained(capsys, FOLDER / "openai_no_logprobs.jsonl")
    assert (full["msp"]["possible"], full["msp"]["remedy"], full["num_sets"]["possible"]) == (4, "", 4)
    assert (bare["msp"]["possible"], bare["msp"]["missing"]) == (0, "greedy_logp")
    assert bare["msp"]["remedy"] == "ask the server again with logprobs=true"
    assert "n=5" in bare["lex_sim"]["remedy"] and "uetrust read BANK --read hidden" in bare["md"]["remedy"]
    assert all(row["remedy"] for row in bare.values() if row["missing"])


def test_what_explain_calls_possible_is_computed(capsys):
    "The two answers of the command agree on a file of every format."
    for name in (
        "uqlm_blackbox.csv",
        "samples_bulletins.jsonl",
        "inspect.eval",
        "vllm_request_outputs.jsonl",
    ):
        possible = {row["method"] for row in explained(capsys, FOLDER / name).values() if row["possible"]}
        assert main(["score", str(FOLDER / name), "--method", "all", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)["scores"]
        assert possible - set(rows[0]) == set() and len(rows) == 4


def test_an_output_file_is_refused_before_work_begins(replies, capsys):
    assert main(["score", str(replies), "--out", "scores.txt"]) == 2
    assert "are written to .parquet or .csv" in capsys.readouterr().err
    assert main(["score", str(replies), "--out", "/nowhere/scores.csv"]) == 2
    assert "there is no folder /nowhere" in capsys.readouterr().err


def test_columns_of_any_name_reach_the_scores(tmp_path, capsys):
    file = tmp_path / "x.csv"
    file.write_text("Frage,Antwort\nWer?,Ich bin es.\nWo?,Hier.\n")
    assert main(["score", str(file), "--method", "output_length"]) == 2
    assert "Say --column text=NAME" in capsys.readouterr().err
    options = ["--column", "text=Antwort", "--column", "source=Frage", "--method", "output_length", "--json"]
    assert main(["score", str(file), *options]) == 0
    assert [row["output_length"] for row in json.loads(capsys.readouterr().out)["scores"]] == [3, 1]


@pytest.fixture
def small(tmp_path):
    "Three texts with a probability below 10 decimals"
    rows = [dict(id=i, text=f"word {i} here", seq_prob=3.3e-12 * (i + 1)) for i in range(3)]
    (tmp_path / "small.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "small.jsonl"


def test_json_has_every_digit_of_a_number(small, capsys):
    assert main(["score", str(small), "--method", "output_length", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["scores"]
    assert [row["seq_prob"] for row in rows] == [3.3e-12 * (i + 1) for i in range(3)]


def test_a_column_without_a_meaning_is_refused(small, capsys):
    for typed in ("text", "text=", "=text"):
        assert main(["score", str(small), "--column", typed, "--method", "output_length"]) == 2
        assert f"--column is written MEANING=NAME, got {typed!r}" in capsys.readouterr().err


def test_explain_lists_the_named_methods_and_refuses_what_it_ignores(small, capsys):
    assert list(explained(capsys, small, "--method", "msp", "lex_sim")) == ["msp", "lex_sim"]
    for name in ("rouge_l", "mps"):
        assert main(["score", str(small), "--explain", "--method", name]) == 2
        assert name in capsys.readouterr().err
    for line in ("--claims no.csv", "--unit word", "--pool sum", "--metric rouge_l", "--tokenizer unicode"):
        assert main(["score", str(small), "--explain", *line.split()]) == 2
        err = capsys.readouterr().err
        assert f"{line.split()[0]}: --explain lists what methods lack of whole texts" in err


@pytest.mark.parametrize("command, name, kind", [("methods", "msp", "ue"), ("metrics", "rouge_l", "nlg")])
def test_one_score_is_printed_and_written_as_a_row(tmp_path, capsys, command, name, kind):
    out = tmp_path / "card.csv"
    (want,) = list_scores(kind=kind).query("name == @name").to_dict("records")
    assert main([command, name, "--json", "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out) == [want]
    assert pd.read_csv(out, keep_default_na=False).to_dict("records") == [want]
    assert main([command, name, "--csv"]) == 0
    assert capsys.readouterr().out == out.read_text()
    assert main([command, name]) == 0 and capsys.readouterr().out.startswith(f"# {name}\n")


def test_a_dry_run_of_a_judge_leaves_no_file(tmp_path, capsys):
    write_summaries(tmp_path, "mine.jsonl")
    ask = ["judge", str(tmp_path / "mine.jsonl"), "--endpoint", "http://127.0.0.1:9/v1", "--model", "m"]
    assert main([*ask, "--dry-run"]) == 0 and "cached 0" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["mine.jsonl"]
