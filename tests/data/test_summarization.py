"""Summaries of CNN/DailyMail and RoSE: small files of the published form become the table."""

import json

import numpy as np
import pytest

from tests.helpers.consistency import ODD, article, lines
from uetrust.data import consistency, summarization
from uetrust.data.loaders import BadData


# RoSE
def acu(**score_of_system):
    return dict(
        example_id="x1",
        source="S",
        reference="R",
        reference_acus=["f"],
        annotations={
            system: dict(acu_labels=[1], acu=score, normalized_acu=score / 2)
            for system, score in score_of_system.items()
        },
        system_outputs={system: f"by {system}" for system in score_of_system},
    )


def test_rose_is_one_row_per_document_and_system(put):
    put(
        "rose/cnndm_protocol_gpt3.jsonl",
        lines([acu(gpt3=0.5, bart=1), acu(gpt3=0, bart=0.25) | dict(example_id="x2")]),
    )
    df = summarization.rose("cnndm_protocol_gpt3", put.at, complete=False)
    assert df[["id", "system", "hypothesis", "human", "normalized_acu"]].to_numpy().tolist() == [
        ["x1 gpt3", "gpt3", "by gpt3", 0.5, 0.25],
        ["x1 bart", "bart", "by bart", 1.0, 0.5],
        ["x2 gpt3", "gpt3", "by gpt3", 0.0, 0.0],
        ["x2 bart", "bart", "by bart", 0.25, 0.125],
    ]
    assert df["label"].isna().all() and df["reference"].eq("R").all()


@pytest.mark.parametrize(
    "record,says",
    [
        (acu(bart=1.5), "1.5 as ACU of bart. It must be a number from 0 to 1"),
        (
            acu(bart=1) | dict(system_outputs=dict(t5="x")),
            "bart, t5 only under annotations or only under system_outputs",
        ),
        (
            {name: value for name, value in acu(bart=1).items() if name != "reference"},
            "without ['reference']",
        ),
    ],
)
def test_rose_damaged(put, record, says):
    put("rose/xsum.jsonl", lines([acu(bart=1), record]))
    with pytest.raises(BadData) as e:
        summarization.rose("xsum", put.at, complete=False)
    assert says in str(e.value) and "rose/xsum.jsonl, record 2" in str(e.value)


# Votes that two benchmarks read in two ways
def qags(*votes):
    return dict(
        article="A",
        summary_sentences=[
            dict(
                sentence=f"S{i}.",
                responses=[
                    dict(worker_id=worker, response=answer) for worker, answer in enumerate(answers.split())
                ],
            )
            for i, answers in enumerate(votes)
        ],
    )


def test_qags_needs_a_majority_for_every_sentence(put):
    put(
        "qags/mturk_cnndm.jsonl",
        lines([qags("yes yes no", "yes yes yes"), qags("yes no no", "yes yes yes"), qags("yes no")]),
    )
    df = consistency.qags_votes("cnndm", put.at, complete=False)
    assert df["label"].tolist() == [1, 0, 0]
    assert df["human"].tolist() == [1, 0.5, 0]
    assert df["hypothesis"][0] == "S0. S1."
    with pytest.raises(BadData, match="found 3 of qags_cnndm. 235 were published"):
        consistency.qags_votes("cnndm", put.at)


def frank(sentences, split="valid", **more):
    return (
        dict(
            hash="h",
            model_name="m",
            article="A",
            summary="S",
            split=split,
            summary_sentences_annotations=[
                {f"annotator_{i}": labels for i, labels in enumerate(judges)} for judges in sentences
            ],
        )
        | more
    )


def test_frank_by_both_rules(put):
    clean, wrong, both = ["NoE"], ["EntE"], ["EntE", "NoE"]
    put(
        "frank/human_annotations_sentence.json",
        json.dumps(
            [
                frank([[clean, clean, wrong], [clean, clean, clean]], hash="1"),
                frank([[clean, wrong, wrong], [clean] * 3], hash="2"),
                frank([[clean, both, wrong]], hash="3"),
                frank([[clean] * 3], split="test", hash="4"),
            ]
        ),
    )
    true, summac = (
        consistency.true_set("frank", put.at, complete=False),
        consistency.summac("frank", "val", put.at, complete=False),
    )
    assert true["id"].tolist() == summac["id"].tolist() == ["1 m", "2 m", "3 m"]
    assert true["label"].tolist() == [1, 0, 0]
    assert summac["label"].tolist() == [
        1,
        0,
        1,
    ]  # the third: one worker says both
    assert true["human"].tolist() == [1, 0.5, 0]
    assert consistency.summac("frank", "test", put.at, complete=False)["id"].tolist() == ["4 m"]
    put("frank/human_annotations_sentence.json", json.dumps([frank([])]))
    with pytest.raises(BadData, match="record 1: found a sentence without labels, or no sentence"):
        consistency.true_set("frank", put.at, complete=False)


def judged(letter, model, *grades):
    return dict(
        id=f"cnn-test-{letter * 40}",
        model_id=model,
        decoded=f"By {model}.",
        expert_annotations=[dict(consistency=grade, fluency=1) for grade in grades],
    )


def test_summeval_by_both_rules(news):
    given = [judged("a", "M1", 5, 5, 5), judged("a", "M2", 5, 5, 4), judged("b", "M1", 5, 4, 4)]
    for ending in ("", ".scored"):
        news(f"summeval/model_annotations.aligned{ending}.jsonl", lines(given))
    true = consistency.true_set("summeval", news.at, complete=False)
    assert true["label"].tolist() == [1, 0, 0]
    assert np.allclose(true["human"], [5, 14 / 3, 13 / 3])
    assert true["source"][0] == f"Article a. It says {ODD}."
    val, test = (consistency.summac("summeval", split, news.at, complete=False) for split in ("val", "test"))
    assert val["label"].tolist() == [1, 0]
    assert test["label"].tolist() == [1]
    assert test["system"].tolist() == ["M2"]
    assert val["source"][0] == article("a")
    news("summeval/model_annotations.aligned.jsonl", lines([judged("a", "M1", 5, 6, 5)]))
    with pytest.raises(
        BadData, match=r"record 1: found \[5, 6, 5\] as consistency. Each expert gives a number from 1 to 5"
    ):
        consistency.true_set("summeval", news.at)


# CNN/DailyMail
@pytest.mark.parametrize(
    "change, says",
    [
        (dict(article=7), "record 3: found 7 for the source. It must be a text"),
        (dict(id="a" * 40), f"record 3: found the id {'a' * 40!r} of record 1 with other content"),
    ],
)
def test_a_wrong_article_is_named_by_its_place_in_the_file(put, change, says):
    articles = [dict(id=i * 40, article=article(i), highlights="High") for i in "abc"]
    put("cnndm/test.jsonl", lines([*articles[:2], articles[2] | change]))
    with pytest.raises(BadData) as e:
        summarization.cnndm("test", put.at, complete=False)
    assert f"cnndm/test.jsonl, {says}" in str(e.value)
