"""Public benchmarks: small files of the published form become the table; damaged ones name the record."""

import csv
import gzip
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tests.helpers.consistency import ODD, article, lines
from uetrust.data import consistency, records, summarization
from uetrust.data.datasets import load_samples
from uetrust.data.download import DataNotAtHand
from uetrust.data.loaders import BadData


def table(head, rows, sep=","):
    file = io.StringIO()
    if sep == "\t":
        return "\n".join("\t".join(map(str, row)) for row in [head, *rows]) + "\n"
    csv.writer(file).writerows([head, *rows])
    return file.getvalue()


def test_without_a_folder_cache_and_mirror_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UETRUST_MIRROR", str(tmp_path))
    with pytest.raises(DataNotAtHand) as e:
        consistency.true_set("paws")
    assert f"{tmp_path / 'cache'} nor in {tmp_path}" in str(e.value)
    (tmp_path / "cache" / "paws").mkdir(parents=True)
    (tmp_path / "cache" / "paws" / "dev.tsv").write_text("id\tsentence1\tsentence2\tlabel\n1\tA\tB\t1\n")
    assert consistency.true_set("paws")["label"].tolist() == [1]


def test_a_packed_file_is_the_same_file(put):
    put("paws/dev.tsv", text := "id\tsentence1\tsentence2\tlabel\n1\tA é\tB\t1\n")
    plain = consistency.true_set("paws", put.at)
    (put.at / "paws" / "dev.tsv").unlink()
    put("paws/dev.tsv.gz", gzip.compress(text.encode()))
    pd.testing.assert_frame_equal(consistency.true_set("paws", put.at), plain)


# What is wrong with a file
@pytest.mark.parametrize(
    "text,says",
    [
        (b"\xff\xfeid", "paws/dev.tsv: dev.tsv is not UTF-8 text"),
        ("", "paws/dev.tsv, the file: found no record"),
        (
            "id\tsentence1\tsentence2\tlabel\n",
            "paws/dev.tsv, the file: found no record. Get it from final/dev.tsv",
        ),
        (
            "id\ts1\tsentence2\tlabel\n1\tA\tB\t1\n",
            (
                "paws/dev.tsv, record 1: found ['id', 's1', 'sentence2', 'label'], without "
                "['sentence1']. Expected are ['id', 'sentence1', 'sentence2', 'label']; the file comes "
                "from"
            ),
        ),
        (
            "id\tsentence1\tsentence2\tlabel\n1\tA\tB\t1\n2\tA\tB\n",
            "paws/dev.tsv, record 2: found 3 fields under 4 columns",
        ),
        (
            "id\tsentence1\tsentence2\tlabel\n1\tA\tB\tyes\n",
            (
                "paws/dev.tsv, record 1: found the label 'yes'. Labels are 1 (consistent) and 0 (not): "
                "correct the record, or fetch the file again"
            ),
        ),
        (
            "id\tsentence1\tsentence2\tlabel\n1\tA\tB\t1\n1\tA\tC\t1\n",
            (
                "paws/dev.tsv, record 2: found the id 'paws-1' of record 1 with other content. Ids must "
                "be unique"
            ),
        ),
        (
            "id\tsentence1\tsentence2\tlabel\n1\tA\t \t1\n",
            "paws/dev.tsv, records: found none of paws with a text ({'empty hypothesis': 1})",
        ),
    ],
)
def test_a_damaged_table_names_file_record_and_remedy(put, text, says):
    put("paws/dev.tsv", text)
    with pytest.raises(BadData) as e:
        consistency.true_set("paws", put.at)
    assert says in str(e.value)


@pytest.mark.parametrize(
    "text,says",
    [
        ('{"article": "a"', "qags/mturk_xsum.jsonl: mturk_xsum.jsonl, line 1 is not JSON"),
        ("[1]\n", "qags/mturk_xsum.jsonl, record 1: found list, without names"),
        (
            lines([dict(article="a", summary_sentences=[])]),
            "record 1: found no sentence. Every summary needs one",
        ),
        (
            lines([dict(article="a", summary_sentences=[dict(sentence="s", responses=[])])]),
            "record 1: found no vote. Every text needs at least one judge",
        ),
        (
            lines(
                [
                    dict(
                        article="a",
                        summary_sentences=[dict(sentence="s", responses=[dict(response="maybe")])],
                    )
                ]
            ),
            "record 1: found the label 'maybe'. Labels are yes (consistent) and no (not)",
        ),
        (
            lines([dict(article="a", summary_sentences=[dict(sentence="s", responses=5)])]),
            "record 1: found another structure",
        ),
        (
            lines([dict(article=7, summary_sentences=[dict(sentence="s", responses=[dict(response="no")])])]),
            "record 1: found 7 for the source. It must be a text",
        ),
    ],
)
def test_a_damaged_file_of_lines_names_file_record_and_remedy(put, text, says):
    put("qags/mturk_xsum.jsonl", text)
    with pytest.raises(BadData) as e:
        consistency.qags_votes("xsum", put.at, complete=False)
    assert says in str(e.value)


def test_broken_json_names_the_line(put):
    put("frank/human_annotations_sentence.json", '[\n{"hash": 1,\n]')
    with pytest.raises(BadData, match="human_annotations_sentence.json is not JSON, .* line 3"):
        consistency.true_set("frank", put.at)


def test_unknown_names_are_answered_with_the_known_ones(tmp_path):
    for function, unknown_name, says in (
        (consistency.summac, "qags", "cogensumm"),
        (consistency.true_set, "fever", "mnbm"),
        (summarization.rose, "cnn", "cnndm_protocol_gpt3"),
        (consistency.qags_votes, "cnn", "cnndm and xsum"),
        (summarization.cnndm, "dev", "validation"),
        (records.benchmark_path, "x", "paws/dev.tsv"),
    ):
        with pytest.raises(ValueError, match=says):
            function(unknown_name)
    with pytest.raises(ValueError, match="'val' or 'test', got 'train'"):
        consistency.summac("frank", "train")


# Texts
def test_line_breaks_and_signs_of_all_languages_stay(put):
    put(
        "begin/dev_05_24_21.tsv",
        table(
            ["evidence", "response", "gold label"],
            [[ODD, '"quoted" start', "entailment"], ["a", f'says "x" {ODD}', "generic"]],
            "\t",
        ),
    )
    df = consistency.true_set("begin", put.at)
    assert df["source"][0] == ODD
    assert df["hypothesis"].tolist() == ['"quoted" start', f'says "x" {ODD}']
    assert df["label"].tolist() == [1, 0]
    put(
        "q2/cross_annotation.csv",
        table(
            ["knowledge", "dodeca_response", "memnet_response", "dodeca_label", "memnet_label"],
            [[f"two\nlines {ODD}", 'a, "b"', "NULL", "1", "0"]],
        ),
    )
    df = consistency.true_set("q2", put.at)
    assert df["source"].tolist() == [f"two\nlines {ODD}"] * 2
    assert df["hypothesis"].tolist() == ['a, "b"', "NULL"]
    assert df["label"].tolist() == [0, 1]


def test_a_mark_of_byte_order_is_no_part_of_a_name(put):
    put("paws/dev.tsv", "\ufeffid\tsentence1\tsentence2\tlabel\n1\tA\tB\t0\n".encode())
    assert consistency.true_set("paws", put.at)["label"].tolist() == [0]


# CNN/DM and samples
def test_cnndm_in_tidy_form_and_its_number(news):
    df = summarization.cnndm("test", news.at, complete=False)
    assert df[["id", "split"]].to_numpy().tolist() == [[i * 40, "test"] for i in "abcd"]
    assert df["reference"][0] == "High a .\nLow a ."
    assert df["source"][0] == article("a")
    assert df["hypothesis"].isna().all()
    with pytest.raises(
        BadData, match="found 4 of cnndm. 11490 were published: fetch the file again, or pass complete=False"
    ):
        summarization.cnndm("test", news.at)


def test_cnndm_can_be_summarized_by_name(news, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(news.at))
    monkeypatch.setattr(summarization, "CNNDM_ROWS", dict(test=4))
    df = load_samples("cnndm:test:3")
    assert list(df) == ["id", "split", "source", "reference"]
    assert df["id"].tolist() == [i * 40 for i in "abc"]
    assert df["source"][2] == article("c")
    with pytest.raises(ValueError, match="NAME:SPLIT:NUMBER, for example cnndm:test:100"):
        load_samples("cnndm:test")


def test_cnndm_that_is_nowhere_is_data_not_at_hand(tmp_path, monkeypatch):
    for variable in ("UETRUST_CACHE", "UETRUST_MIRROR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    with pytest.raises(
        DataNotAtHand, match="data not at hand: cnndm/test.jsonl.*put it there as cnndm/test.jsonl"
    ):
        summarization.cnndm("test")


def test_the_right_configuration_is_requested_from_the_hub(monkeypatch, tmp_path):
    calls = []

    class Table:
        def to_pandas(self):
            return pd.DataFrame([dict(id="1", article="A.", highlights="H.")])

    class Fake:
        config = SimpleNamespace(HF_HUB_OFFLINE=False)

        @staticmethod
        def load_dataset(*args, **options):
            return calls.append((args, options)) or Table()

    monkeypatch.setitem(__import__("sys").modules, "datasets", Fake)
    for variable in ("UETRUST_CACHE", "UETRUST_MIRROR"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert summarization.cnndm("validation", complete=False)["source"].tolist() == ["A."]
    assert calls == [
        (("abisee/cnn_dailymail", "3.0.0"), dict(split="validation", revision="refs/convert/parquet"))
    ]
    with pytest.raises(DataNotAtHand):
        summarization.cnndm("test", tmp_path)  # a folder that was named is not passed over


def maynez(*rows):
    return table(
        ["bbcid", "system", "summary", "hallucination_type", "hallucinated_span", "worker_id"],
        [
            [i, system, f"Said {i} {system}, in short", kind, "x", f"wid_{worker}"]
            for i, system, kind, worker in rows
        ],
    )


def test_hallucinations_are_counted_by_worker_or_by_row(news):
    news(
        "xsumfaith/hallucination_annotations_xsum_summaries.csv",
        maynez(
            (0, "A", "NULL", 0),
            (0, "A", "NULL", 1),
            *[(0, "A", "extrinsic", 2)] * 3,
            (0, "B", "NULL", 0),
            (0, "B", "intrinsic", 1),
            (0, "B", "extrinsic", 2),
            (1, "A", "NULL", 0),
            (1, "A", "NULL", 1),
            (1, "A", "NULL", 2),
        ),
    )
    true = consistency.true_set("mnbm", news.at, complete=False)
    assert true["id"].tolist() == ["0 A", "0 B", "1 A"]
    assert true["label"].tolist() == [1, 0, 1]
    assert np.allclose(true["human"], [2 / 3, 1 / 3, 1])
    assert "\n" not in true["source"][0]
    val, test = (consistency.summac("xsumfaith", split, news.at, complete=False) for split in ("val", "test"))
    assert val["label"].tolist() == [0, 1]
    assert test["label"].tolist() == [1]
    assert val["source"][0] == article(0)  # B: three different entries, the first wins
    news(
        "xsumfaith/hallucination_annotations_xsum_summaries.csv",
        maynez(
            *[(0, "A", kind, worker) for worker in (0, 1) for kind in ("intrinsic", "NULL")],
            (0, "A", "NULL", 2),
        ),
    )
    assert consistency.true_set("mnbm", news.at, complete=False)[["label", "human"]].to_numpy().tolist() == [
        [0, 1 / 3]
    ]  # who marks a span and NULL has marked a span
    news("xsumfaith/hallucination_annotations_xsum_summaries.csv", maynez((0, "A", "null", 0)))
    with pytest.raises(BadData, match="record 1: found the label 'null'. Labels are NULL"):
        consistency.true_set("mnbm", news.at)


def test_an_article_that_is_not_there_names_the_record(news):
    news(
        "xsumfaith/hallucination_annotations_xsum_summaries.csv",
        maynez((0, "A", "NULL", 0), (99, "A", "NULL", 0)),
    )
    with pytest.raises(
        BadData,
        match=(
            "record 2: found the article '99', which xsum does not have .so in 1 of 2 records.. Put the "
            "whole splits"
        ),
    ):
        consistency.true_set("mnbm", news.at)


# The rest of SummaC
def sents(*labels):
    return {str(k): dict(label=label, text=f"s{k}") for k, label in enumerate(labels)}


def cogensumm(put, **more):
    one = {"a" * 40: dict(label="Incorrect", sents=sents("Correct", "Incorrect"))}
    files = {name: one for name in records.COGENSUMM_FILES} | dict(
        val_reranking={
            "e" * 40: {
                "12": dict(label="Correct", sents=sents(*["Correct"] * 11)),
                "3": dict(label="Incorrect", sents=sents("Incorrect")),
            }
        },
        val_sentence_pairs=[dict(article_id="f" * 40, correct_sent="yes", incorrect_sent="no")],
    )
    for name, content in (files | more).items():
        put(f"cogensumm/{name}.json", json.dumps(content))


def test_cogensumm_has_three_forms(news):
    cogensumm(news)
    val, test = (consistency.summac("cogensumm", split, news.at, complete=False) for split in ("val", "test"))
    assert val["label"].tolist() == [1, 0, 1, 0]
    assert val["hypothesis"].tolist() == [
        " ".join(f"s{k}" for k in range(11)),
        "s0",
        "yes",
        "no",
    ]
    assert len(test) == 4
    assert test["label"].eq(0).all()
    assert test["hypothesis"].eq("s0 s1").all()
    assert set(test["source"]) == {article("a")}
    assert val["source"].tolist() == [article("e")] * 2 + [article("f")] * 2
    with pytest.raises(BadData, match="found 4 of cogensumm. 1281 were published"):
        consistency.summac("cogensumm", "val", news.at)


@pytest.mark.parametrize(
    "more,says",
    [
        (dict(val_sentence_pairs={}), "val_sentence_pairs.json, top level: found dict. Expected is a list"),
        (
            dict(test_see17_org=[dict(label="Correct", sents={})]),
            "test_see17_org.json, top level: found list. Expected is a dict",
        ),
        (
            dict(test_see17_org={"a": dict(label="correct", sents=sents("Correct"))}),
            "test_see17_org.json, record 'a': found the label 'correct'",
        ),
        (dict(test_see17_org={"a": dict(sents={})}), "without ['label']"),
    ],
)
def test_cogensumm_damaged(news, more, says):
    cogensumm(news, **more)
    with pytest.raises(BadData) as e:
        consistency.summac("cogensumm", "test", news.at)
    assert says in str(e.value)


def test_factcc_takes_the_article_from_the_path(news):
    for split, letter in (("val", "a"), ("test", "e")):
        news(
            f"factcc/{split}/data-dev.jsonl",
            lines(
                dict(
                    id="same",
                    filepath=f"cnndm/cnn/stories/{letter * 40}.story",
                    claim=f"Claim {k}.",
                    label=label,
                )
                for k, label in enumerate(("CORRECT", "INCORRECT"))
            ),
        )
    df = consistency.summac("factcc", "test", news.at, complete=False)
    assert df["label"].tolist() == [1, 0] and set(df["source"]) == {article("e")} and df["id"].is_unique
    news("factcc/val/data-dev.jsonl", lines([dict(filepath=f"{'a' * 40}.story", claim="c", label="TRUE")]))
    with pytest.raises(
        BadData, match="factcc/val/data-dev.jsonl, record 1: found the label 'TRUE'. Labels are CORRECT"
    ):
        consistency.summac("factcc", "test", news.at)


def workbook(segments, errors):
    return {
        "Scores per segment": pd.DataFrame(segments, columns=["ID", "Source", "Target"]),
        "Error Log": pd.DataFrame(errors, columns=["ID", "Subtypes"]),
    }


SEGMENTS = [["1", "S1", "T1"], [np.nan, np.nan, np.nan], ["3", "S3", "T3"], ["4", "S4", "T4"]]


def write_workbook(path, book):
    with pd.ExcelWriter(path.with_suffix(".xlsx")) as writer:
        for sheet, content in book.items():
            content.to_excel(writer, sheet_name=sheet, index=False)
    path.with_suffix(".xlsx").replace(path)


@pytest.fixture
def books(put):
    "Function that writes one workbook for every system"

    def write(book):
        for system in records.POLYTOPE_SYSTEMS:
            write_workbook(put(f"polytope/Human_Annotation_Summarization_{system}.xlsm", b""), book)

    return put.at, write


def test_polytope_is_cut_by_turns_before_anything_is_left_out(books):
    folder, write = books
    write(workbook(SEGMENTS, [["3", "Omission"], ["4", np.nan]]))
    val, test = (consistency.summac("polytope", split, folder, complete=False) for split in ("val", "test"))
    assert len(val) == 18
    assert val["label"].tolist() == [1, 0] * 9
    assert test["label"].tolist() == [1] * 9
    assert test["hypothesis"].eq("T4").all()
    assert set(val["system"]) == set(records.POLYTOPE_SYSTEMS)


@pytest.mark.parametrize(
    "book,says",
    [
        (
            workbook(SEGMENTS, [["9", "Omission"]]),
            "sheet 'Error Log': found errors of 9, but no segment has this ID",
        ),
        (
            {"Scores per segment": pd.DataFrame(columns=["ID"])},
            "sheet 'Scores per segment': found ['ID'], without ['Source', 'Target']",
        ),
        (
            {"Scores per segment": pd.DataFrame(SEGMENTS, columns=["ID", "Source", "Target"])},
            "sheet 'Error Log': found ['Scores per segment'], without ['ID', 'Subtypes']",
        ),
    ],
)
def test_polytope_damaged(books, book, says):
    folder, write = books
    write(book)
    with pytest.raises(BadData) as e:
        consistency.summac("polytope", "val", folder)
    assert says in str(e.value) and "Human_Annotation_Summarization_BART.xlsm" in str(e.value)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04xxxx"])
def test_polytope_that_is_no_workbook(put, content):
    for system in records.POLYTOPE_SYSTEMS:
        put(f"polytope/Human_Annotation_Summarization_{system}.xlsm", content)
    with pytest.raises(ValueError, match="_BART.xlsm cannot be read as a workbook"):
        consistency.summac("polytope", "val", put.at, complete=False)


def test_a_workbook_without_its_reader_says_what_to_install(put, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    put("polytope/Human_Annotation_Summarization_BART.xlsm", b"PK")
    with pytest.raises(DataNotAtHand, match="pip install openpyxl"):
        consistency.summac("polytope", "val", put.at)


def test_the_published_numbers_are_those_of_the_specification():
    assert {name: sum(counts) for name, counts in consistency.SUMMAC_ROWS.items()} == dict(
        cogensumm=1681, xsumfaith=2500, polytope=1268, factcc=1434, summeval=1700, frank=2246
    )


VOTED = dict(article="a", summary_sentences=[dict(sentence="s", responses=[dict(response="yes")])])
FRANK = dict(hash="1", model_name="m", split="valid", article="a", summary="s")
FRANK |= dict(summary_sentences_annotations=[dict(annotator_0=["NoE"])])
SUMMEVAL = dict(id=f"dm-test-{'a' * 40}", model_id="M1", decoded="s")
SUMMEVAL |= dict(expert_annotations=[dict(consistency=5)])
MNBM = maynez((0, "A", "NULL", 0))
ONE_OF_TRUE = dict(  # File of one summary, and how many were published: twice 1250 as XSumFaith in SummaC
    frank=("frank/human_annotations_sentence.json", json.dumps([FRANK]), 671),
    summeval=("summeval/model_annotations.aligned.jsonl", lines([SUMMEVAL]), 1600),
    mnbm=("xsumfaith/hallucination_annotations_xsum_summaries.csv", MNBM, 2500),
    qags_cnndm=("qags/mturk_cnndm.jsonl", lines([VOTED]), 235),
    qags_xsum=("qags/mturk_xsum.jsonl", lines([VOTED]), 239),
)


@pytest.mark.parametrize("name", ONE_OF_TRUE)
def test_a_set_of_true_that_is_not_whole_is_refused_with_its_published_number(news, name):
    file, content, published = ONE_OF_TRUE[name]
    news(file, content)
    assert consistency.true_set(name, news.at, complete=False)["label"].tolist() == [1]
    with pytest.raises(BadData, match=f"found 1 of {name}. {published} were published"):
        consistency.true_set(name, news.at)


def test_dialfact_keeps_factual_responses_with_evidence(put):
    def record(label, *evidence, kind="factual"):
        return dict(
            response="R",
            evidence_list=[["T", "link", text, "0"] for text in evidence],
            response_label=label,
            type_label=kind,
        )

    put(
        "dialfact/valid_split.jsonl",
        lines(
            [
                record("SUPPORTS", "E1", "E2"),
                record("REFUTES", "E"),
                record("NOT ENOUGH INFO", "E"),
                record("SUPPORTS", "E", kind="personal"),
                record("SUPPORTS"),
                record("SUPPORTS", ""),
            ]
        ),
    )
    df = consistency.true_set("dialfact", put.at)
    assert df["label"].tolist() == [1, 0, 0]
    assert df["source"][0] == "E1 E2"
    put("dialfact/valid_split.jsonl", lines([record("supports", "E")]))
    with pytest.raises(BadData, match="NOT ENOUGH INFO"):
        consistency.true_set("dialfact", put.at)


def test_begin_knows_entailment_and_everything_else(put):
    put(
        "begin/dev_05_24_21.tsv",
        table(
            ["evidence", "response", "gold label"],
            [["E", f"R{i}", label] for i, label in enumerate(("entailment", "generic", "hallucination"))],
            "\t",
        ),
    )
    assert consistency.true_set("begin", put.at)["label"].tolist() == [1, 0, 0]
    put("begin/dev_05_24_21.tsv", table(["evidence", "response", "gold label"], [["E", "R", " "]], "\t"))
    with pytest.raises(BadData, match="record 1: found no gold label"):
        consistency.true_set("begin", put.at)


def test_released_scores_become_the_table_of_the_study(put):
    head = ["id", "generated_text", "grounding", "label", *records.TRUE_SCORES.values()]
    for k, name in enumerate(records.TRUE_FILES.values()):
        put(
            f"true_scores/{name}_true_scores.csv",
            table(head, [[i, "a, b", "c\nd", i % 2, *(k + j / 100 for j in range(11))] for i in range(3)]),
        )
    df = consistency.true_scores(put.at)
    assert list(df) == ["dataset", "id", "label", *records.TRUE_SCORES]
    assert len(df) == 27
    assert df["label"].tolist() == [0, 1, 0] * 9
    assert df.groupby("dataset", sort=False)["BLEURT"].first().tolist() == [k + 0.1 for k in range(9)]
    put("true_scores/q2_true_scores.csv", table(head, [[0, "a", "b", 1, *["x"] * 11]]))
    with pytest.raises(
        BadData, match="true_scores/q2_true_scores.csv, record 1: found 'x' under BLEU_4. Scores are numbers"
    ):
        consistency.true_scores(put.at)
