"""Data sets by name: the subjects of people are added to the senders'."""

import numpy as np
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
        "aeslc:test:5:42": "",
        "aeslc:test:5:": "NAME:SPLIT:NUMBER:SEED for a random draw",
        "aeslc:test:5:x": "or NAME:SPLIT:NUMBER:SEED for a random draw",
        "aeslc:test:5:1:2": "or NAME:SPLIT:NUMBER:SEED for a random draw",
        "aeslc:test:5:4294967296": "the seed of a random draw is a whole number below 2^32, got",
        "bulletin:test:5:42": "nothing is drawn: write bulletin:test:5, got 'bulletin:test:5:42'",
        "aelsc:test:3:42": "did you mean 'aeslc:test:3:42'?",
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


@real
def test_a_seed_draws_what_the_release_drew():
    "np.random.seed and np.random.choice, as the release calls them, on the e-mails of the mirror"
    every, drawn = load_samples("aeslc:train:14436"), load_samples("aeslc:train:1000:42")
    np.random.seed(42)
    rows = np.random.choice(len(every), 1000, replace=False)
    assert drawn.equals(every.iloc[rows].reset_index(drop=True)) and drawn["id"].is_unique
    assert rows[:5].tolist() == [10355, 907, 2858, 6720, 2714]
    assert load_samples("aeslc:train:9:42").equals(drawn.head(9))
    assert not load_samples("aeslc:train:9:43").equals(drawn.head(9))
    assert load_samples("aeslc:train:9").equals(every.head(9))
    with pytest.raises(ValueError, match="aeslc:test has 1906 samples, 1907 were requested"):
        load_samples("aeslc:test:1907:42")
