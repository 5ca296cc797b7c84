"""Outputs of other tools are read unchanged, and missing parts are reported with a remedy."""

import json
import math
import random

import pandas as pd
import pytest

from tests.helpers.outputs import FOLDER
from tests.helpers.paths import ROOT
from uetrust.data.outputs import OUTPUT_FORMATS, _raw_outputs, read_outputs

TAX, TAX_SOURCE = (
    "The council raised the water tax.",
    "The council met on Monday and raised the water tax by two percent.",
)
PARTS = "source references samples logprobs top_logprobs".split()
# File -> format, items, text of the first, samples of the first, which of `PARTS` it has
FILES = {
    "samples_bulletins.jsonl": ("lm-eval", 4, "lol", 2, "source references samples"),
    "inspect.eval": ("inspect", 4, TAX, 2, "source references samples logprobs top_logprobs"),
    "inspect.json": ("inspect", 2, TAX, 1, "source references samples logprobs top_logprobs"),
    "uqlm_blackbox.csv": ("uqlm", 4, TAX, 3, "source samples"),
    "uqlm_blackbox.parquet": ("uqlm", 4, TAX, 3, "source samples"),
    "uqlm_whitebox.csv": ("uqlm", 4, TAX, 0, "source logprobs"),
    "saved_dataset": ("own", 4, TAX, 2, "source references samples"),
    "openai_batch_output.jsonl": ("openai", 4, TAX, 2, "samples logprobs top_logprobs"),
    "openai_no_logprobs.jsonl": ("openai", 4, TAX, 0, ""),
    "vllm_request_outputs.jsonl": ("vllm", 4, TAX, 2, "source samples logprobs top_logprobs"),
    "vllm_server_completions.jsonl": ("openai", 4, TAX, 2, "source samples logprobs top_logprobs"),
    "sglang_generate.jsonl": ("sglang", 4, TAX, 0, "logprobs top_logprobs"),
    "details_bulletins.parquet": ("lighteval", 4, TAX, 2, "source references samples logprobs"),
    "every_eval_ever.jsonl": ("every-eval-ever", 4, TAX, 2, "source references samples"),
    "helm/scenario_state.json": ("helm", 4, TAX, 2, "source references samples logprobs"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_is_recognised_and_read(name):
    kind, n, text, samples, parts = FILES[name]
    outputs = read_outputs(FOLDER / name)
    first = outputs.records[0]
    assert (outputs.format, len(outputs.records), first.text.text, len(first.samples)) == (
        kind,
        n,
        text,
        samples,
    )
    assert [part for part in PARTS if outputs.count(part) == n] == parts.split()
    if "source" in parts:
        assert first.source.endswith(TAX_SOURCE)


def test_every_format_has_a_fixture_and_is_named_in_their_readme():
    assert {kind for kind, *_ in FILES.values()} == set(OUTPUT_FORMATS)
    readme = (FOLDER / "README.md").read_text()
    assert [path.name for path in FOLDER.iterdir() if path.name not in readme] == ["README.md"]


@pytest.mark.parametrize("name", [name for name, (*_, parts) in FILES.items() if "logprobs" in parts])
def test_log_probabilities_belong_to_the_tokens_of_the_text(name):
    for record in read_outputs(FOLDER / name).records:
        for text in [record.text, *(s for s in record.samples if s.logprobs)]:
            assert len(text.logprobs) == len(text.text.split()) and max(text.logprobs) < 0
            if text.tokens:
                assert "".join(text.tokens).split() == text.text.split()
            for at, logp in zip(text.top_logprobs or [], text.logprobs):
                assert at[0][1] >= at[1][1] and any(math.isclose(logp, found) for _, found in at)


def test_scores_keep_their_meaning():
    "A confidence is not a quality, grades become numbers, and nothing else does."
    assert read_outputs(FOLDER / "uqlm_blackbox.csv").records[0].confidence == {"exact_match": 2 / 3}
    assert set(read_outputs(FOLDER / "uqlm_whitebox.csv").records[0].confidence) == {
        "min_probability",
        "sequence_probability",
    }
    expected = {
        "inspect.eval": {"match": 1.0},
        "samples_bulletins.jsonl": {"exact_match": 0.0},
        "details_bulletins.parquet": {"rougeL": 0.0},
        "every_eval_ever.jsonl": {"score": 0.5, "is_correct": 0.0},
        "helm/scenario_state.json": {"rouge_l": 0.0},
        "saved_dataset": {"human": 0.0},
    }
    for name, scores in expected.items():
        assert read_outputs(FOLDER / name).records[0].quality == scores


def test_requests_of_a_batch_give_the_sources():
    outputs = read_outputs(FOLDER / "openai_batch_output.jsonl", data=FOLDER / "openai_batch_input.jsonl")
    assert outputs.records[0].source == TAX_SOURCE and outputs.count("source") == 4
    assert any("1 of 5 records left out: 1 failed request ('d9')" in note for note in outputs.notes)
    with pytest.raises(ValueError, match="names none of the items"):
        read_outputs(FOLDER / "openai_no_logprobs.jsonl", data=FOLDER / "openai_batch_input.jsonl")


def test_missing_parts_are_reported_with_a_remedy():
    notes = read_outputs(FOLDER / "openai_no_logprobs.jsonl").absent
    assert any("logprobs of 0 of 4 items: ask the server again with logprobs=true" in note for note in notes)
    assert any("samples of 0 of 4 items: ask for several replies" in note for note in notes)
    absent = read_outputs(FOLDER / "samples_bulletins.jsonl").absent
    assert any("uetrust bank read" in note for note in absent)


def test_scores_of_replies_and_requests_are_kept(tmp_path):
    for name in ("openai_batch_output.jsonl", "vllm_request_outputs.jsonl"):
        replies = [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]
        marked = [reply | dict(human=i, judge=dict(truth=0.5)) for i, reply in enumerate(replies)]
        (tmp_path / name).write_text("\n".join(map(json.dumps, marked)) + "\n")
        assert read_outputs(tmp_path / name).records[1].quality == {"human": 1.0, "judge.truth": 0.5}
        assert read_outputs(FOLDER / name).records[1].quality == {}
    requests = [json.loads(line) for line in (FOLDER / "openai_batch_input.jsonl").read_text().splitlines()]
    data = tmp_path / "requests.jsonl"
    data.write_text("\n".join(json.dumps(request | dict(human=2)) for request in requests) + "\n")
    outputs = read_outputs(FOLDER / "openai_batch_output.jsonl", data=data)
    assert {record.quality["human"] for record in outputs.records} == {2.0}


def test_a_dataset_is_read_by_name(tmp_path, monkeypatch):
    folder = tmp_path / "owner" / "name"
    folder.mkdir(parents=True)
    pd.DataFrame([dict(row, id=f"{i}") for i, row in enumerate(ROWS)]).to_json(
        folder / "test.jsonl", orient="records", lines=True
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    outputs = read_outputs("hub:owner/name:test")
    assert (outputs.format, len(outputs.records), outputs.records[0].text.text) == ("own", 3, "Rain.")
    with pytest.raises(ValueError, match="hub:owner/other cannot be read .* hub:OWNER/NAME:SPLIT"):
        read_outputs("hub:owner/other")


ROWS = [
    dict(document="It rained all day.", summary="Rain.", logprobs=[-0.5, -0.25], samples=["It rained."])
] * 3


@pytest.mark.parametrize("end", ["csv", "tsv", "jsonl", "json", "parquet", "xlsx"])
def test_own_tables_say_the_same_in_every_kind_of_file(tmp_path, end):
    df, file = (
        pd.DataFrame([dict(row, id=f"{i:02d}", human=i) for i, row in enumerate(ROWS)]),
        tmp_path / f"x.{end}",
    )
    write = dict(
        csv=lambda: df.to_csv(file, index=False),
        tsv=lambda: df.to_csv(file, index=False, sep="\t"),
        jsonl=lambda: df.to_json(file, orient="records", lines=True),
        json=lambda: df.to_json(file, orient="records"),
        parquet=lambda: df.to_parquet(file),
        xlsx=lambda: df.to_excel(file, index=False),
    )
    write[end]()
    record = read_outputs(file).records[2]
    assert (record.text.text, record.text.logprobs, record.source) == (
        "Rain.",
        [-0.5, -0.25],
        ROWS[0]["document"],
    )
    assert ([text.text for text in record.samples], record.quality) == (["It rained."], dict(human=2.0))
    assert record.id in ("02", "2")  # Text in a CSV of numbers looks like a number


@pytest.mark.parametrize("cell", ["", "   ", "NA"])
@pytest.mark.parametrize("end", ["csv", "tsv", "csv.gz", "xlsx", "parts"])
def test_an_empty_cell_of_a_table_is_a_missing_text(end, cell, tmp_path):
    df = pd.DataFrame(dict(id=list("abc"), summary=["a", cell, "b"], reference=["a", "b", cell]))
    file = tmp_path / f"x.{end}"
    if end == "xlsx":
        df.to_excel(file, index=False)
    elif end == "parts":
        file.mkdir()
        df.to_csv(file / "train-00000-of-00001.csv", index=False)
    else:
        df.to_csv(file, index=False, sep="\t" if end == "tsv" else ",")
    outputs = read_outputs(file)
    assert [record.id for record in outputs.records] == ["a", "c"] and outputs.count("references") == 1
    assert "1 of 3 records left out: 1 missing text ('b')" in outputs.notes


@pytest.mark.parametrize("end", ["jsonl", "json", "parquet"])
def test_an_empty_text_of_a_typed_file_is_a_text(end, tmp_path):
    df, file = pd.DataFrame(dict(id=list("abc"), summary=["", "NA", None])), tmp_path / f"x.{end}"
    df.to_parquet(file) if end == "parquet" else df.to_json(file, orient="records", lines=end == "jsonl")
    outputs = read_outputs(file)
    assert [record.text.text for record in outputs.records] == ["", "NA"]
    assert "1 of 3 records left out: 1 missing text ('c')" in outputs.notes


HUMAN = "id;summary;human;words\n1;Rain.;3,5;1,200\n2;Snow.;2,5;1,100\n3;Wind.;1,05;\n"


def test_numbers_of_a_column_are_read_as_prr_reads_them(tmp_path):
    (tmp_path / "x.csv").write_text(HUMAN)
    outputs = read_outputs(tmp_path / "x.csv")
    assert [record.quality.get("human") for record in outputs.records] == [3.5, 2.5, 1.05]
    assert [record.quality.get("words") for record in outputs.records] == [1.2, 1.1, None]
    assert not any("not used" in note for note in outputs.notes)
    (tmp_path / "y.jsonl").write_text('{"id": "1", "summary": "Rain."}\n{"id": "2", "summary": "Snow."}\n')
    outputs = read_outputs(tmp_path / "y.jsonl", data=tmp_path / "x.csv")
    assert [record.quality["human"] for record in outputs.records] == [3.5, 2.5]


ODD = {"3,5": "may be a decimal comma", "5 %": "write 0.05 or 5", "1.000,5": "write 1234.5"}


@pytest.mark.parametrize("cell", ODD)
def test_a_number_that_is_not_read_is_shown_with_what_would_work(cell, tmp_path):
    rows = [dict(summary=text, human=human) for text, human in (("Rain.", cell), ("Snow.", "2"))]
    pd.DataFrame(rows).to_csv(tmp_path / "x.csv", index=False)
    [note] = [note for note in read_outputs(tmp_path / "x.csv").notes if "not used" in note]
    assert f"human (holds {cell!r}: " in note and ODD[cell] in note
    notes = read_outputs(tmp_path / "x.csv", columns=dict(judges="human")).notes
    assert any("judges must be numbers" in note and ODD[cell] in note for note in notes)


def test_dates_and_words_of_a_column_are_no_odd_numbers(tmp_path):
    (tmp_path / "x.csv").write_text("summary,day,grade\nRain.,12.05.2024,A\nSnow.,13.05.2024,B\n")
    assert "not used: day, grade (holds no numbers)" in read_outputs(tmp_path / "x.csv").notes


@pytest.mark.parametrize("orient", ["columns", "index", "records", "split", "table"])
def test_a_column_of_samples_is_no_log_of_inspect(orient, tmp_path):
    rows = [dict(id=name, text="Rain.", samples=["It rained.", "Wet."]) for name in "abc"]
    pd.DataFrame(rows).to_json(tmp_path / "x.json", orient=orient)
    outputs = read_outputs(tmp_path / "x.json")
    assert [(record.id, len(record.samples)) for record in outputs.records] == [("a", 2), ("b", 2), ("c", 2)]


@pytest.mark.parametrize("samples", [["Wet."], [dict(role="assistant", content="Wet.")]])
def test_one_object_with_samples_is_one_record(samples, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(dict(text="Rain.", samples=samples)))
    [record] = read_outputs(tmp_path / "x.json").records
    assert (record.text.text, [sample.text for sample in record.samples]) == ("Rain.", ["Wet."])


def test_columns_of_any_name_can_be_given(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("Frage,Antwort,note\nWer?,Ich.,1\nWo?,Hier.,2\n")
    with pytest.raises(ValueError, match="no column holds the texts"):
        read_outputs(file)
    record = read_outputs(file, columns=dict(text="Antwort", source="Frage")).records[0]
    assert (record.source, record.text.text, record.quality) == ("Wer?", "Ich.", dict(note=1.0))
    with pytest.raises(ValueError, match="there is no column Anwort"):
        read_outputs(file, columns=dict(text="Anwort"))
    with pytest.raises(ValueError, match="a column may mean"):
        read_outputs(file, columns=dict(texts="Antwort"))


def test_a_pickle_is_refused_by_name_with_the_lines_that_export_it(tmp_path):
    (tmp_path / "run.man").write_bytes(b"\x80\x04.")
    with pytest.raises(ValueError, match="UEManager.load") as error:
        read_outputs(tmp_path / "run.man")
    assert "run.man" in str(error.value)


def half(path, source):
    path.write_bytes((FOLDER / source).read_bytes()[:-40])


DAMAGED = dict(
    half_lines=(
        "x.jsonl",
        lambda path: half(path, "vllm_request_outputs.jsonl"),
        "ends in the middle of line 4",
    ),
    half_eval=("x.eval", lambda path: half(path, "inspect.eval"), "not a complete .eval log"),
    half_json=("x.json", lambda path: half(path, "inspect.json"), "perhaps half a file"),
    half_parquet=("x.parquet", lambda path: half(path, "uqlm_blackbox.parquet"), "cannot be read as parquet"),
    empty=("x.jsonl", lambda path: path.write_text("\n"), "is empty"),
    numbers=("x.jsonl", lambda path: path.write_text("1\n2\n"), "record 1 is no object"),
    ending=("x.txt", lambda path: path.write_text("hello"), "not .txt"),
    failed=(
        "x.jsonl",
        lambda path: path.write_text(json.dumps(dict(custom_id="a", response=None, error={})) + "\n"),
        "none of its 1 records",
    ),
    choices=(
        "x.jsonl",
        lambda path: path.write_text(json.dumps(dict(doc_id=0, doc={}, resps=[[["-1.5", "False"]]])) + "\n"),
        "a multiple-choice task",
    ),
    odd=(
        "x.jsonl",
        lambda path: path.write_text(json.dumps(dict(doc={}, resps=[["a"]])) + "\n"),
        "row 1: a record differs from lm-evaluation-harness samples_*.jsonl (KeyError: 'doc_id')",
    ),
    probabilities=(
        "x.jsonl",
        lambda path: path.write_text(json.dumps(dict(summary="a", logprobs=[0.5])) + "\n"),
        "Are these probabilities?",
    ),
    uneven=(
        "x.jsonl",
        lambda path: path.write_text(json.dumps(dict(summary="a", logprobs=[-1], tokens=["a", "b"])) + "\n"),
        "1 log-probabilities, but 2 tokens",
    ),
    twice=(
        "x.jsonl",
        lambda path: path.write_text('{"id": "a", "summary": "b"}\n' * 2),
        "these ids occur twice: a",
    ),
    no_list=("x.csv", lambda path: path.write_text("summary,samples\na,b\n"), "samples must be a list"),
)


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_and_foreign_files_are_explained(name, tmp_path):
    file, make, says = DAMAGED[name]
    make(tmp_path / file)
    with pytest.raises(ValueError) as error:
        read_outputs(tmp_path / file)
    assert says in str(error.value) and file in str(error.value)


def test_unknown_formats_and_missing_files_are_explained(tmp_path):
    with pytest.raises(ValueError, match="no format is called 'opneai'"):
        read_outputs(FOLDER / "openai_no_logprobs.jsonl", format="opneai")
    with pytest.raises(ValueError, match="there is no file"):
        read_outputs(tmp_path / "no.jsonl")
    with pytest.raises(ValueError, match="without parts of a table"):
        read_outputs(tmp_path)


FIXTURES = ROOT / "tests" / "fixtures" / "outputs"
# Rows read are rows of items and rows named ----------------------------------


NO_OUTPUTS = "README.md", "openai_batch_input.jsonl"


@pytest.mark.parametrize("name", sorted({path.name for path in FIXTURES.iterdir()} - set(NO_OUTPUTS)))
def test_every_record_is_part_of_an_item_or_named(name):
    raw = _raw_outputs(FIXTURES / name).records
    outputs = read_outputs(FIXTURES / name)
    named = [note for note in outputs.notes if "records left out" in note]
    dropped = int(named[0].split()[0]) if named else 0
    assert sum(record.rows for record in outputs.records) + dropped == len(raw)


@pytest.mark.parametrize("seed", range(20))
def test_every_damage_costs_its_item_only(seed, tmp_path):
    "A field is damaged in one record of four: the three others keep everything that they had."
    rng = random.Random(seed)
    name = rng.choice(["openai_batch_output.jsonl", "vllm_request_outputs.jsonl", "sglang_generate.jsonl"])
    records = [json.loads(line) for line in (FIXTURES / name).read_text().splitlines()][:4]
    before = {record.id: record for record in read_outputs(FIXTURES / name).records}
    places = list(walk(records[2]))
    where, key = rng.choice(places)
    where[key] = rng.choice([None, "x", -9999.0, float("nan"), 0.5, [], {}, True])
    file = tmp_path / "damaged.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    after = {record.id: record for record in read_outputs(file).records}
    good = [record_id for i, record_id in enumerate(before) if i != 2][:3]
    assert [after[name].text for name in good] == [before[name].text for name in good]
    assert [after[name].samples for name in good] == [before[name].samples for name in good]


def walk(value):  # Every place of a record, as (container, key)
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, dict | list):
            yield from walk(inner)


FURTHER_FIELDS = {
    "samples": (["Rain fell.", "It rained."], "samples"),
    "samples as a reply": (
        dict(choices=[dict(message=dict(content=text)) for text in ("Rain fell.", "It rained.")]),
        "samples",
    ),
    "samples as replies": ([dict(role="assistant", content=text) for text in ("a", "b")], "samples"),
    "reference": ("Rain fell.", "references"),
    "references": (["Rain fell.", None], "references"),
}


@pytest.mark.parametrize("case", FURTHER_FIELDS)
@pytest.mark.parametrize("wrapped", [True, False])
def test_further_fields_of_a_reply_are_used(case, wrapped, tmp_path):
    reply = dict(choices=[dict(index=0, message=dict(role="assistant", content="Rain."))])
    value, part = FURTHER_FIELDS[case]
    further = {case.split()[0]: value, "human": 4, "remark": "looks fine"}
    records = [
        dict(custom_id=str(i), response=dict(body=reply)) | further
        if wrapped
        else dict(reply, id=str(i)) | further
        for i in range(3)
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    outputs = read_outputs(tmp_path / "x.jsonl")
    assert outputs.count(part) == 3 and outputs.records[0].quality == dict(human=4.0)
    assert any("not used: remark" in note for note in outputs.notes)
    assert not any(part in note for note in outputs.absent)


def test_a_file_that_begins_with_a_failure_is_recognised(tmp_path):
    message = dict(role="assistant", content=[dict(type="text", text="Rain.")], stop_reason="end_turn")
    records = [dict(custom_id="a", result=dict(type="errored", error=dict(type="overloaded")))]
    records += [dict(custom_id=name, result=dict(type="succeeded", message=message)) for name in "bc"]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    outputs = read_outputs(tmp_path / "x.jsonl")
    assert [(record.id, record.text.text) for record in outputs.records] == [("b", "Rain."), ("c", "Rain.")]
    assert "1 of 3 records left out: 1 failed request ('a')" in outputs.notes


def test_ids_that_differ_in_kind_only_are_refused(tmp_path):
    sample = dict(epoch=1, input="It rained.", target="Rain.", scores={})
    samples = [
        sample | dict(id=name, output=dict(choices=[dict(message=dict(role="assistant", content="Rain."))]))
        for name in (1, "1")
    ]
    (tmp_path / "x.json").write_text(json.dumps(dict(samples=samples)))
    with pytest.raises(ValueError, match="these ids occur twice: 1"):
        read_outputs(tmp_path / "x.json")
    samples[1]["id"] = 1
    (tmp_path / "x.json").write_text(json.dumps(dict(samples=samples)))
    with pytest.raises(ValueError, match="the sample '1' has the epoch 1 twice"):
        read_outputs(tmp_path / "x.json")


def test_letters_are_grades_in_logs_of_inspect_only(tmp_path):
    (tmp_path / "x.csv").write_text("hypothesis,correct,grade,agreed\na,Y,C,yes\nb,N,A,no\nc,Y,I,yes\n")
    outputs = read_outputs(tmp_path / "x.csv")
    assert [record.quality for record in outputs.records] == [
        dict(correct=1.0, agreed=1.0),
        dict(correct=0.0, agreed=0.0),
        dict(correct=1.0, agreed=1.0),
    ]
    assert any("not used: grade (holds no numbers)" in note for note in outputs.notes)
    assert read_outputs(FIXTURES / "inspect.eval").records[0].quality == dict(match=1.0)


@pytest.mark.parametrize(
    "name", ["samples_bulletins.jsonl", "every_eval_ever.jsonl", "sglang_generate.jsonl"]
)
def test_further_fields_of_an_item_of_a_log_are_used_or_named(name, tmp_path):
    records = [json.loads(line) for line in (FIXTURES / name).read_text().splitlines()]
    rows = [record | dict(human=i, remark="fine") for i, record in enumerate(records)]
    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    before, after = read_outputs(FIXTURES / name), read_outputs(tmp_path / name)
    assert [record.quality["human"] for record in after.records] == [0, 1, 2, 3]
    assert any("not used: " in note and "remark" in note for note in after.notes)
    assert [record.quality for record in before.records] == [
        {key: value for key, value in record.quality.items() if key != "human"} for record in after.records
    ]
