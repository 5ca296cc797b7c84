"""Tables that are not what they seem: `uetrust prr`, and the same reader in `audit` and `generate`."""

import gzip
import json
import os
import zipfile

import pandas as pd

from faults.harness import fault
from uetrust.app.user_table import read_scores

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
    assert json.loads(outcome.out)[0]["value"] == 1


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
    semicolons=(lines(*ROWS).replace(",", ";"), "';'", "commas"),
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
    return "score texts.jsonl --methods output_length --out out.csv".split()


@fault("error", "scores.csv", "'msp'", "'=A1/5'", "sample b")
def a_formula_in_a_csv(folder):
    return put(folder, lines(ROWS[0], "b,4,=A1/5", *ROWS[2:]))


@fault("error", "scores.csv.gz", "not .gz")
def a_packed_csv(folder):
    return put(folder, gzip.compress(lines(*ROWS).encode()), "scores.csv.gz")


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


SCALES = ["nan:nan", "1:nan", "5:1", "1:1", "1", "a:b", "1:2:3", "1_0:20", "-inf:inf"]


@fault("error", "COLUMN=LOWEST:HIGHEST", "judge=1:10", cases={scale: scale for scale in SCALES})
def scale(folder, scale):
    return [*put(folder, lines(*ROWS)), "--scale", f"judge={scale}"]


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
    score=["score", "scores.csv", "--metrics", "rouge_l"],
    judge=["judge", "scores.csv", "--endpoint", "http://127.0.0.1:9/v1", "--model", "x"],
)


@fault("error", "scores.csv", "line 2", "4 fields", cases=COMMANDS)
def trailing_comma_in(folder, argv):
    put(folder, lines(*(row + "," for row in ROWS)))
    return argv
