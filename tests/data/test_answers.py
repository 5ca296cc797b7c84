"""EVOUNA: what a file of it must hold, and what the real one holds."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from uetrust.data import answers as loader
from uetrust.data.answers import EVOUNA_SYSTEMS, answers, gold_alternatives, other_answers
from uetrust.data.download import DataNotAtHand, WrongHash, has_file
from uetrust.data.loaders import BadData


def record(question="Who?", **change):
    found = dict(question=question, golden_answer="A/ B /", improper=False)
    for system in EVOUNA_SYSTEMS:
        found |= {f"answer_{system}": f"{system} says A", f"judge_{system}": system != "fid"}
    return found | change


@pytest.fixture
def read(tmp_path, monkeypatch):
    "`read(records)`: the table of these records; a text is written as it is"
    monkeypatch.setattr(loader, "EVOUNA_COUNTS", {"evouna-nq": (2, 1)})

    def load(content, name="evouna-nq", **options):
        path = tmp_path / "NQ.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        monkeypatch.setattr(loader, "fetch_file", lambda file: path)
        return answers(name, **options)

    return load


IMPROPER = record("Who now?", improper=True, golden_answer=None)


def test_a_question_has_a_row_for_each_system_and_an_improper_one_none(read):
    table = read([IMPROPER, record(answer_gpt4=None, judge_newbing=None)])
    assert table["sample"].tolist() == [f"evouna-nq 1 {system}" for system in EVOUNA_SYSTEMS]
    assert table["row"].tolist() == [1] * 5 and table["golds"].tolist() == [["A", "B"]] * 5
    assert table["answer"].isna().tolist() == [False, False, False, True, False]
    assert np.array_equal(table["human"], [0, 1, 1, 1, np.nan], equal_nan=True)
    assert len(read([IMPROPER, record()], systems=["gpt4", "fid"])) == 2


def test_raw_control_characters_are_read(read):
    text = json.dumps([IMPROPER, record()]).replace("fid says A", "fid\tsays\nA")
    assert read(text)["answer"][0] == "fid\tsays\nA"


def test_the_other_part_spells_missing_values_as_texts(read):
    "As TriviaQA's file does; its counts are not known, so a question may stand twice."
    table = read([record(judge_fid="nan", answer_gpt35="None")] * 2, "evouna-tq")
    assert len(table) == 10 and table["human"].isna().sum() == 2 and table["answer"].isna().sum() == 2
    assert table["sample"].is_unique and table["sample"][0] == "evouna-tq 0 fid"


WRONG = {
    "record 2: found judge_gpt4 = 'yes'. Expected is bool or null": [IMPROPER, record(judge_gpt4="yes")],
    "record 2: found judge_fid = 1. Expected is bool": [IMPROPER, record(judge_fid=1)],
    "record 1: found answer_fid = 7. Expected is str or null": [record(answer_fid=7), IMPROPER],
    "record 1: found no question or no gold answer": [record(golden_answer=" / "), IMPROPER],
    "record 2: found improper = 'no'": [IMPROPER, record(improper="no")],
    "record 2: found the same as in record 1": [record(), record()],
    "records: found 1 questions, 1 of them proper": [record()],
    "records: found 2 questions, 2 of them proper": [record(), record("What?")],
    "record 2: found another structure (KeyError: 'judge_fid')": [
        IMPROPER,
        {key: value for key, value in record().items() if key != "judge_fid"},
    ],
    "top level: found no list of records": [IMPROPER, 3],
    "line 1: found no JSON, perhaps half a file": json.dumps([record()])[:-5],
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_in_a_file_is_named_with_the_remedy(read, message):
    with pytest.raises(BadData) as e:
        read(WRONG[message])
    assert f"evouna/NQ.json, {message}" in str(e.value)
    assert re.search("[Ff]etch (it|the file) again$", str(e.value))


def test_unknown_names_are_answered_with_those_there_are(read):
    with pytest.raises(ValueError, match=r"no answers 'nq'; there are \['evouna-nq', 'evouna-tq'\]"):
        answers("nq")
    with pytest.raises(ValueError, match=r"evouna-nq has no system gpt5; it has \['fid'"):
        answers(systems=("gpt4", "gpt5"))


@pytest.mark.skipif(has_file("evouna/TQ.json"), reason="TQ is at hand")
def test_the_part_that_does_not_ship_is_not_at_hand(monkeypatch):
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    with pytest.raises(DataNotAtHand, match="data not at hand: evouna/TQ.json"):
        answers("evouna-tq")


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path))
    (tmp_path / "evouna").mkdir()
    (tmp_path / "evouna" / "NQ.json").write_text(json.dumps([record()]))
    with pytest.raises(WrongHash, match="evouna/NQ.json.* cut short: delete it and fetch it again"):
        answers()


@pytest.fixture(scope="module")
def nq():
    return answers()


def test_the_shipped_part_has_the_recorded_shares(nq, oracle):
    answered = nq[nq["answer"].notna()].groupby("system")["human"]
    recorded = oracle("evouna_nq.json")
    assert answered.size().to_dict() == {system: recorded[system]["n"] for system in EVOUNA_SYSTEMS}
    for system in EVOUNA_SYSTEMS:
        assert answered.mean()[system] == pytest.approx(recorded[system]["mean"]["human"], abs=1e-12)


def test_the_shipped_part_counts_what_is_declared(nq):
    assert nq["row"].nunique() == 3020 and nq["row"].max() < 3610 and nq["sample"].is_unique
    assert nq["answer"].isna().sum() == 2 and nq["human"].isna().sum() == 1
    assert nq["question"].nunique() == 3019  # One question stands twice, with different gold answers
    assert nq["golds"].str.len().min() == 1


def test_gold_answers_are_split_at_slashes_and_empty_ones_dropped():
    assert gold_alternatives(" a/b c // d") == ["a", "b c", "d"] and gold_alternatives(" / ") == []


def test_the_texts_of_the_others_come_in_the_order_of_the_table():
    table = pd.DataFrame(dict(row=[1, 2, 1, 2, 1], system=list("aabbc"), answer=["x", "p", None, "q", "z"]))
    assert other_answers(table) == [["z"], ["q"], ["x", "z"], ["p"], ["x"]]
    with pytest.raises(ValueError, match="question 2 has two answers of 'b'.*drop the second"):
        other_answers(pd.concat([table, table[3:4]]))
