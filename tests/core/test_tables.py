"""Tables as people have them: files from public reports, with the values that independent code gives.

The files lie outside the repository, in ../shared/cases; without them the tests of them are skipped.
"""

import csv
import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.tables import CASES, ROWS, call, needs_cases, prr_of
from uetrust import prr, read_texts
from uetrust.core import checks, tables
from uetrust.core.tables import (
    list_cell,
    read_table,
    save_csv,
    table_records,
    truth_numbers,
    with_interval,
    write_table,
)

BASE = "--id id --quality quality --uncertainty u".split()
HUMAN = "--id id --quality human --uncertainty u".split()
BOOK = "--id id --quality rouge --uncertainty msp --header-row 2".split()
VALUES = {
    "g04c_swallow.tsv": (HUMAN, 0.8652, 8),  # Two rows swallowed: .8230 of 6
    "g04c_swallow.jsonl": (HUMAN, 0.8652, 8),
    "c06_base.csv": (BASE, 0.5741, 40),
    "c06_semicolon_comma.csv": (BASE, 0.5741, 40),
    "c06_quoted_decimal_comma.csv": (BASE, 0.5741, 40),
    "c08_merged_header.xlsx": (BOOK, 0.5741, 40),
    "c12_records.json": (BASE, 0.6862, 20),
    "c12_split.json": (BASE, 0.6862, 20),
}


@needs_cases
@pytest.mark.parametrize("name", VALUES)
def test_prr_of_a_file_that_somebody_had(name, capsys):
    argv, value, n = VALUES[name]
    row, _ = prr_of(capsys, CASES / name, *argv)
    assert (row["value"], row["n"]) == (pytest.approx(value, abs=5e-5), n)


@needs_cases
def test_no_row_and_no_text_of_a_table_with_tabs_is_dropped():
    raw, clean = (read_table(CASES / f"g04c_swallow{end}", exact=True) for end in (".tsv", ".jsonl"))
    assert list(raw["reference"]) == list(clean["reference"]) and len(raw) == 8
    assert raw["reference"][2] == '"We open a school, the mayor said'


@needs_cases
def test_names_above_names_are_reported_with_the_sheets(capsys):
    file = CASES / "c08_merged_header.xlsx"
    code, out, err = call(capsys, "prr", file, "--quality", "rouge", "--uncertainty", "msp")
    assert (code, out) == (2, "")
    for word in ("row 1", "merged", "'rouge'", "--header-row 2", "['Sheet']", "--sheet"):
        assert word in err


@needs_cases
@pytest.mark.parametrize("folder", ["c13_shards", "c13_shards/data"])
def test_a_folder_of_parts_is_one_table(folder):
    texts = read_texts(CASES / folder)
    assert list(texts["id"]) == list("012345") and texts["hypothesis"][5] == "A bus hit a tree."
    assert [record["id"] for record in table_records(CASES / folder).records] == list("012345")


@needs_cases
def test_rows_of_several_raters_have_names_of_two_columns(capsys):
    "Three raters per text: id alone occurs three times"
    argv = "--quality human --uncertainty u --document id --id id+rater".split()
    row, _ = prr_of(capsys, CASES / "c18_rows_per_rater.csv", *argv)
    table = pd.read_csv(CASES / "c18_rows_per_rater.csv")
    want = prr(table["human"], table["u"], document=table["id"])
    assert (row["value"], row["lo"], row["n"]) == (pytest.approx(want.value), pytest.approx(want.lo), 120)


@needs_cases
def test_a_grade_of_truth_values_is_1_and_0(capsys):
    argv = "--quality grade --confidence noncontradiction".split()
    row, _ = prr_of(capsys, CASES / "g05_uqlm_grade.csv", *argv)
    sure = np.array([0.99, 0.91, 0.75, 0.67, 0.59, 0.43])
    assert row["value"] == pytest.approx(prr([1, 1, 1, 0, 1, 0], -sure).value) and row["n"] == 6
    code, out, _ = call(capsys, "audit", CASES / "g05_uqlm_grade.csv", "--truth", "grade", "--json")
    assert code == 0 and {row["n"] for row in json.loads(out)["prr"]} == {6}


@needs_cases
def test_log_probabilities_of_numpy_are_a_list():
    table = read_table(CASES / "c04_numpy2_list.csv", exact=True)
    assert [sum(list_cell(cell)) for cell in table["logprobs"]] == [pytest.approx(-1.5)] * 6


def test_letters_stay_letters(tmp_path, capsys):
    frame = pd.DataFrame(ROWS).rename(columns=dict(u="msp")).assign(grade=list("ABCDFABCDFAB"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    argv = "--quality grade --uncertainty msp --id id".split()
    code, _, err = call(capsys, "prr", tmp_path / "x.csv", *argv)
    assert code == 2 and "grade" in err and "'A' at sample s0" in err
    code, out, _ = call(capsys, "audit", tmp_path / "x.csv", "--id", "id")
    assert code == 0 and "holds no numbers  grade" in out


# Writing and reading
ODD = "\r\n\t,;|\"'=+-@ \u2028\u2029\x85\x0b\x0c\x1c\ufeff\u00a0aé1.[]{}\\#"
texts = st.text(st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.lists(st.tuples(texts, texts), min_size=1))
def test_what_we_write_we_read(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    save_csv(pd.DataFrame(rows, columns=["a", "b"]), path)
    read = read_table(path, exact=True)
    assert list(zip(read["a"], read["b"])) == rows


@given(st.lists(texts, min_size=1))
def test_what_pandas_writes_we_read(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    cells = [cell.lstrip("'") for cell in cells]  # An apostrophe before a formula counts as ours
    pd.DataFrame(dict(a=cells, n=1)).to_csv(path, index=False)
    assert list(read_table(path, exact=True)["a"]) == cells


@given(st.lists(texts, min_size=1))
def test_what_pandas_writes_with_tabs_we_read_or_refuse(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("tsv") / "x.tsv"
    cells = [
        cell.lstrip("'").replace("\t", " " * ("\n" in cell) + "\t" * ("\n" not in cell)) for cell in cells
    ]
    pd.DataFrame(dict(a=cells, n=1)).to_csv(path, index=False, sep="\t")
    assert list(read_table(path, exact=True)["a"]) == cells


raw = st.text(st.sampled_from("a \"',") | st.characters(categories=["L", "P"]), min_size=1)


@given(st.lists(st.tuples(raw, raw), min_size=1))
def test_raw_tables_with_tabs_lose_no_row(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tsv") / "x.tsv"
    rows = [("x" + a, b + "x") for a, b in rows]  # Not a text that is quoted as a whole
    path.write_text("a\tb\n" + "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    read = read_table(path, exact=True)
    assert list(zip(read["a"], read["b"])) == rows


@given(st.lists(st.floats(allow_nan=False, width=32) | st.integers(-9, 9), min_size=1))
def test_lists_as_python_and_numpy_print_them(values):
    found = list_cell(str(values)), list_cell(str([np.float64(value) for value in values]))
    assert found == (values, [float(value) for value in values])
    with np.printoptions(threshold=10**6, floatmode="unique"):
        assert list_cell(str(np.array(values, float))) == [float(value) for value in values]


@given(st.lists(texts, min_size=1))
def test_lists_of_texts_as_python_numpy_and_json_print_them(cells):
    assert list_cell(str(cells)) == list_cell(json.dumps(cells)) == cells
    with np.printoptions(threshold=10**6):
        assert list_cell(str(np.array(cells, object))) == cells


@pytest.mark.parametrize(
    "text", ["[invalid]", "[1] A cited text", "[...]", "[sic]", "[1, 2] and [3]", "x", "[", ""]
)
def test_a_text_that_begins_with_a_bracket_is_a_text(text):
    assert list_cell(text) is None


def test_an_array_that_numpy_cut_is_refused():
    for values in (np.arange(2000.0), np.ones((40, 60))):
        for text in (str(values), repr(values)):
            with pytest.raises(ValueError, match="numpy left out"):
                list_cell(text)


@pytest.mark.parametrize(
    "cells, numbers",
    [
        (["True", "FALSE", None], [1, 0, math.nan]),
        ([True, False, np.True_], [1, 0, 1]),
        (["yes", "No", "NA"], [1, 0, math.nan]),
        (["Y", "n"], [1, 0]),
        (["Y", "Y"], None),
        (["yes", "true"], None),
        (["C", "I"], None),
        (["1", "0"], None),
        ([1, 0], None),
        (["", None], None),
    ],
)
def test_truth_values_and_what_are_none(cells, numbers):
    found = truth_numbers(cells)
    assert (found is None) == (numbers is None)
    assert numbers is None or [str(float(number)) for number in numbers] == list(map(str, found))


@pytest.mark.parametrize("end", ["csv", "tsv", "jsonl", "json", "parquet", "xlsx", "csv.gz", "jsonl.gz"])
def test_records_are_the_same_from_every_kind_of_file(end, tmp_path):
    frame, path = pd.DataFrame(dict(id=["a", "b"], text=["x, y", 'say "z"'])), tmp_path / f"x.{end}"
    kind = end.split(".")[0]
    {
        "csv": lambda: frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL),
        "tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        "jsonl": lambda: frame.to_json(path, orient="records", lines=True),
        "json": lambda: frame.to_json(path, orient="split"),
        "parquet": lambda: frame.set_index("id").to_parquet(path),
        "xlsx": lambda: frame.to_excel(path, index=False),
    }[kind]()
    records = table_records(path).records
    assert [dict(sorted(record.items())) for record in records] == frame.to_dict("records")


def test_a_missing_field_of_a_record_is_not_made_up(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"id": 1}\n{"id": 2, "data": {"u": [1]}}\n')
    assert table_records(tmp_path / "x.jsonl").records == [dict(id=1), dict(id=2, data=dict(u=[1]))]


def test_references_of_a_csv_are_lists(tmp_path):
    cells = ["['a b', 'c']", '["d"]', "['e' 'f']"]
    pd.DataFrame(dict(hypothesis="x", references=cells)).to_csv(tmp_path / "x.csv", index=False)
    assert list(read_texts(tmp_path / "x.csv")["references"]) == [["a b", "c"], ["d"], ["e", "f"]]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_table_is_written_without_the_numbers_of_its_rows(tmp_path, ending):
    table = pd.DataFrame(dict(sample=["b", "a"], value=[0.1 + 0.2, np.nan]), index=[7, 3])
    write_table(table, tmp_path / f"s.{ending}")
    read = (pd.read_parquet if ending == "parquet" else pd.read_csv)(tmp_path / f"s.{ending}")
    pd.testing.assert_frame_equal(read, table.reset_index(drop=True), rtol=1e-15)  # Of pandas 2
    with pytest.raises(ValueError, match="written to .parquet or .csv files, not .*s.txt"):
        write_table(table, tmp_path / "s.txt")


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(
        ["007", "-007", "0", "+1", "1.", ".5", "1e400", "1E-3", "1_000", "1,5", " 1", "nan", "NA", "yes", ""]
    ),
)
KINDS = (
    st.floats(-1, 1).map(repr),
    st.integers(-9, 9).map(str),
    st.sampled_from(["007", "12", "0", "-3"]),
    st.integers(10**14, 10**19).map(str),
    st.floats(1e300, 1e308).map(lambda x: repr(x)[:-1] + "9"),  # Some are infinite
    NUMBERS,
    st.text("ab 0.1-;e\u00e9", max_size=5),
)
COLUMN = st.one_of(*(st.lists(kind, min_size=4, max_size=4) for kind in KINDS))


@given(st.lists(COLUMN, min_size=1, max_size=4), st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]))
def test_a_large_file_is_read_as_a_small_one(tmp_path_factory, columns, mark, end):
    "Arrow and our own reader give the same cells, kinds of columns, notes and errors."
    rows = [[f"c{i}" for i in range(len(columns))], *zip(*columns)]
    path = tmp_path_factory.mktemp("large") / ("x.tsv" if mark == "\t" else "x.csv")
    path.write_text("".join(mark.join(row) + end for row in rows), encoding="utf-8", newline="")
    found = []
    for many in (10**9, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tables, "MANY_CHARACTERS", many)
            patch.setattr(tables, "MANY_CELLS", many)
            try:
                found.append(tables.read_table_file(path))
            except ValueError as error:
                found.append(str(error))
    small, large = found
    if isinstance(small, str):
        assert small == large
    else:
        pd.testing.assert_frame_equal(small.table, large.table, check_exact=True)
        assert small[1:] == large[1:]


def test_a_table_that_fits_into_no_memory_is_refused_before_it_is_read(tmp_path, monkeypatch, capsys):
    path = tmp_path / "long.csv"
    path.write_text("id,quality,u\n" + "a,1,2\n" * 1000)
    monkeypatch.setattr(checks, "available_memory", lambda: 50_000)
    code, out, err = call(capsys, "prr", path, *BASE)
    assert (code, out) == (2, "")
    for word in ("long.csv", "would need about 6.01e-05 GB", "5e-05 GB are free", "Split it"):
        assert word in err


def test_a_long_column_of_numbers_is_read_as_a_whole_and_not_cell_by_cell(tmp_path, monkeypatch):
    rows = [("4", "0.5"), ("-3", "1e-2"), ("12", "-7")]
    (tmp_path / "x.csv").write_text("n,u\n" + "".join(f"{n},{u}\n" for n, u in rows))
    calls, one_by_one = [], tables._column
    monkeypatch.setattr(tables, "_column", lambda *given: calls.append(1) or one_by_one(*given))
    for many, columns in ((4, 2), (3, 0)):  # Three cells are many, or they are not
        monkeypatch.setattr(tables, "MANY_CELLS", many)
        read = read_table(tmp_path / "x.csv")
        assert (read["n"].tolist(), read["u"].tolist()) == ([4, -3, 12], [0.5, 0.01, -7.0])
        assert len(calls) == columns
        calls.clear()


@pytest.mark.parametrize(
    "row, ends_in_a_comma",
    [("7,8,", True), (",8,", True), ("7,,9", False), (",,9", False), ("7", False)],
)
def test_only_a_row_that_ends_in_a_comma_is_reported_to(tmp_path, row, ends_in_a_comma):
    (tmp_path / "x.csv").write_text(f"id,u\na,1\n{row}\n")
    with pytest.raises(ValueError, match=f"line 3 has {len(row.split(','))} fields") as error:
        read_table(tmp_path / "x.csv")
    assert ("a comma at the end of a row is one more field" in str(error.value)) == ends_in_a_comma
    assert "1 of 2 rows do not fit" in str(error.value)


def test_decimals_and_arrays_of_parquet_are_numbers_and_lists_wherever_they_stand(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    tenth, inner = Decimal("0.10"), dict(grade=Decimal("2.25"), parts=[Decimal("0.50"), None], by="ann")
    pq.write_table(pa.Table.from_pylist([dict(u=tenth, us=[tenth], data=inner)]), tmp_path / "x.parquet")
    want = [dict(u=0.1, us=[0.1], data=dict(grade=2.25, parts=[0.5, None], by="ann"))]
    for found in (table_records(tmp_path / "x.parquet").records, read_table(tmp_path / "x.parquet")):
        records = found if isinstance(found, list) else found.to_dict("records")
        assert json.loads(json.dumps(records)) == want  # Decimals and arrays are no JSON


@pytest.mark.parametrize("column, formula, cell", [("u", "=1/5", "B3"), ("id", "=HYPERLINK(1)", "A3")])
def test_a_formula_that_no_program_has_computed_is_refused(tmp_path, column, formula, cell):
    frame = pd.DataFrame(dict(id=["a", "b"], u=[0.5, 1.5]))
    frame.to_excel(tmp_path / "x.xlsx", index=False)
    assert read_table(tmp_path / "x.xlsx").to_dict("list") == dict(id=["a", "b"], u=[0.5, 1.5])
    frame.astype(object).assign(**{column: [frame[column][0], formula]}).to_excel(
        tmp_path / "x.xlsx", index=False
    )
    with pytest.raises(ValueError) as error:
        read_table(tmp_path / "x.xlsx")
    assert f"x.xlsx, cell {cell}: {formula!r} is a formula without a value" in str(error.value)


@pytest.mark.parametrize("left", [".x.csv", "._a.csv", "_x.csv", ".parquet", "_SUCCESS", "notes.txt"])
def test_files_whose_name_begins_with_a_dot_or_a_line_are_no_parts(tmp_path, left):
    for name in ("a.csv", "b_.csv", "x"):
        (tmp_path / name).write_text(f"id,u\n{name},1\n")
    (tmp_path / left).write_text("another, file\n")
    assert list(read_table(tmp_path)["id"]) == ["a.csv", "b_.csv"]


def test_a_value_stands_with_its_interval():
    row = pd.Series(dict(value=0.125, lo=-0.5, hi=1))
    assert with_interval(row, 3) == "0.125 [-0.500, 1.000]"
    assert with_interval(row) == "0.12 [-0.50, 1.00]"
