"""RAGTruth by its documented fields: quality is what no mark covers, and what is otherwise is refused."""

import json

import numpy as np
import pytest

from tests.helpers.read_back import put, reply, sources_of
from uetrust.data.download import DataNotAtHand
from uetrust.data.loaders import BadData
from uetrust.data.ragtruth import RAGTRUTH_QUALITY, ragtruth


def test_quality_is_the_share_of_characters_without_a_mark(tmp_path):
    "Marked are characters 0 to 3 and 2 to 5: five of ten. A subtle span counts like an evident one."
    text = "abcdefghij"
    marks = [(0, 3, "Subtle Conflict"), (2, 5, "Evident Baseless Info")]
    replies = [
        reply(1, "a", text, *marks),
        reply(2, "a", text),
        reply(3, "a", text, (0, 1, "Subtle Baseless Info")),
    ]
    table = ragtruth(put(tmp_path, replies, sources_of(["a"], ["Summarize: x"])))
    np.testing.assert_allclose(table["unmarked"], [0.5, 1, 0.9])
    assert table[list(RAGTRUTH_QUALITY[1:])].to_numpy().tolist() == [[0, 0, 0], [1, 1, 1], [0, 1, 0]]
    assert table["elsewhere"].sum() == 0 and table["prompt"].unique() == ["Summarize: x"]


def test_a_span_whose_text_stands_elsewhere_is_counted(tmp_path):
    moved = reply(1, "a", "abcdefghij", (0, 3, "Subtle Conflict"))
    moved["labels"][0]["text"] = "fgh"
    assert ragtruth(put(tmp_path, [moved], sources_of(["a"], ["x"])))["elsewhere"].tolist() == [1]


def test_structured_sources_of_questions_become_text(tmp_path):
    source = dict(source_id="a", task_type="QA", source="MARCO", prompt="Answer: who?")
    source["source_info"] = dict(question="who?", passages="passage 1: he")
    table = ragtruth(put(tmp_path, [reply(1, "a", "he")], [source]))
    assert json.loads(table.at[0, "source"]) == source["source_info"] and table.at[0, "task"] == "QA"


GOOD = reply(1, "a", "abcdefghij", (0, 3, "Subtle Conflict"))


def changed(**values):
    return GOOD | dict(labels=[GOOD["labels"][0] | values])


@pytest.mark.parametrize(
    "replies, says",
    [
        ([changed(end=11)], "record 1 (id '1'): found a span from 0 to 11. It must lie in 0 to 10"),
        ([changed(start=3)], "a span from 3 to 3"),
        ([changed(start=0.5)], "a span from 0.5 to 3"),
        ([changed(label_type="Wrong")], "label_type 'Wrong'. Expected is one of ['Evident Conflict'"),
        ([GOOD, GOOD], "ids: found some twice"),
        ([GOOD | dict(source_id="b")], "source_id: found"),
        ([GOOD | dict(labels=None)], "no list of labels"),
        ([GOOD | dict(labels=[dict(start=0)])], "record 1: found another structure"),
        ([{name: value for name, value in GOOD.items() if name != "quality"}], "without ['quality']"),
        ([], "response.jsonl"),
    ],
)
def test_what_is_not_as_documented_is_refused(tmp_path, replies, says):
    with pytest.raises(BadData) as error:
        ragtruth(put(tmp_path, replies, sources_of(["a"], ["x"])))
    assert says in str(error.value) and "response.jsonl" in str(error.value)


def test_an_unknown_task_is_refused(tmp_path):
    source = sources_of(["a"], ["x"])[0] | dict(task_type="Poem")
    with pytest.raises(BadData, match=r"source_info.jsonl, record 1: found task_type 'Poem'"):
        ragtruth(put(tmp_path, [GOOD], [source]))


def test_files_that_are_not_there_are_named_with_their_home(tmp_path):
    with pytest.raises(DataNotAtHand, match=r"ragtruth/response.jsonl.*ParticleMedia/RAGTruth"):
        ragtruth(tmp_path)
