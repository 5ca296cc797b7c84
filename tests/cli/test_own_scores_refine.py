"""`uetrust refine` on a file, as a user types it."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.cli import call
from tests.helpers.command_runs import claim_table
from uetrust.evaluation.inference.kept_claims import refine_claims

ASK = "--truth right --uncertainty msp entropy --document article --alpha 0.2".split()


@pytest.fixture
def claims(tmp_path):
    claim_table().to_csv(tmp_path / "claims.csv", index=False)
    return tmp_path / "claims.csv"


def library(df, **options):
    return refine_claims(df["right"], df[["msp", "entropy"]], df["article"], 0.2, **options)


@pytest.mark.parametrize(
    ("options", "given"), [((), {}), (("--delta", "0.2", "--group", "system"), dict(delta=0.2))]
)
def test_the_command_says_what_the_library_finds(claims, capsys, options, given):
    df = pd.read_csv(claims)
    want = library(df, **given, **(dict(group=df["system"]) if options else {}))
    code, out, _ = call(capsys, "refine", claims, *ASK, *options, "--json")
    found = json.loads(out)
    assert code == 0 and (found["alpha"], found["delta"]) == (0.2, given.get("delta"))
    for name in ("table", "methods"):
        pd.testing.assert_frame_equal(pd.DataFrame(found[name]), getattr(want, name), check_dtype=False)
    out = call(capsys, "refine", claims, *ASK, *options)[1]
    assert all(sentence in out for sentence in want.table["sentence"])
    assert ("Risk by group under one threshold:" in out) == bool(options)
    assert f"Refined by {want.methods['method'][0]}:\na48: " in out and "more lines" in out


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_rows_of_the_file_are_written_with_what_stays(claims, capsys, tmp_path, suffix):
    df, out = pd.read_csv(claims), tmp_path / f"out{suffix}"
    assert call(capsys, "refine", claims, *ASK, "--out", out)[0] == 0
    written = pd.read_csv(out) if suffix == ".csv" else pd.read_parquet(out)
    assert written[list(df)].equals(df) and list(written)[len(df.columns) :] == ["kept_msp", "kept_entropy"]
    assert written["kept_msp"].equals(library(df).kept["msp"].astype(int))
    one = [word for word in ASK if word != "entropy"]
    call(capsys, "refine", claims, *one, "--id", "claim", "--out", out)
    written = pd.read_csv(out) if suffix == ".csv" else pd.read_parquet(out)
    assert list(written)[-1] == "kept" and set(written["claim"]) == set(df["claim"])


def test_without_new_texts_the_labelled_ones_are_shown_as_judged_by_the_others(claims, capsys, tmp_path):
    df = pd.read_csv(claims).query("right.notna()")
    df.to_csv(claims, index=False)
    out = call(capsys, "refine", claims, *ASK, "--out", tmp_path / "out.csv")[1]
    assert "a0: " in out and "new texts" not in out
    hidden = df.assign(right=df["right"].mask(df["article"] == "a7"))
    mine = (df["article"] == "a7").to_numpy()
    kept = pd.read_csv(tmp_path / "out.csv")["kept_msp"].to_numpy()[mine]
    assert kept.tolist() == library(hidden).kept["msp"].to_numpy()[mine].astype(int).tolist()


def test_a_confidence_is_turned_round_and_methods_are_found_by_name(claims, capsys):
    df = pd.read_csv(claims)
    df.assign(sure=-df["msp"]).drop(columns="msp").to_csv(claims, index=False)
    common = "--truth right --document article --alpha 0.2 --json".split()
    row = json.loads(call(capsys, "refine", claims, *common, "--confidence", "sure")[1])["table"][0]
    want = refine_claims(df["right"], df[["msp"]], df["article"], 0.2).table.iloc[0]
    assert (row["threshold"], row["kept"]) == (want["threshold"], want["kept"])
    code, out, err = call(capsys, "refine", claims, *common)
    assert [one["method"] for one in json.loads(out)["table"]] == ["entropy"] and "entropy" in err


def test_the_words_of_claims_are_those_of_the_named_column(claims, capsys):
    df = pd.read_csv(claims)
    df.assign(year=1900 + np.arange(len(df))).rename(columns=dict(claim="words")).to_csv(claims, index=False)
    assert "Refined by" not in call(capsys, "refine", claims, *ASK)[1]
    assert "claim 144" in call(capsys, "refine", claims, *ASK, "--text", "words")[1]
    assert " 2044\n" in call(capsys, "refine", claims, *ASK, "--text", "year")[1]


def test_claims_without_uncertainty_are_counted(claims, capsys):
    df = pd.read_csv(claims)
    df.loc[[3, 5], "msp"] = np.nan
    df.to_csv(claims, index=False)
    assert "Claims without msp, which never stay: 2." in call(capsys, "refine", claims, *ASK)[1]


def test_a_group_is_no_document_where_a_command_has_groups(claims, capsys):
    assert "Use --group." in call(capsys, "refine", claims, *ASK, "--groups", "system")[2]
    options = "--quality", "right", "--uncertainty", "msp"
    for word in ("--group", "--groups"):
        assert f"{word}. Use --document." in call(capsys, "prr", claims, *options, word, "system")[2]


@pytest.mark.parametrize("words, names", [((), "row 4, row 6"), (("--id", "claim"), "claim 3, claim 5")])
def test_claims_without_a_text_are_named_with_their_column(claims, capsys, words, names):
    df = pd.read_csv(claims)
    df.loc[[3, 5], "article"] = None
    df.to_csv(claims, index=False)
    code, _, err = call(capsys, "refine", claims, *ASK, *words)
    said = f"claims.csv: column 'article' is empty for 2 of {len(df)} claims: {names}. Name the text of each"
    assert code == 2 and said in err
