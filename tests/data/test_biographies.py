"""FActScore: what a file of it must hold, and what the real ones hold."""

import copy
import json
import re

import numpy as np
import pytest

from uetrust.data import biographies as loader
from uetrust.data.biographies import BIOGRAPHY_SYSTEMS, biographies, biography_texts, content_words_about
from uetrust.data.download import DataNotAtHand, WrongHash, has_file
from uetrust.data.loaders import BadData


def sentence(text, *facts):
    return {"text": text, "human-atomic-facts": [dict(text=t, label=label) for t, label in facts] or None}


def record(person="Ada", **change):
    annotations = [
        sentence("Ada was a poet in Kent.", ("Ada was a poet.", "NS"), ("Kent is a county.", "IR")),
        sentence("Thanks for asking."),
        sentence("She was born in 1815.", ("She was born in 1815.", "S")),
    ]
    about = dict(topic=person, output="Ada was a poet in Kent.", cat=["rare", "Europe/Middle East"])
    return about | dict(annotations=annotations) | change


@pytest.fixture
def read(tmp_path, monkeypatch):
    "`read(records)`: the table of facts of these records"
    monkeypatch.setattr(loader, "BIOGRAPHY_COUNTS", {"ChatGPT": (2, 1, 1, 1)})

    def load(records, system="ChatGPT", make=biographies):
        path = tmp_path / "x.jsonl"
        path.write_text(
            records if isinstance(records, str) else "\n".join(json.dumps(one) for one in records)
        )
        monkeypatch.setattr(loader, "fetch_file", lambda file: path)
        return make([system])

    return load


SILENT = record("Bob", annotations=None)


def test_a_fact_knows_its_place(read):
    table = read([record(), SILENT])
    assert table["sample"].tolist() == ["ChatGPT Ada 1", "ChatGPT Ada 2", "ChatGPT Ada 3"]
    assert table["fact"].tolist() == [1, 2, 3] and table["facts"].tolist() == [3, 3, 3]
    assert table["sentence"].tolist() == [1, 1, 3] and table["sentence_text"][2] == "She was born in 1815."
    assert np.array_equal(table["right"], [0, np.nan, 1], equal_nan=True)
    assert set(table["region"]) == {"Europe/Middle East"} and set(table["rarity"]) == {"rare"}


def test_a_biography_without_facts_has_a_row_of_its_own(read):
    texts = read([record(), SILENT], make=biography_texts)
    assert texts[["person", "sentences", "S", "NS", "IR"]].values.tolist() == [
        ["Ada", 3, 1, 1, 1],
        ["Bob", 0, 0, 0, 0],
    ]


def test_the_third_system_works_the_same(read):
    "Its counts are not known."
    assert read([record(), record("Eve")], "PerplexityAI")["system"].tolist() == ["PerplexityAI"] * 6


def labelled(label, text="Ada was a poet."):
    changed = copy.deepcopy(record())
    changed["annotations"][0]["human-atomic-facts"][0] = dict(text=text, label=label)
    return changed


WRONG = {
    "record 2 ('Ada'): found the fact 'Ada was a poet.' with label 'X'": [SILENT, labelled("X")],
    "record 1 ('Ada'): found the fact ' ' with label 'S'": [labelled("S", " "), SILENT],
    "record 2: found 'Ada' again": [record(), record()],
    "records: found 2 biographies and (2, 0, 1)": [labelled("S"), SILENT],
    "record 1 ('Ada'): found no text": [record(output=None), SILENT],
    "record 2: found another structure (KeyError": [record(), dict(topic="Bob")],
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_in_a_file_is_named_with_the_remedy(read, message):
    with pytest.raises(BadData) as e:
        read(WRONG[message])
    assert f"factscore/ChatGPT.jsonl, {message}" in str(e.value)
    assert re.search("[Ff]etch (it|the file) again$", str(e.value))


def test_half_a_file_is_named(read):
    with pytest.raises(BadData, match="factscore/ChatGPT.jsonl: .*fetch it again"):
        read((json.dumps(record()) + "\n" + json.dumps(SILENT))[:-9])


def test_an_unknown_system_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match=r"no biographies of GPT-4; there are \['InstructGPT', 'ChatGPT'"):
        biographies(["ChatGPT", "GPT-4"])


@pytest.mark.skipif(has_file("factscore/PerplexityAI.jsonl"), reason="PerplexityAI is at hand")
def test_the_system_that_does_not_ship_is_not_at_hand(monkeypatch):
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    with pytest.raises(DataNotAtHand, match="data not at hand: factscore/PerplexityAI.jsonl"):
        biographies(BIOGRAPHY_SYSTEMS)


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path))
    (tmp_path / "factscore").mkdir()
    (tmp_path / "factscore" / "InstructGPT.jsonl").write_text(json.dumps(record()))
    with pytest.raises(WrongHash, match="factscore/InstructGPT.jsonl.* fetch it again"):
        biographies()


def test_the_shipped_systems_count_what_is_declared():
    table, texts = biographies(), biography_texts()
    assert table["label"].value_counts().to_dict() == dict(S=5294, NS=3663, IR=1195)
    assert texts.groupby("system").size().to_dict() == dict(InstructGPT=183, ChatGPT=183)
    judged = texts[texts["S"] + texts["NS"] > 0].groupby("system").size()
    assert judged.to_dict() == dict(InstructGPT=180, ChatGPT=157)
    assert set(texts["person"][:183]) == set(texts["person"][183:])
    last = table.groupby(["system", "person"])["fact"].agg(["max", "size"])
    assert (last["max"] == last["size"]).all() and texts[["S", "NS", "IR"]].sum().sum() == len(table)


def test_content_words_leave_out_names_and_small_words():
    words = content_words_about("O'Neal's 3 sons have also met Shaquille.", "Shaquille O'Neal")
    assert words == ["s", "3", "sons", "met"]
    assert content_words_about("It is his.", "Ada") == [] and content_words_about("Born, born", "") == [
        "born",
        "born",
    ]
