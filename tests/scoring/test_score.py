"""One engine scores banks and files: what is missing is said alike, and with a remedy that works."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.helpers.reply_files import explained
from uetrust.cli.cli import main
from uetrust.cli.texts import PASS_NAMES
from uetrust.core.registry import Registry
from uetrust.core.run import ScoreRun
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank
from uetrust.scoring.methods import score_shards
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts import STATISTICS

DATA = "bulletin:test:3"


@pytest.fixture
def bank(tmp_path):
    def write(part):
        return [bank_row(row.id, "greedy", 0, "It rained in the north.") for row in part.itertuples()]

    about = bank_provenance("bulletin", "lead", "", "", {}, dict(greedy=1))
    fill_bank(tmp_path / "bank" / "texts", load_samples(DATA), about, write, progress=False)
    return tmp_path / "bank"


def test_a_bank_explains_what_it_lacks_and_how_to_get_it(bank, capsys):
    rows = explained(capsys, bank)
    assert (rows["output_length"]["possible"], rows["msp"]["possible"]) == (3, 0)
    assert f"uetrust read {bank} --read conditional" in rows["msp"]["remedy"]
    assert rows["lex_sim"]["remedy"] == "generate a bank with --samples 5 or more"
    assert f"uetrust bank compare {bank} --nli CHECKPOINT" in rows["num_sets"]["remedy"]
    assert "perplexity" not in rows["huq"]["missing"].split(), "a score is made of what it needs"
    assert rows["source_length"]["remedy"] == "name the data of the bank: --data FILE"
    assert "nothing here makes it yet" not in str(rows)
    assert all(row["remedy"] for row in rows.values() if row["missing"])
    assert explained(capsys, bank, "--data", DATA)["source_length"]["possible"] == 3


def test_what_a_bank_calls_possible_is_computed(bank, capsys):
    possible = {row["method"] for row in explained(capsys, bank, "--data", DATA).values() if row["possible"]}
    assert main(["score", str(bank), "--data", DATA, "--method", "all", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)["scores"]} == possible


def test_a_remedy_offers_no_pass_that_the_command_refuses():
    told = {name: entry.remedy.split() for name, entry in STATISTICS.items() if "--read" in entry.remedy}
    assert {words[words.index("--read") + 1] for words in told.values()} == {*PASS_NAMES} == set(told)


def test_a_bank_of_which_nothing_can_be_computed_is_an_error(bank, capsys):
    assert main(["score", str(bank), "--method", "msp"]) == 2
    assert "nothing that was asked for can be computed" in capsys.readouterr().err
    assert not (bank / "scores.csv").exists()


def test_a_method_that_fails_for_one_text_of_a_bank_costs_only_itself(bank, capsys, monkeypatch):
    first = load_samples(DATA)["source"][0]

    def source_length(source: str) -> float:
        if source == first:
            raise RuntimeError("no such source")
        return float(len(source.split()))

    reg = load_scores()
    monkeypatch.setitem(reg, "source_length", replace(reg["source_length"], fn=source_length, batch=None))
    asked = ["score", str(bank), "--data", DATA, "--method", "source_length"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "source_length failed on 1 text" in said and "no such source" in said
    assert pd.read_csv(bank / "scores.csv")["value"].notna().tolist() == [False, True, True]
    with pytest.raises(ValueError, match="no such source"):
        main([*asked, "--debug"])


def test_scores_of_texts_with_different_statistics_stand_in_one_order():
    "The first texts lack what the first method needs; a rank is among the texts that have it."
    registry = Registry()

    @registry.add(kind="ue", unit="nats", cite="test")
    def surprise(greedy_logp: np.ndarray) -> float:
        return -sum(greedy_logp)

    @registry.add(kind="ue", unit="words", cite="test")
    def words(greedy_text: str) -> float:
        return len(greedy_text.split())

    @registry.add(kind="stat", unit="rank", cite="test")
    def place(surprise: list) -> list:
        return pd.Series(surprise).rank().tolist()

    @registry.add(kind="ue", unit="rank", cite="test")
    def placed(place: float) -> float:
        return place

    runs = [
        ScoreRun(["a"], registry, greedy_text=["x"]),
        ScoreRun(["b", "c"], registry, greedy_text=["x y", "x"], greedy_logp=[[-2.0], [-1.0]]),
    ]
    scores = score_shards(runs, ["surprise", "words", "placed"], registry)
    assert scores.names == ["surprise", "words", "placed"] and scores.missing == {}
    wide = scores.wide.set_index("id")
    assert wide.loc[["b", "c"], "placed"].tolist() == [2, 1]
    assert wide["words"].loc[["a", "b", "c"]].tolist() == [1, 2, 1]
    assert wide.loc["a", ["surprise", "placed"]].isna().all()
