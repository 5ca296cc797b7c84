"""Data sets by name: the subjects of people are added to the senders'."""

import pandas as pd
import pytest

from uetrust.core.settings import mirror
from uetrust.data.datasets import dataset_problem, load_samples
from uetrust.scoring.metrics import compute_metrics

real = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")


@real
def test_the_subjects_of_people_are_added_to_the_senders():
    known, more = load_samples("aeslc:test:40"), load_samples("aeslc-annotated:test:40")
    assert (
        more.drop(columns="references").equals(known)
        and more["references"].str.len().eq(4).all()
        and (more["references"].str[0] == known["reference"]).all()
    )
    table = compute_metrics(
        pd.DataFrame(
            dict(
                id=more["id"],
                hypothesis=[row[2] for row in more["references"]],
                references=more["references"],
            )
        ),
        {},
        ["rouge_l"],
        progress=False,
    ).table
    assert (
        (table["value"] == 1) | table["note"].str.startswith("the reference has no word")
    ).all() and table["value"].notna().sum() > 35
    with pytest.raises(
        ValueError, match="e-mails of 'train' as they are here have no annotated subjects: aeslc:train:N"
    ):
        load_samples("aeslc-annotated:train:3")


@pytest.mark.parametrize(
    "dataset, says",
    {
        "bulletin:test:3": "",
        "questions:test:3": "",
        "question:test:3": "did you mean 'questions:test:3'?",
        "bulletins:test:3": "there is no dataset 'bulletins'; did you mean 'bulletin:test:3'?",
        "aeslc-anotated:test:3": "did you mean 'aeslc-annotated:test:3'?",  # Nearer than aeslc
        "aelsc:test:3": "did you mean 'aeslc:test:3'?",
        "zebra:test:3": "a dataset is one of ['bulletin', 'questions', 'aeslc-annotated', 'aeslc', ",
        "bulletins": "a dataset is one of ['bulletin', ",
        "bulletin:test": "written NAME:SPLIT:NUMBER, for example bulletin:test:100, got 'bulletin:test'",
        "aeslc:test:0": "for example aeslc:test:100, got 'aeslc:test:0'",
        "aeslc:test:-3": "for example aeslc:test:100, got 'aeslc:test:-3'",
        ".": ". is a folder; name a .csv, .parquet, .json or .jsonl file in it",
    }.items(),
)
def test_a_name_that_is_no_dataset_is_answered_with_what_would_work(dataset, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert says in dataset_problem(dataset) and bool(says) == bool(dataset_problem(dataset))


def test_questions_are_samples_like_others():
    table = load_samples("questions:test:5")
    assert (
        list(table) == ["id", "split", "source", "reference"]
        and table["source"].str.contains("\\nQuestion: ").all()
    )
    assert list(table["id"]) == list(load_samples("bulletin:test:5")["id"])
    assert "questions:test:100000000000" in dataset_problem("questions:test:100000000000")
