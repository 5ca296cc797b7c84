"""Tables that are not what they seem: `uetrust prr`, and the same reader in `audit` and `generate`."""

import gzip
import json
import os
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.harness import fault
from uetrust.cli.user_table import read_scores

HEADER = "id,judge,msp"
ROWS = ["a,5,.1", "b,4,.2", "c,3,.3", "d,1,.9"]
CLEAN = dict(id=list("abcd"), judge=[5, 4, 3, 1], msp=[0.1, 0.2, 0.3, 0.9])
ASK = ["--id", "id", "--quality", "judge", "--uncertainty", "msp", "--json"]


def lines(*rows, header=HEADER):
    return "\n".join([header, *rows]) + "\n"


def put(folder, content, name="scores.csv"):
    if isinstance(content, str):
        content = content.encode()
    (folder / name).write_bytes(content)
    return ["prr", name, *ASK]


def is_one(folder, outcome):
    "The PRR of the clean table: uncertainty falls as quality rises."
    assert abs(json.loads(outcome.out)[0]["value"] - 1) < 1e-12


SAME = dict(
    plain=lines(*ROWS),
    mark_of_the_byte_order="\ufeff" + lines(*ROWS),
    windows_ends=lines(*ROWS).replace("\n", "\r\n"),
    quoted='"id","judge","msp"\n' + "\n".join(ROWS) + "\n",
    blank_lines=lines(ROWS[0], "", *ROWS[1:]) + "\n\n",
    spaces=lines(*(row.replace(",", ", ") for row in ROWS)),
    unnamed_column=lines(*(f"{i},{row}" for i, row in enumerate(ROWS)), header="," + HEADER),
    names_that_are_numbers=lines("01,5,.1", "1,4,.2", "1.0,3,.3", "1e0,1,.9"),
    a_missing_score=lines(*ROWS, "e,,.5"),
    the_word_NA=lines(*ROWS, "e,NA,.5"),
)


@fault("right", cases=SAME, check=is_one)
def the_same_table(folder, text):
    return put(folder, text)


def wide(folder, name, write):
    write(pd.DataFrame(CLEAN), folder / name)
    return ["prr", name, *ASK]


KINDS = {
    "x.tsv": lambda df, path: df.to_csv(path, sep="\t", index=False),
    "x.parquet": lambda df, path: df.to_parquet(path),
    "x.json": lambda df, path: df.to_json(path, orient="records"),
    "columns.json": lambda df, path: df.to_json(path),
    "x.jsonl": lambda df, path: df.to_json(path, orient="records", lines=True),
    "x.xlsx": lambda df, path: df.to_excel(path, index=False),
    "UPPER.CSV": lambda df, path: df.to_csv(path, index=False),
}


@fault("right", cases={name: (name, write) for name, write in KINDS.items()}, check=is_one)
def another_kind(folder, given):
    return wide(folder, *given)


# What is wrong -> the file, and what the message must say beside its name
WRONG = dict(
    trailing_comma=(lines(*(row + "," for row in ROWS)), "line 2", "4 fields", "3", "end of a row"),
    one_row_with_a_field_more=(lines(*ROWS[:2], "c,3,3,3", ROWS[3]), "line 4", "4 fields"),
    one_row_with_a_field_less=(lines(*ROWS[:3], "d,1"), "line 5", "2 fields"),
    header_with_a_field_more=(lines(*ROWS, header=HEADER + ",rouge"), "line 2", "3 fields", "4"),
    duplicate_column=(lines(*(r + ",9" for r in ROWS), header=HEADER + ",msp"), "'msp'", "2 times", "3, 4"),
    open_quotation_mark=(lines('"a,5,.1', *ROWS[1:]), "line 2", "quotation mark"),
    utf_16=(lines(*ROWS).encode("utf-16"), "UTF-8"),
    nul_byte=(lines(*ROWS[:2], "c\0,3,.3", ROWS[3]), "line 4", "NUL"),
    a_number_with_an_underscore=(lines("a,5,1_0", *ROWS[1:]), "'msp'", "'1_0'", "sample a"),
    a_number_in_hexadecimal=(lines("a,0x5,.1", *ROWS[1:]), "'judge'", "'0x5'", "sample a"),
    a_number_with_a_comma_for_a_point=(lines('a,5,"0,1"', *ROWS[1:]), "'0,1'", "sample a"),
    words=(lines("a,good,.1", *ROWS[1:]), "'good'", "sample a"),
    a_name_twice=(lines(*ROWS, "a,2,.2"), "duplicated", "a"),
    a_name_missing=(lines(*ROWS, ",2,.2"), "'id'", "row 5"),
    no_row=(lines(), "empty"),
    nothing=("", "empty"),
    two_rows=(lines(*ROWS[:2]), "2 samples", "at least 3"),
    all_quality_equal=(lines(*("abcd"[i] + ",5,." + str(i) for i in range(4))), "no PRR"),
)


def _wrong(name, content, *says):
    @fault("error", "scores.csv", *says, cases={name.replace("_", " "): content})
    def wrong_csv(folder, content):
        return put(folder, content)


for name, (content, *says) in WRONG.items():
    _wrong(name, content, *says)


JSON = {
    "x.jsonl": {
        "bad line": ('{"id": "a"}\n{"id": "b",}\n{"id": "c"}\n', "line 2"),
        "half": ('{"id": "a"}\n{"id": "b", "ju', "middle of line 2"),
        "a list in a line": ('{"id": "a"}\n[1, 2]\n', "record 2", "list"),
        "a key twice": ('{"id": "a", "msp": 1, "msp": 2}\n', "line 1", "'msp'", "twice"),
        "truth values among numbers": (
            "".join(
                json.dumps(dict(id=name, judge=value, msp=0.5)) + "\n"
                for name, value in zip("abcd", [1, True, 3, 4])
            ),
            "'judge'",
            "row 2",
        ),
        "deep": ("[" * 100_000, "line 1", "nested"),
        "a huge whole number": ('{"id": "a", "msp": 1' + "0" * 5000 + "}\n", "line 1"),
    },
    "x.json": {
        "half": ('[{"id": "a", "judge": 5', "half a file"),
        "a number": ("5", "no record"),
        "a list of numbers": ("[1, 2, 3]", "record 1", "int"),
        "an empty list": ("[]", "no record"),
        "lists in a score": (
            json.dumps([dict(id=name, judge=[1], msp=0.5) for name in "abcd"]),
            "'judge'",
            "sample a",
        ),
    },
}
for file, wrong in JSON.items():
    for name, (content, *says) in wrong.items():

        @fault("error", file, *says, cases={f"{file}, {name}": (file, content)})
        def wrong_json(folder, given):
            return put(folder, given[1], given[0])


def parquet(folder, change):
    df = pd.DataFrame(CLEAN)
    change(df).to_parquet(folder / "x.parquet")
    return ["prr", "x.parquet", *ASK]


TYPES = dict(
    durations=lambda df: df.assign(msp=pd.to_timedelta(df["msp"], unit="s")),
    dates=lambda df: df.assign(msp=pd.Timestamp("2026-01-01")),
    texts=lambda df: df.assign(msp=["low", "low", "low", "high"]),
)


@fault("error", "x.parquet", "'msp'", "sample a", cases=TYPES)
def parquet_with(folder, change):
    return parquet(folder, change)


def _cut(content):
    return content[: len(content) // 2]


def damaged(folder, name, change):
    KINDS[name](pd.DataFrame(CLEAN), folder / name)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(change(content))
    return ["prr", name, *ASK]


DAMAGE = dict(cut=_cut, garbage=lambda content: b"garbage" * 100, empty=lambda content: b"")
for file in ("x.parquet", "x.xlsx"):

    @fault("error", file, cases={f"{file}, {name}": (file, change) for name, change in DAMAGE.items()})
    def damaged_file(folder, given):
        return damaged(folder, *given)


def pack(folder, members):
    with zipfile.ZipFile(folder / "x.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return ["prr", "x.xlsx", *ASK]


@fault("error", "x.xlsx", "workbook")
def an_archive_that_is_no_workbook(folder):
    return pack(folder, {"a.txt": "hello"})


@fault("error", "x.xlsx", "unpack", "GB")
def a_workbook_that_unpacks_to_gigabytes(folder):
    with zipfile.ZipFile(folder / "x.xlsx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as member:
            for _ in range(600):
                member.write(b"\0" * 1_000_000)
    return ["prr", "x.xlsx", *ASK]


ENTITIES = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))


@fault("error", "x.xlsx")
def a_workbook_whose_entities_explode(folder):
    pd.DataFrame(CLEAN).to_excel(folder / "good.xlsx", index=False)
    with zipfile.ZipFile(folder / "good.xlsx") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "aaaaaaaaaa">{ENTITIES}]><sst>&a11;</sst>'
    return pack(folder, members | {"xl/workbook.xml": bomb})


def workbook(folder, at, cell, stored="<v></v>"):
    "The clean table as a workbook, with another cell, and what a spreadsheet program has stored for it."
    df = pd.DataFrame(CLEAN).astype(object)
    df.loc[1, at] = cell
    df.to_excel(folder / "good.xlsx", index=False)
    with zipfile.ZipFile(folder / "good.xlsx") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    changed = (
        members[sheet].decode().replace("</f><v></v>", f"</f>{stored}").replace("</f><v />", f"</f>{stored}")
    )
    return pack(folder, members | {sheet: changed})


FORMULAS = {
    "never computed": ("msp", "=A1/5"),
    "that is a text": ("id", "=HYPERLINK(1)"),
}


@fault("error", "x.xlsx, cell", "formula without a value", "save it", cases=FORMULAS)
def a_formula(folder, given):
    return workbook(folder, *given)


@fault("error", "x.xlsx, cell C3", "#DIV/0!")
def a_formula_that_failed(folder):
    command = workbook(folder, "msp", "=1/0", "<v>#DIV/0!</v>")
    with zipfile.ZipFile(folder / "x.xlsx") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    pack(folder, members | {sheet: members[sheet].replace(b'<c r="C3">', b'<c r="C3" t="e">')})
    return command


@fault("right", check=is_one)
def a_formula_with_its_value(folder):
    return workbook(folder, "msp", "=1/5", "<v>0.2</v>")


OPENERS = ("=1+1", "+1 day", "-x", "@SUM(A1)", "\t=1", "'=1", "a=1")


def shown_and_not_computed(folder, outcome):
    "No cell of the CSV file is a formula, and read again the names are as they were."
    cells = [line.partition(",")[0] for line in (folder / "out.csv").read_text().splitlines()]
    assert cells[1:] == [*(f"'{name}" for name in OPENERS[:-1]), "a=1"], cells
    assert list(read_scores(folder / "out.csv", "id").index) == list(OPENERS)


@fault("right", check=shown_and_not_computed)
def names_that_open_a_formula(folder):
    texts = (json.dumps(dict(id=name, source="It rained.", hypothesis="Rain.")) for name in OPENERS)
    (folder / "texts.jsonl").write_text("\n".join(texts) + "\n")
    return "score texts.jsonl --method output_length --out out.csv".split()


@fault("error", "scores.csv", "'msp'", "'=A1/5'", "sample b")
def a_formula_in_a_csv(folder):
    return put(folder, lines(ROWS[0], "b,4,=A1/5", *ROWS[2:]))


@fault("error", "folder.csv", "a folder")
def a_folder(folder):
    (folder / "folder.csv").mkdir()
    return ["prr", "folder.csv", *ASK]


@fault("error", "pipe.csv", "no regular file")
def a_named_pipe(folder):
    os.mkfifo(folder / "pipe.csv")
    return ["prr", "pipe.csv", *ASK]


@fault("error", "none.csv", "no file")
def a_file_that_is_not_there(folder):
    return ["prr", "none.csv", *ASK]


SCALES = [
    "nan:nan",
    "1:nan",
    "5:1",
    "1:1",
    "1",
    "a:b",
    "1:2:3",
    "1_0:20",
    "-inf:inf",
    "1e999:2",
    ":",
    "0,1:1",
]


@fault("error", "COLUMN=LOWEST:HIGHEST", "judge=1:10", cases={scale: scale for scale in SCALES})
def scale(folder, scale):
    return [*put(folder, lines(*ROWS)), "--scale", f"judge={scale}"]


@fault("error", "COLUMN=LOWEST:HIGHEST", "=1:10")
def scale_of_no_column(folder):
    return [*put(folder, lines(*ROWS)), "--scale", "=1:10"]


@fault("error", "'judge'", "d = 1", "[2.0, 5.0]")
def a_score_below_its_scale(folder):
    return [*put(folder, lines(*ROWS)), "--scale", "judge=2:5"]


@fault("error", "'judge'", "a = 5", "[1.0, 4.0]")
def a_score_above_its_scale(folder):
    return [*put(folder, lines(*ROWS)), "--scale", "judge=1:4"]


def no_escape(folder, outcome):
    assert "\x1b" not in outcome.out + outcome.err and "\\x1b" in outcome.out + outcome.err


@fault("error", "sample \\x1b[2Ja", check=no_escape)
def a_name_that_clears_the_terminal(folder):
    return put(folder, lines("\x1b[2Ja,good,.1", *ROWS[1:]))


COMMANDS = dict(
    audit=["audit", "scores.csv", "--quality", "judge", "--uncertainty", "msp"],
    generate=["generate", "bank", "--model", "x", "--data", "scores.csv", "--dry-run"],
    score=["score", "scores.csv", "--metric", "rouge_l"],
    judge=["judge", "scores.csv", "--endpoint", "http://127.0.0.1:9/v1", "--model", "x"],
)


@fault("error", "scores.csv", "line 2", "4 fields", cases=COMMANDS)
def trailing_comma_in(folder, argv):
    put(folder, lines(*(row + "," for row in ROWS)))
    return argv


# Lines end where lines end, and a quoted cell may hold anything
TEXTED = "id,judge,msp,text"
ODD = {
    "U+2028": "a\u2028b",
    "U+2029": "a\u2029b",
    "U+0085": "a\x85b",
    "a vertical tab": "a\x0bb",
    "a form feed": "a\x0cb",
    "a file separator": "a\x1cb",
    "a lone carriage return, as pandas writes it": "a\rb",
    "a quoted carriage return": '"a\rb, c"',
    "a quoted Windows line end": '"a\r\nb"',
    "quoted line ends and marks": '"say ""a""\n\n, b"',
}


@fault("right", cases=ODD, check=is_one)
def a_text_with(folder, cell):
    return put(folder, lines(f"a,5,.1,{cell}", *(row + ",x" for row in ROWS[1:]), header=TEXTED))


@fault("right", check=is_one)
def line_ends_of_old_macs(folder):
    return put(folder, lines(*ROWS).replace("\n", "\r"))


@fault("error", "scores.csv, line 3", "3 fields")
def a_line_end_in_an_unquoted_cell(folder):
    return put(folder, lines("a,5,.1,x", "b,4,.2", "y", header=TEXTED))


# Separators and decimal commas
def comma(*rows, header="id;judge;msp"):
    return lines(*rows, header=header)


SEPARATED = dict(
    semicolons=lines(*ROWS).replace(",", ";"),
    tabs=lines(*ROWS).replace(",", "\t"),
    bars=lines(*ROWS).replace(",", "|"),
    quoted_names=lines(*ROWS, header='"id","judge","msp"').replace(",", ";"),
    decimal_commas=comma("a;5;0,1", "b;4;0,2", "c;3;0,35", "d;1;0,9"),
    decimal_commas_above_a_thousand_beside_others=comma("a;5,5;1,100", "b;4;1,200", "c;3;1,300", "d;1;1,900"),
    texts_with_commas=comma("a;5;.1;x, y", "b;4;.2;z", "c;3;.3;", "d;1;.9;", header="id;judge;msp;text"),
    quoted_decimal_commas=lines('a,5,"0,025"', 'b,4,"0,1"', 'c,3,"0,3"', "d,1,1"),
)


@fault("right", cases=SEPARATED, check=is_one)
def split_by(folder, text):
    return put(folder, text)


# Cells of msp that are no plain numbers -> what the message must say
MARKED = {
    "a percent sign": ("5%", "percent"),
    "a comma for thousands": ('"1,234"', "decimal comma", "thousands"),
    "a point and a comma": ('"1.234,5"', "decimal comma"),
    "a space for thousands": ("1 234", "thousands"),
    "an apostrophe for thousands": ("1'234", "thousands"),
    "a number beyond float64": ("-1e999", "infinity"),
    "a long whole number": ("9" * 400, "'msp'"),
    "a minus of typesetters": ("\u22120.1", "must be numbers"),
    "a fraction": ("1/2", "must be numbers"),
    "one half": ("\u00bd", "must be numbers"),
    "Arabic digits": ("\u0663", "must be numbers"),
    "full-width digits": ("\uff13", "must be numbers"),
    "two points": ("1.2.3", "write 1234.5"),
    "an unfinished exponent": ("1e", "must be numbers"),
    "a currency": ("$5", "must be numbers"),
    "a time": ("12:30", "must be numbers"),
    "a unit": ("5 points", "must be numbers"),
    "a Fortran exponent": ("1d3", "must be numbers"),
    "a truth value": ("True", "must be numbers"),
    "the word yes": ("yes", "must be numbers"),
    "a grade": ("C", "must be numbers"),
    "a footnote": ("0.5*", "must be numbers"),
    "a list": ('"[0.5]"', "must be numbers"),
}
for name, (cell, *says) in MARKED.items():

    @fault("error", "scores.csv", "msp", *says, cases={name: cell})
    def a_score_with(folder, cell):
        return put(folder, lines(f"a,5,{cell}", *ROWS[1:]))


@fault("error", "semis.csv", "'msp'", "sample a", "'1,100'", "decimal comma")
def commas_of_one_column_that_may_be_thousands(folder):
    return put(folder, comma("a;5;1,100", "b;4;1,200", "c;3;1,300", "d;1;1,900"), "semis.csv")


@fault("error", "scores.csv", "'msp'", "'0,4'", "decimal comma")
def two_grades_in_a_cell(folder):
    return put(folder, lines(*(f'{name},{i},"{i},4"' for i, name in enumerate("abcd"))))


@fault("error", "perhaps split by ';' or '|'")
def a_header_that_two_marks_split(folder):
    return put(folder, "id;judge|msp;u\na;5|1;2\n")


@fault("error", "x.tsv", "perhaps split by ','", "ending .csv")
def commas_in_a_tsv(folder):
    return put(folder, lines(*ROWS), "x.tsv")


@fault("right", check=is_one)
def numbers_in_quotation_marks(folder):
    return put(folder, lines('"a","5e0","1e-1"', *(f'"{row}"'.replace(",", '","') for row in ROWS[1:])))


# Truth values and letters
TRUTHS = {
    "True and False": ("True", "True", "False", "False"),
    "in any case": ("true", "TRUE", "False", "FALSE"),
    "yes and no": ("yes", "Yes", "no", "No"),
    "letters": ("Y", "y", "N", "n"),
    "a missing one": ("True", "True", "", "False"),
}


def truths(*words):
    return lines(*(f"{name},{word},.{i}" for i, (name, word) in enumerate(zip("abcd", words), 1)))


@fault("right", cases=TRUTHS, check=is_one)
def truth_values(folder, words):
    return put(folder, truths(*words))


def says_what_counts(folder, outcome):
    is_one(folder, outcome)
    assert "'judge': yes counts as 1 and no as 0" in outcome.err


@fault("right", check=says_what_counts)
def yes_and_no_are_told(folder):
    return put(folder, truths("yes", "yes", "no", "no"))


NO_TRUTHS = {
    "letters of grades": ("A", "B", "C", "F"),
    "grades of Inspect": ("C", "C", "I", "I"),
    "the letter N alone": ("N", "N", "N", "N"),
    "two pairs": ("yes", "True", "no", "False"),
    "a third word": ("yes", "yes", "no", "maybe"),
    "numbers among them": ("True", "1", "0", "False"),
}


@fault("error", "scores.csv", "judge", "must be numbers", "sample a", cases=NO_TRUTHS)
def no_truth_values(folder, words):
    return put(folder, truths(*words))


def not_used(folder, outcome):
    assert "holds no numbers" in outcome.out and "letter" in outcome.out


@fault("right", check=not_used)
def letters_are_not_used_by_the_audit(folder):
    rows = [f"{i},{i % 5 / 4},{-i},{'ABCDF'[i % 5]}" for i in range(20)]
    (folder / "scores.csv").write_text(lines(*rows, header="id,rouge,msp,letter"))
    return ["audit", "scores.csv", "--id", "id"]


PARTLY = {
    "a metric found by name": ("rouge", []),
    "one judge of two": ("expert_2", []),
    "the length": ("words", ["--quality", "rouge", "--uncertainty", "msp", "--length", "words"]),
}


@fault("error", "scores.csv", "must be numbers, found 'good' at sample s3", cases=PARTLY)
def words_among_the_numbers_of(folder, given):
    name, argv = given
    rows = [dict(id=f"s{i}", msp=-i, words=9 - i, expert_1=i % 5, expert_2=i % 3) for i in range(20)]
    rows = [row | (dict(rouge=row["expert_1"] / 5) if name != "expert_2" else {}) for row in rows]
    rows[3][name] = "good"
    pd.DataFrame(rows).to_csv(folder / "scores.csv", index=False)
    return ["audit", "scores.csv", "--id", "id", *argv]


# Quotation marks of tables with tabs
TABBED = "id\tjudge\tmsp\ttext\n"
TABS = {
    "a mark that opens in one row and closes in another": ('"We open', "b", 'he said"', "d"),
    "a mark that is never closed": ('"We open', "b", "c", "d"),
    "a mark inside": ('5" of rain', "b", "c", "d"),
    "a quoted word at the beginning": ('"We" open', "b", "c", "d"),
    "doubled marks, as pandas writes them": ('"say ""we"""', "b", "c", "d"),
    "a tab in quotes": ('"a\tb"', "b", "c", "d"),
    "a line end in quotes": ('"a\nb"', "b", "c", "d"),
    "empty cells": ("", "", "", ""),
    "marks in every cell": ('"a"', '"b"', '"c"', '"d"'),
}


def tabbed(texts):
    rows = ["\t".join([row.replace(",", "\t"), text]) for row, text in zip(ROWS, texts)]
    return TABBED + "\n".join(rows) + "\n"


def is_one_of_four(folder, outcome):
    row = json.loads(outcome.out)[0]
    assert (row["value"], row["n"]) == (1, 4)


@fault("right", cases=TABS, check=is_one_of_four)
def a_table_with_tabs_and(folder, texts):
    return put(folder, tabbed(texts), "x.tsv")


@fault("error", "x.tsv, lines 2 to 3", "2 rows with quotation marks")
def marks_that_are_both(folder):
    return put(folder, tabbed(('"We open', 'he said"', '"c\nd"', "d")), "x.tsv")


@fault("error", "x.tsv, line 4", "quotation mark")
def a_raw_mark_beside_a_quoted_line_end(folder):
    return put(folder, tabbed(('"a\nb"', '"c" d', "c", "d")), "x.tsv")


# JSON in all ways of pandas
def oriented(orient, index=None):
    df = pd.DataFrame(CLEAN)
    return (df.set_index(index) if index else df).to_json(orient=orient)


ORIENTS = {orient: oriented(orient) for orient in ("split", "table", "columns", "index", "records")}
ORIENTS["lists"] = json.dumps(CLEAN)
ORIENTS["objects in lines"] = "\n".join(map(json.dumps, pd.DataFrame(CLEAN).to_dict("records")))


@fault("right", cases=ORIENTS, check=is_one)
def json_of_orient(folder, text):
    return put(folder, text, "x.jsonl" if text.startswith("{") and "\n" in text else "x.json")


NAMED = {f"{orient}, rows named": oriented(orient, "id") for orient in ("split", "columns", "index")}


@fault("right", cases=NAMED, check=is_one)
def json_with(folder, text):
    return [*put(folder, text, "x.json")[:2], "--id", "index", *ASK[2:]]


@fault("right", check=is_one)
def json_of_orient_table_with_rows_named(folder):
    return put(folder, oriented("table", "id"), "x.json")


UNTOLD = {
    "rows or columns": ('{"0": {"0": 5, "1": 6}, "1": {"0": 5, "1": 6}}', "columns or rows", "records"),
    "values": ('[["a", 5, 0.1], ["b", 4, 0.2]]', "record 1", "list"),
    "a short row": ('{"columns": ["id", "u"], "data": [["a", 1], ["b"]]}', "row 2", "2 columns"),
    "a column twice": ('{"columns": ["u", "u"], "data": [[1, 2]]}', "'u'", "2 times"),
    "no row": ('{"columns": ["u", "v"], "data": []}', "no record"),
    "lists of unequal length": ('{"id": ["a", "b"], "u": [1]}', "one object", "id, u"),
    "one record": ('{"id": "a", "judge": 5}', "one object", "list of records"),
    "a table without rows": ('{"schema": {}, "data": 5}', "no record"),
    "a number beyond float64": ('[{"id": "a", "judge": 1e999}]', "1e999", "too large"),
    "a whole number beyond float64": ('[{"id": "a", "judge": -1' + "0" * 400 + "}]", "-1000", "too large"),
    "half a character": ('[{"id": "\\ud83d", "judge": 1}]', "half of a character"),
    "UTF-16": ('[{"id": "a"}]'.encode("utf-16"), "UTF-8"),
    "Latin-1": ('[{"id": "caf\u00e9"}]'.encode("latin-1"), "UTF-8"),
}
for name, (content, *says) in UNTOLD.items():

    @fault("error", "x.json", *says, cases={name: content})
    def json_of(folder, content):
        return put(folder, content, "x.json")


# Fields inside fields, and names of several columns
def records(folder, rows, *argv, name="x.jsonl"):
    (folder / name).write_text("\n".join(map(json.dumps, rows)))
    return ["prr", name, *argv, "--json"]


JUDGED = [
    dict(
        id=i // 2,
        by=f"M{i % 2}",
        data=dict(judge=grade, deep=dict(u=1 - grade)),
        people=[dict(g=grade), dict(g=5)],
    )
    for i, grade in enumerate([5, 4, 3, 1])
]
NESTED = {
    "an object": ("--quality", "data.judge", "--uncertainty", "data.deep.u"),
    "the mean of people": ("--quality", "people.g", "--uncertainty", "data.deep.u"),
    "an id of two columns": ("--id", "id+by", "--quality", "people.g", "--uncertainty", "data.deep.u"),
    "clusters of two columns": (
        "--document",
        "id+by",
        "--quality",
        "people.g",
        "--uncertainty",
        "data.deep.u",
    ),
}


@fault("right", cases=NESTED, check=is_one)
def nested_fields_of(folder, argv):
    return records(folder, JUDGED, *argv)


UNNESTED = {
    "a misspelt one": (("--quality", "people.q", "--uncertainty", "data.deep.u"), "'people.q'", "people.g"),
    "an object itself": (("--quality", "data", "--uncertainty", "data.deep.u"), "data", "must be numbers"),
    "an id that repeats": (
        ("--id", "id", "--quality", "people.g", "--uncertainty", "data.deep.u"),
        "duplicated",
    ),
    "an id of a column that is not there": (
        ("--id", "id+model", "--quality", "people.g", "--uncertainty", "data.deep.u"),
        "no column 'model'",
    ),
    "an id of half a name": (
        ("--id", "id+", "--quality", "people.g", "--uncertainty", "data.deep.u"),
        "no column ''",
    ),
}
for name, (argv, *says) in UNNESTED.items():

    @fault("error", "x.jsonl", *says, cases={name: argv})
    def nested_fields_with(folder, argv):
        return records(folder, JUDGED, *argv)


@fault("error", "x.jsonl", "'id+by' is empty", "row 2")
def an_id_of_which_a_half_is_missing(folder):
    rows = [JUDGED[0], JUDGED[1] | dict(by=None), *JUDGED[2:]]
    return records(folder, rows, "--id", "id+by", "--quality", "people.g", "--uncertainty", "data.deep.u")


# Workbooks and what stands above a table
def book(folder, header=True, **sheets):
    with pd.ExcelWriter(folder / "x.xlsx") as writer:
        for name, rows in sheets.items():
            pd.DataFrame(rows).to_excel(writer, sheet_name=name, index=False, header=False)
    return ["prr", "x.xlsx", *ASK]


TABLE = [list(CLEAN), *zip(*CLEAN.values())]
NOTES = [["Scores of May"], ["by hand"]]
BOOKS = {
    "a sheet by name": (dict(Notes=NOTES, Scores=TABLE), "--sheet", "Scores"),
    "a sheet by number": (dict(Notes=NOTES, Scores=TABLE), "--sheet", "2"),
    "a sheet whose name is a number": (dict(Notes=NOTES, Other=NOTES, **{"2": TABLE}), "--sheet", "2"),
    "notes above the names": (dict(Scores=[*NOTES, *TABLE]), "--header-row", "3"),
    "an empty row above the names": (dict(Scores=[[None], *TABLE]), "--header-row", "2"),
    "an empty first sheet": (dict(Empty=[], Scores=TABLE), "--sheet", "Scores"),
    "both": (dict(Notes=NOTES, Scores=[*NOTES, *TABLE]), "--sheet", "2", "--header-row", "3"),
}


@fault("right", cases=BOOKS, check=is_one)
def a_workbook_with(folder, given):
    sheets, *argv = given
    return [*book(folder, **sheets), *argv]


MERGED = [[None, "Quality", None], *TABLE]
NO_BOOKS = {
    "no such sheet": (dict(A=TABLE, B=NOTES), ["--sheet", "C"], "no sheet 'C'", "['A', 'B']"),
    "no third sheet": (dict(A=TABLE, B=NOTES), ["--sheet", "3"], "no sheet '3'", "['A', 'B']"),
    "sheet 0": (dict(A=TABLE), ["--sheet", "0"], "no sheet '0'"),
    "an empty first sheet": (dict(Empty=[], Scores=TABLE), [], "'Empty'", "Scores", "--sheet"),
    "notes on the first sheet": (dict(Notes=NOTES * 2, Scores=TABLE), [], "'id'", "Scores", "--sheet"),
    "one note on the first sheet": (dict(Notes=NOTES[:1], Scores=TABLE), [], "empty", "Scores", "--sheet"),
    "few notes on the first sheet": (dict(Notes=NOTES, Scores=TABLE), [], "1 sample", "Scores", "--sheet"),
    "names in two rows": (dict(Scores=MERGED), [], "row 1", "'judge'", "--header-row 2", "'Scores'"),
    "an empty row of names": (dict(Scores=[[None], *TABLE]), [], "no name in row 1", "--header-row"),
    "names below the end": (dict(Scores=TABLE), ["--header-row", "9"], "no cell from row 9"),
}
for name, (sheets, argv, *says) in NO_BOOKS.items():

    @fault("error", "x.xlsx", *says, cases={name: (sheets, argv)})
    def a_workbook_without_a_table(folder, given):
        return [*book(folder, **given[0]), *given[1]]


ABOVE = {
    "notes": ("Scores of May\nby hand\n", 3),
    "an open quotation mark": ('5" of rain, they say "so\n', 2),
    "empty lines": ("\n\n", 3),
}


@fault("right", cases=ABOVE, check=is_one)
def above_the_names(folder, given):
    return [*put(folder, given[0] + lines(*ROWS)), "--header-row", str(given[1])]


PLACES = {
    "a row beyond the end": (["--header-row", "99"], "5 lines", "line 99"),
    "row 0": (["--header-row", "0"], "--header-row", "from 1"),
    "a row that is a word": (["--header-row", "two"], "--header-row", "'two'"),
    "a row of numbers": (["--header-row", "2"], "no column 'id'"),
    "a sheet of a csv": (["--sheet", "1"], "--sheet", ".xlsx"),
}
for name, (argv, *says) in PLACES.items():

    @fault("error", *says, cases={name: argv})
    def a_wrong_place(folder, argv):
        return [*put(folder, lines(*ROWS)), *argv]


@fault("error", "x.parquet", "--header-row", ".parquet")
def a_header_row_of_a_parquet_file(folder):
    return [*wide(folder, "x.parquet", KINDS["x.parquet"]), "--header-row", "2"]


OTHERS = {
    "audit": ["audit", "x.xlsx", "--quality", "judge", "--uncertainty", "msp"],
    "power": ["power", "x.xlsx", "--quality", "judge", "--uncertainty", "msp", "id"],
    "guarantee": ["guarantee", "x.xlsx", "--quality", "judge", "--uncertainty", "msp"],
    "dose": ["dose", "x.xlsx", "--truth", "judge", "--metric", "judge", "--uncertainty", "msp", "id"],
    "next-labels": ["next-labels", "x.xlsx", "--metric", "judge", "--uncertainty", "msp"],
}


@fault("error", "no column 'judge'", "['a note', 'Unnamed: 1', 'Unnamed: 2']", "--sheet", cases=OTHERS)
def the_options_of_sheets_reach(folder, argv):
    rows = [["title", "", ""], ["a note", "", ""], *([i, i, i] for i in range(4))]
    book(folder, Empty=[], Other=rows)
    return [*argv, "--sheet", "Other", "--header-row", "2"]


# Packed files
PACKED = {
    "scores.csv.gz": lines(*ROWS),
    "scores.CSV.GZ": lines(*ROWS),
    "x.tsv.gz": lines(*ROWS).replace(",", "\t"),
    "x.json.gz": oriented("split"),
    "x.jsonl.gz": ORIENTS["objects in lines"],
}


@fault("right", cases={name: (name, text) for name, text in PACKED.items()}, check=is_one)
def packed(folder, given):
    return put(folder, gzip.compress(given[1].encode()), given[0])


GZ = gzip.compress(lines(*ROWS, *(f"x{i},2,.5" for i in range(2000))).encode())
GZ_DAMAGE = {
    "cut": (GZ[: len(GZ) // 2], "damaged or cut short"),
    "no checksum": (GZ[:-6], "damaged or cut short"),
    "another checksum": (GZ[:-8] + b"\0" * 8, "damaged"),
    "changed": (GZ[:40] + bytes(b ^ 255 for b in GZ[40:60]) + GZ[60:], "damaged"),
    "not packed at all": (lines(*ROWS).encode(), "damaged"),
    "something after its end": (GZ + b"more", "damaged"),
    "packed twice": (gzip.compress(GZ), "UTF-8"),
    "packed UTF-16": (gzip.compress(lines(*ROWS).encode("utf-16")), "UTF-8"),
    "nothing inside": (gzip.compress(b""), "empty"),
    "no byte": (b"", "empty"),
}
for name, (content, *says) in GZ_DAMAGE.items():

    @fault("error", "x.csv.gz", *says, cases={name: content})
    def packed_and(folder, content):
        return put(folder, content, "x.csv.gz")


@fault("error", "x.csv.gz", "unpack", "GB", memory=6 * 2**30)
def a_packed_csv_that_unpacks_to_gigabytes(folder):
    return put(folder, gzip.compress(b"0" * 150_000_000, 1), "x.csv.gz")


@fault(
    "error",
    "not .",
    cases={ending: ending for ending in (".parquet.gz", ".xlsx.gz", ".gz", ".zip", ".xls", ".ods")},
)
def a_file_of_another_kind(folder, ending):
    return put(folder, b"x", f"x{ending}")


# Tables in parts
def parts(folder, at, **files):
    (folder / at).mkdir(parents=True)
    for name, write in files.items():
        write(folder / at / name)
    return ["prr", at.split("/")[0], *ASK]


HALVES = pd.DataFrame(CLEAN).iloc[:2], pd.DataFrame(CLEAN).iloc[2:]
WRITERS = {
    ".parquet": lambda df, path: df.to_parquet(path),
    ".csv": lambda df, path: df.to_csv(path, index=False),
    ".tsv": lambda df, path: df.to_csv(path, index=False, sep="\t"),
    ".jsonl": lambda df, path: df.to_json(path, orient="records", lines=True),
    ".csv.gz": lambda df, path: df.to_csv(path, index=False),
    ".jsonl.gz": lambda df, path: df.to_json(path, orient="records", lines=True),
}


def halves(folder, at, ending, names=("train-00000-of-00002", "train-00001-of-00002"), frames=HALVES):
    write = WRITERS[ending]
    files = {f"{name}{ending}": lambda path, df=df: write(df, path) for name, df in zip(names, frames)}
    return parts(folder, at, **files)


@fault("right", cases={ending: ending for ending in WRITERS}, check=is_one_of_four)
def parts_of(folder, ending):
    return halves(folder, "set", ending)


@fault("right", check=is_one_of_four)
def parts_in_a_folder_data(folder):
    command = halves(folder, "set/data", ".parquet")
    (folder / "set" / "README.md").write_text("A set")
    return command


@fault("right", check=is_one_of_four)
def parts_of_other_names_beside_what_is_no_part(folder):
    command = halves(folder, "set", ".parquet", ("part-a", "part-b"))
    (folder / "set" / "_SUCCESS").write_text("")
    (folder / "set" / ".hidden.parquet").write_text("no parquet")
    (folder / "set" / "dataset_infos.txt").write_text("")
    return command


@fault("right", check=is_one_of_four)
def parts_whose_columns_stand_in_another_order(folder):
    return halves(folder, "set", ".csv", frames=(HALVES[0], HALVES[1][["msp", "id", "judge"]]))


NO_PARTS = {
    "of two splits": (dict(names=("train-00000-of-00001", "test-00000-of-00001")), "splits", "test, train"),
    "of which one is missing": (dict(frames=HALVES[:1]), "1 of 2 parts"),
    "beside another file": (dict(names=("train-00000-of-00001", "other")), "2 files"),
    "with different columns": (dict(frames=(HALVES[0], HALVES[1].rename(columns=dict(msp="u")))), "msp, u"),
    "of which one is empty": (dict(frames=(HALVES[0], HALVES[1].iloc[:0])), "of-00002.parquet is empty"),
}
for name, (options, *says) in NO_PARTS.items():

    @fault("error", *says, cases={name: options})
    def parts_that_are_no_table(folder, options):
        return halves(folder, "set", ".parquet", **options)


@fault("error", "set", "several kinds", ".csv, .parquet")
def parts_of_two_kinds(folder):
    command = halves(folder, "set", ".parquet")
    WRITERS[".csv"](HALVES[0], folder / "set" / "x.csv")
    return command


@fault("error", "train-00001-of-00002.parquet", "cannot be read as parquet")
def a_part_that_is_damaged(folder):
    command = halves(folder, "set", ".parquet")
    (folder / "set" / "train-00001-of-00002.parquet").write_bytes(b"PAR1")
    return command


@fault("error", "set is a folder without parts", ".parquet")
def a_folder_without_parts(folder):
    (folder / "set").mkdir()
    (folder / "set" / "README.md").write_text("A set")
    return ["prr", "set", *ASK]


# Parquet as it is
AS_PARQUET = dict(
    rows_named=lambda df: df.set_index("id"),
    decimals=lambda df: df.assign(msp=[Decimal(str(u)) for u in df["msp"]]),
    decimals_with_one_missing=lambda df: df.assign(other=[Decimal("1.5"), None, None, None]),
    categories=lambda df: df.assign(judge=df["judge"].astype(str).astype("category")),
    times_beside=lambda df: df.assign(at=pd.Timestamp("2026-01-01", tz="UTC")),
    rows_filtered=lambda df: df.iloc[[3, 0, 1, 2]],
    texts_that_are_numbers=lambda df: df.assign(judge=df["judge"].astype(str)),
    halves=lambda df: df.assign(msp=df["msp"].astype("float16")),
    lists_beside=lambda df: df.assign(samples=[["a"], [], ["b", "c"], None]),
)


@fault("right", cases=AS_PARQUET, check=is_one)
def parquet_of(folder, change):
    return parquet(folder, change)


@fault("right", check=is_one)
def parquet_of_objects(folder):
    rows = [
        dict(id=name, data=dict(judge=Decimal(str(grade)))) for name, grade in zip("abcd", CLEAN["judge"])
    ]
    pd.DataFrame(rows).assign(msp=CLEAN["msp"]).to_parquet(folder / "x.parquet")
    return ["prr", "x.parquet", "--id", "id", "--quality", "data.judge", "--uncertainty", "msp", "--json"]


@fault("error", "x.parquet", "unpack", "GB")
def a_parquet_file_with_one_text_for_a_million_rows(folder):
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, "int32")), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table(dict(id=same)), folder / "x.parquet", dictionary_pagesize_limit=2**30)
    return ["prr", "x.parquet", *ASK]


def _varint(value):  # As Thrift writes a positive number
    value, found = 2 * value, []
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


@fault("error", "x.parquet", "unpack", "GB", memory=6 * 2**30, limit=30)  # It reads 1.5 GB until it stops
def a_parquet_file_that_says_that_it_is_small(folder):
    "One group of rows, which stands 45 times in the table of contents, with another size."
    path, texts = folder / "x.parquet", pa.table(dict(id=["x" * 200_000] * 200))
    pq.write_table(texts, path, use_dictionary=False, write_statistics=False, compression="snappy")
    rows, contents = path.read_bytes(), pq.read_metadata(path)
    for _ in range(44):
        contents.append_row_groups(pq.read_metadata(path))
    contents.write_metadata_file(folder / "contents")
    said, group = (folder / "contents").read_bytes()[4:], contents.row_group(0)
    for size in {group.total_byte_size, group.column(0).total_uncompressed_size}:
        wide = len(_varint(size))
        said = said.replace(_varint(size), bytes([20 | 128, *[128] * (wide - 2), 0]))
    path.write_bytes(rows[: -8 - int.from_bytes(rows[-8:-4], "little")] + said)
    assert sum(pq.read_metadata(path).row_group(i).total_byte_size for i in range(45)) == 450
    return ["prr", "x.parquet", *ASK]


@fault("error", "x.parquet", "empty")
def a_parquet_file_without_rows(folder):
    return parquet(folder, lambda df: df.iloc[:0])


@fault("error", "x.parquet", "'msp'", "2 times")
def a_parquet_file_with_a_name_twice(folder):
    table = pa.table([pa.array([1.0, 2, 3])] * 2, names=["msp", "msp"])
    pq.write_table(table, folder / "x.parquet")
    return ["prr", "x.parquet", *ASK]


WEARING = {
    "parquet as csv": ("x.csv", "x.parquet", "UTF-8"),
    "xlsx as csv": ("x.csv", "x.xlsx", "UTF-8"),
    "csv as parquet": ("x.parquet", "x.csv", "cannot be read as parquet"),
    "csv as xlsx": ("x.xlsx", "x.csv", "cannot be read as a workbook"),
    "csv as jsonl": ("x.jsonl", "x.csv", "line 1 is not JSON"),
    "json as csv": ("x.csv", "x.json", "line 1", "quotation mark"),
}
for name, (worn, real, *says) in WEARING.items():

    @fault("error", worn, *says, cases={name: (worn, real)})
    def a_file_with_the_ending_of_another(folder, given):
        worn, real = given
        KINDS.get(real, KINDS["UPPER.CSV"])(pd.DataFrame(CLEAN), folder / f"real_{real}")
        (folder / f"real_{real}").rename(folder / worn)
        return ["prr", worn, *ASK]
