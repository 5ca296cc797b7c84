"""Counts of a bank's texts, their tokens and their errors, by hand and by loops."""

import numpy as np
import pandas as pd
import pytest

from uetrust.data.bulletins import bulletins, questions
from uetrust.papers.bulletins.texts import (
    bank_counts,
    checked_greedy_texts,
    checked_texts,
    error_columns,
    error_facts,
    error_rates,
    token_summary,
)

BANK = pd.DataFrame(
    dict(
        sample=["a", "a", "a", "b", "b", "b"],
        kind=["greedy", "sample", "sample"] * 2,
        text=["one two", "one", "one", "", "three four five", "six"],
        finish=["stop", "length", "stop", "stop", "length", "length"],
        truncated=[True, True, True, None, False, False],
    )
)


def test_texts_are_counted_by_kind():
    table = bank_counts(BANK)
    assert list(table.index) == ["greedy", "sample"] and table["texts"].tolist() == [2, 4]
    assert table["distinct"].tolist() == [1, 1.5] and table["words"].tolist() == [1, 6 / 4]
    assert table["empty"].tolist() == [1, 0] and table["at_limit"].tolist() == [0, 3]
    assert table["cut_sources"].tolist() == [1, 1], "sources, not prompts"


def test_a_mean_is_over_tokens_and_not_over_texts():
    readings = pd.DataFrame(
        dict(
            kind=["greedy", "greedy"],
            logp=[[-1.0], [-3.0, -3.0, -3.0]],
            entropy=[[0.5], [0.1, 0.1, 0.1]],
            ids=[np.array([4]), np.array([5, 6, 7])],
            top_ids=[np.array([[4, 1]]), np.array([[5, 1], [1, 6], [7, 1]])],
        )
    )
    row = token_summary(readings).loc["greedy"]
    assert row["tokens"] == 2 and row["logp"] == -2.5 and row["entropy"] == pytest.approx(0.2)
    assert row["first"] == 0.75 and "first" not in token_summary(readings.drop(columns="top_ids"))


@pytest.fixture(scope="module")
def written():
    "References of four bulletins as greedy texts, and those of others as drawn ones"
    world = bulletins("test", 4)
    texts, others = list(world["reference"]), list(world["reference"].iloc[[1, 2, 3, 0]])
    rows = [dict(sample=i, kind="greedy", k=0, text=text) for i, text in zip(world["id"], texts)]
    rows += [dict(sample=i, kind="sample", k=0, text=text) for i, text in zip(world["id"], others)]
    return pd.DataFrame(rows).assign(split="test")


def test_right_texts_have_no_error_and_those_of_other_bulletins_have(written):
    truth = checked_texts(written)
    rates = error_rates(truth).set_index(["kind", "error"])
    assert rates.loc[("greedy", "any"), ["share", "hi", "sources"]].tolist() == [0, 0, 4]
    assert rates.loc[("sample", "any"), ["share", "lo"]].tolist() == [1, 1]
    assert list(checked_greedy_texts(written).index) == list(bulletins("test", 4)["id"])


def test_an_interval_is_over_sources(written):
    truth = checked_texts(written)
    mixed = truth.assign(sample=["s0", "s1", "s2", "s3"] * 2, kind="both")
    row = error_rates(mixed).set_index("error").loc["any"]
    assert row["share"] == 0.5 and row["lo"] == row["hi"] == 0.5, "one text of two is wrong for every source"


def test_texts_of_other_bulletins_than_the_first_are_refused(written):
    with pytest.raises(ValueError, match="has one split, found"):
        checked_texts(written.assign(split=["test", "train"] * 4))
    with pytest.raises(ValueError, match="not the first bulletins of split 'test'"):
        checked_texts(written[written["sample"] != written["sample"].iloc[0]])


def test_answers_are_checked_as_answers():
    sources = questions("test", 4)
    answers = list(sources["reference"][:2]) + ["nothing", sources["source"][3]]
    bank = pd.DataFrame(dict(sample=sources["id"], kind="greedy", k=0, text=answers)).assign(split="test")
    found = checked_greedy_texts(bank.assign(dataset="questions"))
    assert found["truth"].tolist() == [1, 1, 0, 0] and error_columns(found) == ["wrong", "unread"]
    assert found["unread"].tolist() == [0, 0, 1, 0] and list(found.index) == list(sources["id"])
    rates = error_rates(checked_texts(bank.assign(dataset="questions"))).set_index("error")["share"]
    assert rates.to_dict() == dict(wrong=0.25, unread=0.25, any=0.5)
    assert len(error_columns(checked_texts(bank))) == 7, "bulletins when the bank names no dataset"


def test_error_facts_of_answers_are_shares_of_greedy_answers():
    truth = pd.DataFrame(dict(truth=[1, 0, 0, 0], wrong=[0, 1, 0, 0], unread=[0, 0, 1, 1]))
    truth = truth.assign(kind="greedy", sample=list("abcd"))
    facts = error_facts(error_rates(truth), truth)
    assert (facts.greedy, facts.drawn, facts.unread) == ("75% [26%, 100%]", "", 0.5)
    assert facts.fluency != facts.fluency
