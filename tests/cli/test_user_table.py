"""Tables of users: names, documents and truth values of columns as people have them."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.tables import CASES, ROWS, call, needs_cases, prr_of
from uetrust import prr, read_scores
from uetrust.evaluation.units import between_prr, within_auroc


@needs_cases
def test_means_of_experts_are_reached_by_their_names(capsys):
    "SummEval as released: ids occur twice, and ratings are lists of objects"
    rows = [json.loads(line) for line in (CASES / "c10_summeval.jsonl").read_text().splitlines()]

    def mean(row, name):
        return np.mean([expert[name] for expert in row["expert_annotations"]])

    quality, unsure = ([mean(row, name) for row in rows] for name in ("coherence", "consistency"))
    argv = "--quality expert_annotations.coherence --uncertainty expert_annotations.consistency".split()
    file = CASES / "c10_summeval.jsonl"
    row, _ = prr_of(capsys, file, "--id", "id+model_id", *argv)
    assert row["value"] == pytest.approx(prr(quality, unsure).value, abs=1e-8)
    assert list(read_scores(file, "id+model_id").index) == [f"{row['id']}/{row['model_id']}" for row in rows]
    code, _, err = call(capsys, "prr", file, "--id", "id", *argv)
    assert code == 2 and "duplicated" in err


COMMANDS = dict(
    prr="prr FILE --id id --quality rouge --uncertainty u v --json",
    audit="audit FILE --id id --quality rouge --uncertainty u v --json",
    power="power FILE --id id --quality rouge --uncertainty u v --json",
    guarantee="guarantee FILE --id id --quality rouge --uncertainty u --alpha .5 --delta .5 --json",
    dose="dose FILE --id id --truth rouge --metric v --uncertainty u v --json",
    next_labels="next-labels FILE --id id --metric rouge --uncertainty u --n 3 --json",
)


def as_sheet(path, frame):
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame([["Scores of May"]]).to_excel(writer, sheet_name="Notes", header=False, index=False)
        frame.to_excel(writer, sheet_name="Scores", index=False, startrow=2)


def as_notes(path, frame):
    path.write_text("Scores of May\n\n" + frame.to_csv(index=False, sep=";", decimal=","))


def as_parts(path, frame):
    path.mkdir()
    for i, part in enumerate((frame[:5], frame[5:])):
        part.to_parquet(path / f"train-0000{i}-of-00002.parquet")


PLACES = {
    "x.xlsx": (as_sheet, ["--sheet", "Scores", "--header-row", "3"]),
    "x.csv": (as_notes, ["--header-row", "3"]),
    "parts": (as_parts, []),
    "split.json": (lambda path, frame: frame.to_json(path, orient="split"), []),
    "x.jsonl.gz": (lambda path, frame: frame.to_json(path, orient="records", lines=True), []),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_every_place(command, place, tmp_path, capsys):
    frame, (write, argv) = pd.DataFrame(ROWS), PLACES[place]
    frame.to_csv(tmp_path / "plain.csv", index=False)
    write(tmp_path / place, frame)
    plain, other = (COMMANDS[command].replace("FILE", str(tmp_path / name)) for name in ("plain.csv", place))
    code, want, err = call(capsys, *plain.split())
    assert code == 0, err
    code, found, err = call(capsys, *other.split(), *argv)
    assert code == 0, err
    assert json.loads(found) == json.loads(want)


@pytest.mark.parametrize("command", ["prr", "audit"])
def test_documents_of_two_columns(command, tmp_path, capsys):
    frame = pd.DataFrame(ROWS).assign(a=[i // 6 for i in range(12)], b=[i // 3 % 2 for i in range(12)])
    frame.assign(both=[f"{a}/{b}" for a, b in zip(frame["a"], frame["b"])]).to_csv(
        tmp_path / "x.csv", index=False
    )
    argv = [command, tmp_path / "x.csv", "--quality", "rouge", "--uncertainty", "u", "v", "--json"]
    one, two = (json.loads(call(capsys, *argv, "--document", name)[1]) for name in ("both", "a+b"))
    assert one == two if command == "prr" else one["prr"] == two["prr"]


IDS = {  # Names that are equal as numbers, or as floating-point numbers
    "sections": [f"3.{i}" for i in range(1, 31)],
    "long": [str(1_234_567_890_123_456_000 + i) for i in range(30)],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_documents_found_by_their_name_are_names_and_no_numbers(ids, tmp_path, capsys):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(dict(doc_id=np.repeat(ids, 2), human=rng.random(60), msp=rng.random(60)))
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert list(read_scores(tmp_path / "x.csv")["doc_id"]) == list(frame["doc_id"])
    code, out, _ = call(capsys, "audit", tmp_path / "x.csv", "--brief")
    assert code == 0 and "60 texts of 30 documents" in out


@pytest.mark.parametrize("command", ["prr", "power"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_text_without_a_document_is_named(ending, command, tmp_path, capsys):
    frame = pd.DataFrame(ROWS).assign(article=[f"a{i // 2}" for i in range(12)])
    frame.loc[[3, 7], "article"] = None
    path = tmp_path / f"x.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_json(path, orient="records", lines=True)
    argv = [command, path, "--quality", "rouge", "--uncertainty", "u", "--document", "article"]
    code, _, err = call(capsys, *argv)
    assert code == 2 and f"x.{ending}: document is missing for 2 of 12 items (numbers 4, 8)" in err


def test_documents_that_are_texts_and_numbers(tmp_path, capsys):
    rows = [row | dict(article=i // 2 if i < 6 else f"a{i // 2}") for i, row in enumerate(ROWS)]
    (tmp_path / "x.json").write_text(json.dumps(rows))
    named = prr_of(capsys, tmp_path / "x.json", *"--quality rouge --uncertainty u --document article".split())
    assert np.isfinite(named[0]["se"])


def test_a_point_in_a_file_with_decimal_commas_is_refused(tmp_path, capsys):
    path = tmp_path / "x.csv"
    path.write_text("id;human;msp\n" + "".join(f"t{i};0,{i + 10};1.00{i}\n" for i in range(9)))
    code, _, err = call(capsys, "prr", path, "--quality", "human", "--uncertainty", "msp")
    assert code == 2 and "'msp' holds '1.000', and other columns have a decimal comma" in err


def test_a_name_that_is_a_list_is_refused(tmp_path, capsys):
    (tmp_path / "x.json").write_text(json.dumps([row | dict(id=[i, 0]) for i, row in enumerate(ROWS)]))
    argv = ["prr", tmp_path / "x.json", "--quality", "rouge", "--uncertainty", "u", "--id", "id"]
    code, _, err = call(capsys, *argv)
    assert code == 2 and "'id' of row 1 is [0, 0]; a name is a text or a number" in err


def test_yes_and_no_are_told_by_every_command_and_true_is_not(tmp_path, capsys):
    frame = pd.DataFrame(ROWS)
    for words, told in ((("Yes", "No"), True), (("True", "False"), False)):
        frame.assign(rouge=[words[i % 3 == 0] for i in range(12)]).to_csv(tmp_path / "x.csv", index=False)
        for name, line in COMMANDS.items():
            code, _, err = call(capsys, *line.replace("FILE", str(tmp_path / "x.csv")).split())
            assert code == 0, (name, err)
            assert ("'rouge': Yes counts as 1 and No as 0" in err) == told, name


def facts(**columns):
    "Twenty texts of six claims: u knows the claim, v the text"
    rng, text = np.random.default_rng(0), np.repeat(np.arange(20), 6)
    right = (rng.random(120) < rng.uniform(0.2, 0.9, 20)[text]).astype(int)
    share = pd.Series(right).groupby(text).transform("mean")
    frame = dict(document=[f"d{t}" for t in text], **columns, right=right)
    return pd.DataFrame(frame | dict(u=rng.normal(size=120) - 2 * right, v=-share))


@pytest.mark.parametrize("name", ["claim", "Sentence", "claim_id"])
def test_a_column_of_claims_tells_within_from_between_without_a_flag(name, tmp_path, capsys):
    frame = facts(**{name: np.arange(120) % 6})
    frame.to_csv(tmp_path / "x.csv", index=False)
    words = "--quality right --uncertainty u v --json".split()
    code, out, err = call(capsys, "prr", tmp_path / "x.csv", *words)
    assert code == 0 and f"Rows are units ({name}) of the texts in document." in err
    rows = {row["method"]: row for row in json.loads(out)}
    for method, row in rows.items():
        inside = within_auroc(frame["right"], frame[method], frame["document"])
        across = between_prr(frame["right"], frame[method], frame["document"])
        for found, level in ((inside, "within"), (across, "between")):
            assert row[level] == pytest.approx(found.value) and row[f"{level}_hi"] == pytest.approx(found.hi)
            assert row[f"{level}_p"] == pytest.approx(found.p)
        assert (row["within_texts"], row["between_texts"]) == (inside.texts, 20)
    assert rows["v"]["within"] == 0.5 and rows["v"]["between"] == pytest.approx(1)
    assert rows["u"]["within_lo"] > 0.5 and rows["u"]["n"] == 120
    named = json.loads(call(capsys, "prr", tmp_path / "x.csv", *words, "--document", "document")[1])
    assert named == list(rows.values())


@pytest.mark.parametrize("frame", [facts(), facts(claim=range(120)).drop(columns="document")])
def test_a_table_without_units_or_without_their_texts_is_as_before(frame, tmp_path, capsys):
    frame.to_csv(tmp_path / "x.csv", index=False)
    row, err = prr_of(capsys, tmp_path / "x.csv", "--quality", "right", "--uncertainty", "u")
    assert list(row) == ["method", "metric", *prr([1, 0], [1, 2])._fields, "q"] and "units" not in err
    assert row["se"] == pytest.approx(prr(frame["right"], frame["u"]).se)
