"""Refined claims as they are shown: the page holds nothing that a text smuggles in, and no empty column."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.browser import page_problems
from tests.helpers.command_runs import claim_table
from uetrust.cli.cli import main
from uetrust.evaluation.inference.kept_claims import refine_claims
from uetrust.report.refined import refined_lines, refined_tables, refined_texts

NASTY = '<script>alert(1)</script> & "O\'Hara" \u202eabc'


@pytest.fixture
def page(tmp_path):
    def written(df, *options):
        df.to_csv(tmp_path / "claims.csv", index=False)
        words = "--truth right --uncertainty msp entropy --document article".split()
        argv = ["refine", str(tmp_path / "claims.csv"), *words, "--html", str(tmp_path / "page.html")]
        assert main([*argv, *options]) == 0
        return (tmp_path / "page.html").read_text(encoding="utf-8")

    return written


def test_a_page_shows_the_sentences_the_tables_and_refined_texts(page):
    df = claim_table()
    text = page(df, "--alpha", "0.2")
    found = refine_claims(df["right"], df[["msp", "entropy"]], df["article"], 0.2)
    assert all(sentence in text for sentence in found.table["sentence"])
    best = found.methods["method"][0]
    for claim, stays, right in zip(df["claim"], found.kept[best], df["right"]):
        if np.isnan(right):
            assert (f"<li>{claim}</li>" if stays else f"<li><del>{claim}</del></li>") in text
        else:
            assert f">{claim}<" not in text
    titles = ["Promises", "Kept at equal risk", "Refined texts", "Where this comes from"]
    assert [title for title in titles if f"<h2>{title}</h2>" in text] == titles
    assert f"<dd>{best}</dd>" in text and "under one threshold" not in text


def test_what_a_text_holds_is_text(page, tmp_path):
    df = claim_table()
    df.loc[df.index[-1], "claim"] = NASTY
    df.loc[df["system"] == "two", "system"] = NASTY
    text = page(df, "--alpha", "0.2", "--group", "system")
    assert "<script" not in text and "&lt;script&gt;alert(1)&lt;/script&gt; &amp;" in text
    assert "Risk by group under one threshold" in text and str(tmp_path) not in text


def test_a_browser_finds_nothing_wrong(watched, page, tmp_path):
    df = claim_table()
    df.loc[df.index[-1], "claim"] = "word " * 60 + "x" * 300
    page(df, "--alpha", "0.2", "--group", "system")
    assert page_problems(watched, tmp_path / "page.html") == []


def test_new_texts_are_shown_or_else_the_labelled_ones():
    given = list("abcd"), ["x", "x", "y", "z"], [1, 0, 1, 0]
    new = refined_texts(*given, [0, 0, 1, 1])
    assert [(text.name, text.claims) for text in new] == [("y", [("c", True)]), ("z", [("d", False)])]
    old = refined_texts(*given, [0] * 4, most=1)
    assert [text.line() for text in old] == ["x: 1 of 2 claims stay"]
    assert refined_lines(old) == ["x: 1 of 2 claims stay", "  + a", "  - b"]
    assert refined_lines(old, 1) == ["x: 1 of 2 claims stay", "... and 2 more lines"]


def test_tables_have_only_columns_that_say_something():
    df = pd.DataFrame(dict(text=np.repeat(np.arange(30), 2), right=[1, 0] * 30, msp=[1.0, 2] * 30))
    tables = refined_tables(refine_claims(df["right"], df[["msp"]], df["text"], draws=2))
    heads = [heading for heading, _ in tables[0][1].headings]
    assert heads == ["method", "texts", "needed", "threshold", "promise", "kept", "risk"]
    assert (
        tables[0][1].rows == [["msp", "30", "9", "2", "0.1", "0.50 [0.50, 0.50]", "0"]] and len(tables) == 1
    )
    new = df.assign(right=df["right"].mask(df["text"] > 20).astype(float), msp=df["msp"].mask(df.index == 3))
    tables = refined_tables(refine_claims(new["right"], new[["msp"]], new["text"], draws=2))
    heads = [heading for heading, _ in tables[0][1].headings]
    assert heads[-3:] == ["unscored", "new texts", "kept of new"]
    assert tables[0][1].rows[0][-3:] == ["1", "9", "0.5"]
