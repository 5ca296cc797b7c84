"""Statements of summaries: their truth, their tokens, and what an inserted error changes."""

import numpy as np
import pandas as pd
import pytest

from uetrust.data.bulletins import bulletins
from uetrust.data.checker import check_summary
from uetrust.data.generations import Generation
from uetrust.papers.bulletins.inputs import bank_plan
from uetrust.papers.units import statements


@pytest.fixture(scope="module")
def world():
    return bulletins("test", 12)


@pytest.fixture(scope="module")
def read(world):
    return statements.read_versions(
        bank_plan("demo", "bulletin--tiny-bart"), statements.corrupted_summaries(world)
    )


def test_a_version_has_one_wrong_statement_and_the_other_words_as_they_were(world):
    versions = statements.corrupted_summaries(world)
    rows = world.set_index("id")
    assert versions["id"].is_unique and set(versions["document"]) == set(world["id"])
    for name, own in versions.groupby("document"):
        of = {row.wrong: row.text.split(". ") for row in own.itertuples()}
        assert set(of) == set(range(-1, len(of[-1])))
        for wrong, text in of.items():
            changed = [i for i, (new, old) in enumerate(zip(text, of[-1], strict=True)) if new != old]
            assert changed == [wrong] * (wrong >= 0)
            labels = check_summary(". ".join(text), rows.at[name, "facts"], rows.at[name, "main"]).labels
            assert labels.any() == (wrong >= 0)
    again = statements.corrupted_summaries(world)
    assert versions["text"].equals(again["text"])
    assert not versions["text"].equals(statements.corrupted_summaries(world, seed=1)["text"])


def test_the_truth_of_statements_is_that_of_their_words(world):
    row = next(world.itertuples())
    text = statements.corrupted_summaries(world.head(1))["text"].iloc[-1]
    units, right = statements.statement_units(Generation(text, tokens=text.split()), row.facts, row.main)
    wrong_words = check_summary(text, row.facts, row.main).labels.any(axis=1)
    assert [unit.text for unit in units] == [f"{part.rstrip('.')}." for part in text.split(". ")]
    assert right == [not wrong_words[unit.tokens].any() for unit in units] and not all(right)


def test_what_stands_before_an_error_is_read_as_without_it(read):
    methods = list(read.columns[read.columns.get_loc("words") + 1 :])
    assert {"msp", "perplexity", "min_token", "mte", "boosted_prob"} <= set(methods)
    blame = statements.spilled_blame(read)
    before, itself = blame[blame["offset"] < 0], blame[blame["offset"] == 0].set_index("label")
    assert len(before) and before["value"].abs().max() < 1e-4
    assert itself.loc["msp", "lo"] > 2


def test_an_inserted_error_is_found_and_its_position_is_not(read):
    one = statements.one_version(read)
    assert one.groupby("document")["wrong"].nunique().eq(1).all() and one["wrong"].nunique() > 1
    found = statements.statements_found(one.drop(columns="wrong")).set_index(["group", "label"])["value"]
    assert found["within a text", "msp"] > 0.8 and abs(found["within a text", "position"]) < 0.7


def test_blame_by_hand():
    table = pd.DataFrame(dict(document=list("aaaabbbb"), wrong=[-1, -1, 0, 0] * 2, position=[0, 1] * 4))
    table = table.assign(text="", right=1.0, words=3, msp=[1.0, 3, 5, 3, 1, 3, 9, 5])
    blame = statements.spilled_blame(table).set_index("offset")
    sd = np.std([1, 3, 1, 3], ddof=1)
    assert blame["value"].tolist() == pytest.approx([6 / sd, 1 / sd])
    assert blame["texts"].tolist() == [2, 2]
    half = 12.706 * np.std([4, 8], ddof=1) / np.sqrt(2) / sd
    assert blame.loc[0, "hi"] - blame.loc[0, "value"] == pytest.approx(half, rel=1e-3)


def test_the_banks_of_the_demo_whose_model_read_its_texts():
    assert list(statements.statement_banks("demo")) == [
        "bulletin--tiny-bart",
        "bulletin--tiny-t5",
        "bulletin--tiny-llama",
    ]
