"""`uetrust score` on files of other tools: what is named, what is explained, where it is written."""

import json

from tests.helpers.outputs import FOLDER
from tests.helpers.reply_files import explained
from uetrust.cli.cli import main


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
