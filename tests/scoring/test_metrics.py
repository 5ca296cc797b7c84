"""Quality metrics of a table: which texts are taken, which model a metric gets, what is said of the rest."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.edits import TEXTS, values
from uetrust.core.registry import Entry
from uetrust.core.settings import root
from uetrust.scoring import metrics as g
from uetrust.scoring.generators import GeneratorSettings
from uetrust.scoring.metrics import compute_metrics, metric_names, missing_inputs, model_key, read_texts
from uetrust.statistics import entry
from uetrust.statistics.judges import JudgeServer
from uetrust.statistics.scores import load_scores

reg = load_scores()
SERVER = JudgeServer(GeneratorSettings("g", model="m", endpoint="http://127.0.0.1:9/v1"), "replies.sqlite")


# Texts
def test_rows_of_a_file_without_names_are_counted_from_1(tmp_path):
    pd.DataFrame(dict(document=["A.", "B."], summary=["a", "b"])).to_csv(tmp_path / "a.csv", index=False)
    texts = read_texts(tmp_path / "a.csv")
    assert texts.to_dict("list") == dict(id=["row 1", "row 2"], hypothesis=["a", "b"], source=["A.", "B."])
    assert list(texts) == ["id", "hypothesis", "source"]


@pytest.mark.parametrize(
    "columns, said",
    [
        ("summary hypothesis source document", "hypothesis and summary"),
        ("summary source document", "source and document"),
    ],
)
def test_two_columns_of_one_meaning_are_refused(tmp_path, columns, said):
    pd.DataFrame({name: ["x"] for name in columns.split()}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=f"a.csv has both {said}, which mean the same: keep one"):
        read_texts(tmp_path / "a.csv")


def test_numbers_that_look_like_numbers_stay_texts(tmp_path):
    (tmp_path / "a.csv").write_text("id,hypothesis\n01,1.50\n")
    assert read_texts(tmp_path / "a.csv").to_dict("records") == [dict(id="01", hypothesis="1.50")]


@pytest.mark.parametrize(
    "texts, says",
    [
        (TEXTS.drop(columns="id"), r"columns id and hypothesis; id not among \['hypothesis', 'reference'\]"),
        (TEXTS[["reference"]], r"id and hypothesis not among \['reference'\]"),
        (TEXTS.iloc[:0], "the table has no row"),
        (TEXTS.assign(id="a"), "every text needs an id of its own, these occur twice: a$"),
        (TEXTS.assign(hypothesis=["x", None]), "hypothesis must be a text; it is not for b"),
        (TEXTS.assign(reference=["x", 5]), "reference must be a text; it is not for b"),
        (
            TEXTS.assign(references=[["x"], []]),
            "references must be a list of one text or more; it is not for b",
        ),
        (TEXTS.assign(references=[["x", 1], ["y"]]), "references must be a list .*; it is not for a"),
        (TEXTS.assign(references=["x", ["y"]]), "references must be a list .*; it is not for a"),
    ],
)
def test_what_is_no_text_is_named(texts, says):
    with pytest.raises(ValueError, match=says):
        values(texts)


def test_a_text_without_a_reference_has_no_score_and_says_so():
    for column in ("reference", "references"):
        given = dict.fromkeys(["reference"]) | {
            column: [None, "No." if column == "reference" else ("No.", "Yes.")]
        }
        found = values(TEXTS.drop(columns="reference").assign(**given))
        assert found["value"].isna().tolist() == [True, False]
        assert found["note"].tolist() == ["this text has no reference", ""]


def test_a_column_without_any_text_is_not_there():
    for none in (None, np.nan):
        found = compute_metrics(TEXTS.assign(reference=none), {}, ["rouge_l"], progress=False)
        assert len(found.table) == 0 and found.missing == dict(rouge_l=["the column reference"])
        kept = values(TEXTS.assign(references=none))
        assert kept["value"].tolist()[0] == 1, "the other column of references is taken"


# What is lacking
@pytest.mark.parametrize(
    "metric, columns, models, lacks",
    [
        ("rouge_l", ["hypothesis", "reference"], {}, []),
        ("rouge_l", ["hypothesis"], {}, ["the column reference"]),
        ("factcc", ["hypothesis"], {}, ["the column source", "a model for 'factcc'"]),
        ("mnli_doc", ["hypothesis", "source"], {}, ["a model for 'mnli' or 'nli'"]),
        ("mnli_doc", ["hypothesis", "source"], dict(nli="m"), []),
        ("mnli_doc", ["hypothesis", "source"], dict(mnli="m"), []),
        ("mnli_doc", ["hypothesis", "source"], dict(summac="m"), ["a model for 'mnli' or 'nli'"]),
        ("bleu_alignscore", ["hypothesis", "source"], {}, []),
        ("judge_wi_in_consistency", ["hypothesis", "source"], dict(judge=SERVER), []),
    ],
)
def test_what_a_metric_lacks_is_named(metric, columns, models, lacks):
    assert missing_inputs(metric, columns, models) == lacks


def test_a_server_gives_no_probabilities_of_its_answers_and_spans_come_from_spacy():
    columns = ["hypothesis", "source", "reference"]
    (lack,) = missing_inputs("judge_wi_in_consistency_expected", columns, dict(judge=SERVER))
    assert lack.startswith("probabilities of a server's answers") and "--top 20" in lack
    assert missing_inputs("judge_wi_in_consistency_expected", columns, dict(judge="m")) == []
    assert "a spaCy pipeline for 'spans'" in missing_inputs("q2", columns, {})
    assert missing_inputs("dae", columns, {}) == ["dae_arcs, which nothing here makes"]


def test_all_metrics_or_those_that_are_named_each_once():
    assert metric_names("all") == list(reg.of("nlg"))
    answers = set(metric_names("all")) - set(metric_names("summaries"))
    matches = {"exact_match", "lexical_match", "token_f1"}
    assert answers == matches | {"embedding_cosine", "embedding_cosine_source"}
    assert metric_names(["rouge_l", "bleu", "rouge_l"]) == ["rouge_l", "bleu"]
    assert metric_names(np.array(["rouge_l"])) == ["rouge_l"]
    stat = next(iter(reg.of("stat")))
    with pytest.raises(
        ValueError, match=f"msp, {stat} is no quality metric but a ue; `uetrust metrics` lists"
    ):
        metric_names(["msp", "rouge_l", stat])


# Models
def test_a_model_is_known_by_its_checkpoint_and_by_how_it_is_read(tmp_path):
    (tmp_path / "modules.json").touch()
    folder, plain = str(tmp_path), str(root() / "data/models/tiny-encoder")
    classes = "entailment:0,neutral:1,contradiction:2"
    assert model_key("sentence_lists", dict(sentence_lists="m")) is None, (
        "nothing is loaded to split sentences"
    )
    assert model_key("mnli", {}) is None
    assert model_key("mnli", dict(nli="n", mnli="m")) == ("m", "", "")
    assert model_key("summac", dict(nli="n", mnli="m")) == ("n", "", "")
    assert model_key("alignscore", dict(alignscore=("m", tmp_path / "head.bin"))) == (
        "m",
        f"{folder}/head.bin",
        "",
    )
    assert model_key("mnli", dict(nli=("m", classes))) == ("m", classes, "labels")
    assert model_key("spans", dict(spans="en_core_web_sm")) == ("en_core_web_sm", "", "spacy")
    assert model_key("judge", dict(judge=SERVER)) == (SERVER, "", "server")
    kinds = {
        name: model_key("embedding", dict(embedding=name))[2] for name in (folder, plain, "org/sentences")
    }
    assert kinds == {folder: "sentence", plain: "", "org/sentences": "sentence"}
    assert model_key("bertscore", dict(bertscore=folder)) == (folder, "", "")


def test_a_group_that_nobody_knows_is_named_beside_those_that_there_are():
    with pytest.raises(
        ValueError, match=r"no group of statistics is called bar, nil; there are \['alignscore', "
    ):
        compute_metrics(TEXTS, dict(nil="m", bar="m", nli="m"), ["rouge_l"], progress=False)


def test_models_of_names_and_families_are_told_beside_the_scores():
    nli = root() / "data/models/tiny-nli"
    texts = TEXTS.assign(source=["Rain fell in the north.", "It snowed in the south."])
    scores = compute_metrics(
        texts, dict(nli=nli), ["rouge_l", "summac_zs", "mnli_doc", "bleu_alignscore"], progress=False
    )
    found = scores.table
    assert set(scores.models) == {"summac", "mnli"} and scores.missing == {}
    assert scores.models["mnli"].startswith("tiny-nli ")
    assert (
        found["name"].tolist()
        == ["rouge_l"] * 2 + ["summac_zs"] * 2 + ["mnli_doc"] * 2 + ["bleu_alignscore"] * 2
    )
    assert list(found.index) == list(range(8)) and found["note"].eq("").equals(found["value"].notna())
    assert scores.cut["mnli"] == dict(nli_source_hypothesis=0)


# Packages
def test_a_missing_package_is_told_in_one_line_and_other_errors_are_raised():
    def lacks(error, cause=None):
        def function():
            raise error from cause

        return function

    asked = LookupError("\nno pipeline 'x': pip install spacy\nSearched in: here")
    assert g._or_advice(lambda: 5) == (5, "")
    assert g._or_advice(lacks(asked)) == (None, "no pipeline 'x': pip install spacy")
    assert g._or_advice(lacks(ValueError("metric"), asked)) == (None, "no pipeline 'x': pip install spacy")
    for error in (KeyError("x"), ValueError("x"), IndexError("x")):
        with pytest.raises(type(error)):
            g._or_advice(lacks(error))


def test_a_text_for_which_a_model_fails_has_a_note_and_the_others_have_their_values():
    tried = []

    def make(given):
        tried.append(list(given["hypothesis"]))
        if "bad" in given["hypothesis"]:
            raise RuntimeError("no room")
        return dict(length=[len(text) for text in given["hypothesis"]]), dict(
            length=np.zeros(len(given["hypothesis"]))
        )

    given = dict(hypothesis=["a", "bb", "bad", "dddd", "eeeee"])
    statistics, cut = entry._one_by_one(make, given, ["length"], "note")
    assert [str(value) for value in statistics["length"]] == [
        "1",
        "2",
        "failed: RuntimeError: no room",
        "4",
        "5",
    ]
    assert cut["length"].tolist() == [0] * 5 and len(tried) <= 6
    with pytest.raises(RuntimeError, match="no room"):
        entry._one_by_one(make, given, ["length"], "raise")


def test_a_metric_of_one_reference_is_given_one_at_a_time_and_the_best_counts(monkeypatch):
    "Of the text a b the references have one, two and no words"

    def found(hypothesis: str, reference: str) -> float:
        return float(len({*hypothesis.split()} & {*reference.split()}))

    monkeypatch.setitem(reg, "found", Entry(found, kind="nlg", unit="words", cite="test"))
    texts = pd.DataFrame(dict(id=["x"], hypothesis=["a b"], references=[["a", "a b", "c"]]))
    assert compute_metrics(texts, {}, "found", progress=False).table["value"].tolist() == [2]
