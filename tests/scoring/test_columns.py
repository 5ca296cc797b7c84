"""Every column of a user's table has a use or a reason, and the command begins with both."""

import html
import json

import numpy as np
import pandas as pd
import pytest

from uetrust.cli.cli import main
from uetrust.evaluation.prr import prr
from uetrust.scoring.columns import used_columns

N = 60


def show(**more):
    "A table as people have it: the scores of several tools, judgements of two people, texts"
    rng = np.random.default_rng(0)
    good = rng.normal(size=N)

    def share(noise):
        return 1 / (1 + np.exp(-good - noise * rng.normal(size=N)))

    columns = dict(rougeL=share(1), bertscore_f1=share(2), faithfulness=share(1))
    columns |= dict(annotator1=np.round(3 + good), annotator2=np.round(3 + good + rng.normal(size=N)))
    columns |= dict(avg_neg_logprob=np.exp(-good), semantic_entropy=np.exp(-good + rng.normal(size=N)))
    columns |= dict(p_true=share(1), summary_len=rng.integers(10, 60, N))
    return pd.DataFrame(columns | more)


def call(tmp_path, capsys, df, *words, command="audit"):
    file = tmp_path / "mine.csv"
    df.to_csv(file, index=False)
    code = main([command, str(file), *words])
    return code, *capsys.readouterr()


def uses(tmp_path, capsys, df, *words):
    code, out, err = call(tmp_path, capsys, df, *words, "--json")
    assert code == 0, err
    return {row["column"]: (row["use"], row["note"]) for row in json.loads(out)["columns"]}


def test_nothing_is_ignored_without_a_line(tmp_path, capsys):
    df = show(summary=[f"text {i}" for i in range(N)], mystery=np.arange(N), empty=np.nan, same=3)
    found = uses(tmp_path, capsys, df)
    assert list(found) == list(df)
    assert {name: use for name, (use, _) in found.items()} == dict(
        **dict.fromkeys(("rougeL", "bertscore_f1", "faithfulness"), "quality metric"),
        **dict.fromkeys(("annotator1", "annotator2"), "truth"),
        **dict.fromkeys(("avg_neg_logprob", "semantic_entropy"), "uncertainty"),
        **dict(p_true="confidence", summary_len="baseline"),
        **dict.fromkeys(("summary", "mystery", "empty", "same"), "not used"),
    )
    reasons = dict(summary="holds no numbers", mystery="unknown name", empty="every value is missing")
    assert {name: found[name][1] for name in reasons} == reasons and found["same"][1] == "is 3 for every text"
    code, out, _ = call(tmp_path, capsys, df, "--html", str(tmp_path / "a.html"))
    first = out.split("\n\n")[1]  # Below the verdict
    assert code == 0 and first.startswith(
        "Columns used:\n  truth           annotator1, annotator2 (annotator_mean"
    )
    page = (tmp_path / "a.html").read_text()
    for name in df:
        assert name in first and f">{name}</td>" in page
    for option in ("--truth", "--quality", "--uncertainty", "--confidence", "--length", "--document"):
        assert option in first and option in page
    assert "mystery" in page.partition("<dt>Not used</dt>")[2] and "turned round" in html.unescape(page)


def test_where_every_column_is_used_no_other_is_listed(tmp_path, capsys):
    code, out, _ = call(tmp_path, capsys, show())
    first = out.split("\n\n")[1].splitlines()
    assert code == 0 and "Columns not used:" not in first and not any("nan" in line for line in first)
    assert len(first) == 7 and all(any(name in line for line in first) for name in show())


def test_the_mean_of_the_annotators_is_the_truth(tmp_path, capsys):
    df = show()
    df.loc[:2, "annotator2"] = np.nan
    found = uses(tmp_path, capsys, df)
    assert found["annotator1"] == ("truth", f"annotator_mean is their mean; 3 of {N} texts have fewer")
    rows = json.loads(call(tmp_path, capsys, df, "--json")[1])["prr"]
    by = {(row["metric"], row["method"]): row["value"] for row in rows}
    truth = df[["annotator1", "annotator2"]].mean(axis=1)
    assert by["annotator_mean", "semantic_entropy"] == pytest.approx(prr(truth, df["semantic_entropy"]).value)
    assert by["annotator_mean", "p_true"] == pytest.approx(prr(truth, -df["p_true"]).value)
    named = json.loads(call(tmp_path, capsys, df, "--truth", "annotator_mean", "--json")[1])
    assert {row["metric"] for row in named["prr"]} == {"annotator_mean"}
    one = uses(tmp_path, capsys, df.drop(columns="annotator2"))
    assert one["annotator1"] == ("truth", "")


def test_where_several_columns_could_be_the_truth_it_asks(tmp_path, capsys):
    df = show(correct=np.arange(N) % 2)
    code, out, err = call(tmp_path, capsys, df)
    assert code == 2 and not out and len(err.splitlines()) == 1
    assert (
        "2 columns could be the truth" in err and "annotator_mean (the mean of annotator1, annotator2)" in err
    )
    assert err.rstrip().endswith("Name one, for example --truth annotator_mean")
    for name in ("annotator_mean", "correct"):
        found = uses(tmp_path, capsys, df, "--truth", name)
        parts = ["annotator1", "annotator2"] if name == "annotator_mean" else ["correct"]
        assert [column for column, (use, _) in found.items() if use == "truth"] == parts
        assert found["rougeL"] == ("not used", "not named") and found["p_true"][0] == "confidence"
    two = df.drop(columns=["annotator1", "annotator2", "correct"]).assign(
        human_fluency=1.5, human_relevance=2
    )
    two[["human_fluency", "human_relevance"]] += df[["annotator1", "annotator2"]].to_numpy()
    assert "human_fluency, human_relevance" in call(tmp_path, capsys, two)[2]


def test_only_what_is_named_is_used(tmp_path, capsys):
    ask = ["--quality", "rougeL", "--uncertainty", "semantic_entropy"]
    found = uses(tmp_path, capsys, show(document=np.arange(N) // 2), *ask)
    assert {name for name, (use, _) in found.items() if use != "not used"} == {"rougeL", "semantic_entropy"}
    assert {note for use, note in found.values() if use == "not used"} == {"not named"}


def test_a_baseline_that_is_named_as_an_uncertainty_is_called_a_baseline(tmp_path, capsys):
    found = uses(tmp_path, capsys, show(), "--uncertainty", "semantic_entropy", "summary_len")
    called = {name: found[name][0] for name in ("semantic_entropy", "summary_len", "avg_neg_logprob")}
    assert called == dict(semantic_entropy="uncertainty", summary_len="baseline", avg_neg_logprob="not used")
    unknown = uses(tmp_path, capsys, show(mystery=np.arange(N)), "--uncertainty", "mystery")
    assert unknown["mystery"][0] == "uncertainty"


def test_documents_are_found_where_texts_share_them(tmp_path, capsys):
    found = uses(tmp_path, capsys, show(doc_id=np.arange(N) // 2, article=np.arange(N)))
    assert found["doc_id"] == ("document", "") and found["article"] == (
        "not used",
        f"{N} documents for {N} texts group nothing",
    )
    both = uses(tmp_path, capsys, show(doc_id=np.arange(N) // 2, cluster=np.arange(N) // 3))
    assert both["cluster"] == ("not used", "doc_id is the document")


@pytest.mark.parametrize(
    "name, use",
    {
        "ROUGE-L": "quality metric",
        "rouge_l_fmeasure": "quality metric",
        "rougeLsum": "quality metric",
        "BERTScore-F1": "quality metric",
        "Human Rating": "truth",
        "IS_CORRECT": "truth",
        "turker.3": "truth",
        "PPL": "uncertainty",
        "Mean-Token-Entropy": "uncertainty",
        "MaximumSequenceProbability": "uncertainty",
        "EigValLaplacian_NLI_score_entail": "uncertainty",
        "Semantic Entropy": "uncertainty",
        "verbalized_confidence": "confidence",
        "noncontradiction": "confidence",
        "N_Tokens": "baseline",
        "doc.length": "baseline",
    }.items(),
)
def test_spellings_of_other_tools_are_known(tmp_path, capsys, name, use):
    df = show()[["faithfulness", "semantic_entropy"]].assign(**{name: show()["avg_neg_logprob"]})
    assert uses(tmp_path, capsys, df)[name][0] == use


def test_a_name_of_uqlm_is_a_confidence_beside_others_of_it():
    metric, beside = show()[["rougeL"]].rename(columns=dict(rougeL="bert_score")), show()[["p_true"]]
    alone = used_columns(metric.join(beside))
    both = used_columns(metric.join(beside.rename(columns=dict(p_true="noncontradiction"))))
    assert alone.quality == ["bert_score"] and both.confidence == ["bert_score", "noncontradiction"]


def test_an_error_rate_is_not_taken_for_a_quality(tmp_path, capsys):
    found = uses(tmp_path, capsys, show(ter=np.arange(N)))
    assert found["ter"] == ("not used", "smaller is better: turn it round first")


def test_prr_says_on_stderr_what_it_found_by_name(tmp_path, capsys):
    df = show(mystery=np.arange(N))
    code, out, err = call(tmp_path, capsys, df, "--quality", "rougeL", "--csv", command="prr")
    assert code == 0 and {line.split(",")[0] for line in out.splitlines()[1:]} == {
        "avg_neg_logprob",
        "semantic_entropy",
        "p_true",
        "summary_len",
    }
    assert "turned round" in err and "unknown name  mystery" in err and all(name in err for name in df)
    assert "--truth" not in err and "--confidence" in err
    named = call(tmp_path, capsys, df, "--quality", "rougeL", "--uncertainty", "p_true", command="prr")
    assert named[0] == 0 and named[2] == ""


def test_an_id_of_several_rows_is_the_document(tmp_path, capsys):
    "Three raters of each text: rows of one id stay together without an option."
    df = show(id=[f"t{i // 3}" for i in range(N)])
    found = uses(tmp_path, capsys, df)
    assert found["id"] == ("document", f"{N // 3} texts have {N} rows")
    both = uses(tmp_path, capsys, df.assign(doc_id=np.arange(N) // 6))
    assert both["doc_id"][0] == "document" and both["id"] == ("not used", "doc_id is the document")
    assert uses(tmp_path, capsys, show(id=[f"t{i}" for i in range(N)]))["id"] == (
        "not used",
        "names the texts",
    )


def test_the_words_of_the_columns_are_aligned_on_the_left(tmp_path, capsys):
    call(tmp_path, capsys, show(), "--html", str(tmp_path / "a.html"))
    page = (tmp_path / "a.html").read_text()
    assert ".audit td.t,.audit th.t{text-align:left}" in page and "<td class=t>rougeL</td>" in page
