"""Nine sets of TRUE, end to end on small synthetic files: loading, scoring, thresholds, table."""

import csv
import json
import shutil

import nbformat
import numpy as np
import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from uetrust.cli.notebooks import run_notebook
from uetrust.core.settings import profile, root
from uetrust.data import consistency as b
from uetrust.data.bulletins import bulletins
from uetrust.evaluation.thresholds import TRUE_DOMAINS, printed_opitz_table
from uetrust.papers.threshold import live as ts
from uetrust.papers.threshold.released import FRANK_LAYOUTS, compare_presets, threshold_study
from uetrust.scoring import cache as quality
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.texts.providers import shipped_models

N = 4  # Texts per set


def write(path, name, text):
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    (path / name).write_text(text, encoding="utf-8", newline="")


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def pairs(k):  # Source, summary and label of set k: every other summary is that of another bulletin
    word = bulletins("test", 9 * N)[k * N : (k + 1) * N].reset_index(drop=True)
    return [
        (sentence, word["reference"][i if i % 2 else (i + 1) % N], i % 2)
        for i, sentence in enumerate(word["source"])
    ]


def stand_ins(folder):
    "Nine public files of N texts each, as they are published; all of Q2 is consistent"
    pair = {n: pairs(k) for k, n in enumerate(b.TRUE_FILES)}

    def rows(n):
        return [(i, *x) for i, x in enumerate(pair[n])]

    def votes(y):
        return [
            dict(worker_id=word, response=r)
            for word, r in enumerate(("yes", "yes", "no") if y else ("no", "no", "yes"))
        ]

    def table(name, head, body, **kw):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with open(folder / name, "w", newline="", encoding="utf-8") as f:
            csv.writer(f, **kw).writerows([head, *body])

    write(
        folder, "xsum/test.jsonl", lines(dict(id=str(i), document=source) for i, source, _, _ in rows("mnbm"))
    )
    table(
        "xsumfaith/hallucination_annotations_xsum_summaries.csv",
        ["bbcid", "system", "summary", "hallucination_type", "hallucinated_span", "worker_id"],
        [
            [i, "TranS2S", hypothesis, "NULL" if y else "extrinsic", "x", f"wid_{word}"]
            for i, _, hypothesis, y in rows("mnbm")
            for word in range(3)
        ],
    )
    write(
        folder,
        "cnndm/test.jsonl",
        lines(dict(id=f"{i:040d}", article=source, highlights="x") for i, source, _, _ in rows("summeval")),
    )
    write(
        folder,
        "summeval/model_annotations.aligned.jsonl",
        lines(
            dict(
                id=f"dm-test-{i:040d}",
                decoded=hypothesis,
                model_id="M1",
                expert_annotations=[dict(consistency=5 if y else 4)] * 3,
            )
            for i, _, hypothesis, y in rows("summeval")
        ),
    )
    write(
        folder,
        "frank/human_annotations_sentence.json",
        json.dumps(
            [
                dict(
                    hash=str(i),
                    model_name="m",
                    article=source,
                    summary=hypothesis,
                    split="valid",
                    summary_sentences_annotations=[
                        {f"annotator_{a}": ["NoE" if y else "EntE"] for a in range(3)}
                    ],
                )
                for i, source, hypothesis, y in rows("frank")
            ]
        ),
    )
    for word in ("xsum", "cnndm"):
        write(
            folder,
            f"qags/mturk_{word}.jsonl",
            lines(
                dict(article=source, summary_sentences=[dict(sentence=hypothesis, responses=votes(y))])
                for _, source, hypothesis, y in rows(f"qags_{word}")
            ),
        )
    write(
        folder,
        "dialfact/valid_split.jsonl",
        lines(
            dict(
                response=hypothesis,
                evidence_list=[["T", "l", source, "0"]],
                response_label="SUPPORTS" if y else "REFUTES",
                type_label="factual",
            )
            for _, source, hypothesis, y in rows("dialfact")
        ),
    )
    write(
        folder,
        "begin/dev_05_24_21.tsv",
        "\n".join(
            [
                "evidence\tresponse\tgold label",
                *(
                    f"{' '.join(source.split())}\t{hypothesis}\t{'entailment' if y else 'generic'}"
                    for _, source, hypothesis, y in rows("begin")
                ),
            ]
        )
        + "\n",
    )
    table(
        "q2/cross_annotation.csv",
        ["knowledge", "dodeca_response", "memnet_response", "dodeca_label", "memnet_label"],
        [
            [source, hypothesis, "Nobody in the whole town has any idea of this.", 0, 0]
            for _, source, hypothesis, _ in rows("q2")
        ],
    )
    write(
        folder,
        "paws/dev.tsv",
        "\n".join(
            [
                "id\tsentence1\tsentence2\tlabel",
                *(
                    f"{i}\t{' '.join(source.split())}\t{hypothesis}\t{y}"
                    for i, source, hypothesis, y in rows("paws")
                ),
            ]
        )
        + "\n",
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    stand_ins(folder)
    return folder


@pytest.fixture(scope="module")
def texts(home):
    return b.true_sets(home, complete=False)


@pytest.fixture(scope="module")
def models():
    return (
        shipped_models()
        | dict(anli=root() / "data" / "models" / "tiny-nli")
        | {ts.SECOND_BERTSCORE: root() / "data" / "models" / "tiny-encoder"}
    )


@pytest.fixture(scope="module")
def scored(texts, models, tmp_path_factory):
    return ts._score_true_sets(texts, models, tmp_path_factory.mktemp("scores"), progress=False)


@pytest.fixture(scope="module")
def scores(scored):
    return scored[0]


@pytest.fixture(scope="module")
def missing(scored):
    return scored[1]


ABSENT = ["QuestE", "Q2", "FactCC", "BLEURT"]
HERE = [n for n in ts.TRUE_METRICS if n not in ABSENT]


def test_the_stand_ins_are_nine_sets_with_the_labels_that_were_written(texts):
    assert texts.groupby("dataset", sort=False).size().to_dict() == {
        n: N * (2 if n == "q2" else 1) for n in b.TRUE_FILES
    }
    for k, n in enumerate(b.TRUE_FILES):
        if n != "q2":
            assert texts.loc[texts["dataset"] == n, ["hypothesis", "label"]].to_numpy().tolist() == [
                [hypothesis, y] for _, hypothesis, y in pairs(k)
            ]


def test_the_names_are_those_that_the_paper_prints():
    assert set(ts.TRUE_METRICS) == set(printed_opitz_table(1).columns) == set(b.TRUE_SCORES)


def test_scores_are_those_of_grading_one_set(texts, models, scores):
    one = texts[texts["dataset"] == "begin"].reset_index(drop=True)
    got = scores[scores["dataset"] == "begin"].set_index("id")
    for n, metric in (("BARTSc", "bart_score_exp"), ("SummaCC", "summac_conv")):
        want = compute_metrics(
            one[["id", "hypothesis", "source"]],
            {k: value for k, value in models.items() if k != ts.SECOND_BERTSCORE},
            [metric],
            progress=False,
        ).table.set_index("sample")["value"]
        np.testing.assert_allclose(got[n], want.loc[got.index], atol=1e-6)


def graded(monkeypatch, models=None):  # What `compute_metrics` has to compute from now on
    requested = []
    monkeypatch.setattr(
        quality,
        "compute_metrics",
        lambda t, m, names, *x, f=quality.compute_metrics, **kw: (
            requested.append((m.get("bertscore"), names))
            or f(t, m if models is None else models, names, *x, **kw)
        ),
    )
    return requested


def test_every_metric_is_requested_once_and_both_bertscores_have_their_own_model(
    texts, models, tmp_path, monkeypatch
):
    requested = graded(monkeypatch, {})
    ts._score_true_sets(
        texts, models | dict(bertscore="first") | {ts.SECOND_BERTSCORE: "second"}, tmp_path, progress=False
    )
    assert [metric for metric, n in requested if n == ["bertscore_precision_source"]] == ["first", "second"]
    assert sorted(x for _, n in requested for x in n) == sorted(ts.TRUE_METRICS.values())


def test_all_nine_sets_by_all_metrics_and_what_is_missing_is_named(scores, missing):
    assert (
        scores[HERE].notna().all().all()
        and scores[ABSENT].isna().all().all()
        and sorted(missing) == sorted(ABSENT)
    )
    assert (
        missing["BLEURT"] == "a model for 'bleurt'"
        and "spans" in missing["Q2"]
        and "'questeval'" in missing["QuestE"]
    )


def test_a_second_run_reads_and_a_changed_text_is_scored_again(texts, tmp_path, monkeypatch):
    few = texts[texts["dataset"].isin(["begin", "paws"])]
    first, missing = ts._score_true_sets(few, {}, tmp_path, progress=False)
    assert missing["DBERTSc"] == "a model for 'bertscore_deberta'" and missing["ANLI"] == "a model for 'anli'"
    requested = graded(monkeypatch)
    again, still = ts._score_true_sets(few, {}, tmp_path, progress=False)
    assert requested == [] and again.equals(first) and still == missing
    other, _ = ts._score_true_sets(few.assign(hypothesis="Rain."), {}, tmp_path, progress=False)
    assert not other.equals(first) and sorted(changed for _, n in requested for changed in n) == sorted(
        ts.TRUE_METRICS.values()
    )


def test_the_study_has_every_cell_and_notes_the_set_with_one_class(scores):
    items = ts._nine_items(scores)
    table = ts.with_notes(threshold_study({ts.NINE_SETS: items}, "xdomain", "logistic"))
    assert set(map(tuple, table[["dataset", "metric", "preset"]].to_numpy())) == {
        (dataset, metric, preset)
        for dataset in b.TRUE_FILES
        for metric in HERE
        for preset in ("principled", "opitz2024")
    }
    only = table["dataset"] == "q2"
    assert (
        table.loc[only, ["auc", "balanced_accuracy"]].isna().all(axis=None)
        and table.loc[only, "note"].eq(f"one class only: all {2 * N} texts are consistent").all()
    )
    assert (
        table.loc[~only, "auc"].notna().all()
        and table.loc[~only, "note"].eq("").all()
        and table["accuracy"].notna().all()
    )
    from sklearn.metrics import roc_auc_score

    for (dataset, metric), group in table[~only].groupby(["dataset", "metric"]):
        setting = scores[scores["dataset"] == dataset]
        np.testing.assert_allclose(group["auc"], roc_auc_score(setting["label"], setting[metric]), atol=1e-12)


def test_metrics_see_that_half_of_the_summaries_are_of_other_bulletins(scores):
    found = scores[scores["dataset"] != "q2"]
    assert (found.groupby("label")[["BLEU", "SummaCC", "BARTSc"]].mean().diff().loc[1] > 0).all()


def test_studying_any_items_is_comparing_them(scores):
    items = ts._nine_items(scores)
    got = threshold_study(dict(x=items, y=items), "indata", "stump", repeats=2, seed=3)
    want = compare_presets(items.data, items.domain, "indata", "stump", 2, 3)
    for layout in "xy":
        pd.testing.assert_frame_equal(
            got[got["layout"] == layout].drop(columns="layout").reset_index(drop=True), want
        )


def test_a_metric_from_a_file_is_no_longer_missing(scores, missing, tmp_path, monkeypatch):
    monkeypatch.setattr(ts, "true_sets", lambda complete: None)
    monkeypatch.setattr(ts, "_score_true_sets", lambda *given, **how: (scores, missing))
    scores[["dataset", "id"]].assign(Q2=0.5).to_csv(tmp_path / "own.csv", index=False)
    parts, without = ts.threshold_items("nine", {}, own=tmp_path / "own.csv")
    assert set(missing) - set(without) == {"Q2"} and "Q2" in parts[ts.NINE_SETS].data
    assert ts.threshold_items("nine", {})[1] == missing


def test_a_first_hour_scores_a_few_texts_of_every_set(scores, missing, monkeypatch):
    texts, given = scores[["dataset", "id", "label"]], []
    monkeypatch.setattr(ts, "true_sets", lambda complete: texts)
    monkeypatch.setattr(
        ts, "_score_true_sets", lambda found, *_, **__: (given.append(found), (scores, missing))[1]
    )
    for most in (2, 2, 0):
        ts.threshold_items("nine", {}, most=most)
    assert (given[0].groupby("dataset").size() == 2).all() and given[0].equals(given[1])
    assert given[2].equals(texts)


def test_an_auc_has_the_interval_of_its_number_of_texts():
    printed = printed_opitz_table(1).at["frank", "ANLI"]
    row = dict(mode="xdomain", preset="principled", dataset="frank", metric="ANLI", always_faithful=0.5)
    few, many = (
        ts.auc_against_print(pd.DataFrame([row | dict(auc=0.8, n_test=n)])).iloc[0] for n in (100, 10_000)
    )
    assert few["lo"] == pytest.approx(71.3, abs=0.1) and few["hi"] == pytest.approx(88.7, abs=0.1)
    assert few["printed"] == printed and few["hi"] - few["lo"] > 9 * (many["hi"] - many["lo"])


def test_scores_of_ones_own_fill_their_columns(scores, missing, tmp_path):
    own = scores[["dataset", "id"]].assign(Q2=np.arange(len(scores)) / 100, length=1)
    own.iloc[::-1].to_csv(tmp_path / "own.csv", index=False)
    got = ts._with_given_scores(scores, tmp_path / "own.csv")
    assert (
        list(got) == list(scores)
        and np.allclose(got["Q2"], own["Q2"])
        and got.drop(columns="Q2").equals(scores.drop(columns="Q2"))
        and missing["Q2"]
    )
    own[1:].to_csv(tmp_path / "own.csv", index=False)
    assert ts._nine_items(ts._with_given_scores(scores, tmp_path / "own.csv")).dropped == {
        n: int(n == "mnbm") for n in b.TRUE_FILES
    }


@pytest.mark.parametrize(
    "text,says",
    [
        ("id,Q2\na,1\n", "own.csv has no column ['dataset']; it has ['id', 'Q2']"),
        (
            "dataset,id,q2\nmnbm,a,1\n",
            "own.csv has no metric; its columns are ['dataset', 'id', 'q2'], metrics are called ['BLEU'",
        ),
        (
            "dataset,id,Q2\nmnbm,0 TranS2S,1\nmnbm,0 TranS2S,2\n",
            "own.csv, row 3: the text 'mnbm 0 TranS2S' has scores already",
        ),
        ("dataset,id,Q2\nmnbm,z,1\n", "own.csv has scores of mnbm z, which are not among the texts"),
    ],
)
def test_wrong_scores_of_ones_own(scores, tmp_path, text, says):
    (tmp_path / "own.csv").write_text(text)
    with pytest.raises(ValueError) as e:
        ts._with_given_scores(scores, tmp_path / "own.csv")
    assert says in str(e.value)


def test_a_set_without_a_metric_is_an_error_that_names_both(scores):
    given = scores.copy()
    given.loc[given["dataset"] == "paws", "ANLI"] = np.nan
    with pytest.raises(
        ValueError, match="no text of paws has all of.*; ANLI has none there. Score it there too"
    ):
        ts._nine_items(given)
    with pytest.raises(ValueError, match="no metric has a score"):
        ts._nine_items(given.drop(columns=HERE))


def test_released_scores_need_no_model(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for n in b.TRUE_FILES.values():
        write(
            tmp_path,
            f"true_scores/{n}_true_scores.csv",
            pd.DataFrame(rng.random((20, 11)), columns=b.TRUE_SCORES.values())
            .assign(label=[0, 1] * 10)
            .to_csv(),
        )
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path))
    parts, lacking = ts.threshold_items("released", {})
    assert (
        lacking == {}
        and list(parts) == [ts.NINE_SETS]
        and len(parts[ts.NINE_SETS].data) == 180
        and parts[ts.NINE_SETS].domain == TRUE_DOMAINS
    )
    near = ts.auc_against_print(threshold_study(parts, "xdomain", "stump"))
    assert (
        len(near) == 99
        and near["printed"].notna().all()
        and near.groupby("metric", sort=False)["printed"]
        .mean()
        .round(1)
        .equals(
            printed_opitz_table(1)
            .drop("mean")
            .mean()
            .round(1)
            .loc[near["metric"].unique()]
            .rename_axis("metric")
            .rename("printed")
        )
    )


def test_what_to_judge_on_is_one_of_three():
    with pytest.raises(ValueError, match="sets is one of .'frank', 'nine', 'released'., got 'true'"):
        ts.threshold_items("true", {})


def test_frank_is_judged_on_as_before():
    from uetrust.core.settings import mirror

    if mirror() is None:
        pytest.skip("UETRUST_MIRROR is not at hand")
    parts, lacking = ts.threshold_items("frank", {})
    assert (
        list(parts) == list(FRANK_LAYOUTS)
        and lacking == {}
        and len(parts["domain"].data) == len(parts["system"].data) == 2159
    )


# The page
@pytest.fixture
def project(tmp_path, monkeypatch):
    "The project, with a profile that differs from [profile.threshold] in the names of models only"
    shutil.copytree(ROOT / "nbs" / "experiments", tmp_path / "nbs" / "experiments")
    (tmp_path / "data").symlink_to(ROOT / "data")
    small = "bertscore=data/models/tiny-encoder bertscore_deberta=data/models/tiny-encoder"
    (tmp_path / "settings.ini").write_text(
        (ROOT / "settings.ini").read_text() + f"\n[profile.tiny]\nmetric_models = {small}\n"
    )
    monkeypatch.setattr(
        "uetrust.cli.notebooks.profile", lambda name, f=profile: f("threshold")
    )  # settings are read once per process
    return tmp_path


def test_the_page_runs_from_public_files_to_the_table(project, home, texts, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(home))
    rng = np.random.default_rng(1)
    texts[["dataset", "id"]].assign(
        **{n: rng.random(len(texts)) for n in ts.TRUE_METRICS if n not in ("BLEU", "RBERTSc", "DBERTSc")}
    ).to_csv(project / "own.csv", index=False)
    out = run_notebook(
        project / "nbs/experiments/threshold/01_threshold.ipynb",
        project / "out.ipynb",
        dict(
            profile="tiny", mode="xdomain", classifier="stump", own=str(project / "own.csv"), complete=False
        ),
    )
    table = pd.read_csv(
        project / "runs" / "tiny" / "tables" / "threshold_xdomain_stump.csv", keep_default_na=True
    )
    assert (
        table.groupby("preset").size().to_dict() == dict(principled=99, opitz2024=99)
        and set(table["metric"]) == set(ts.TRUE_METRICS)
        and set(table["dataset"]) == set(b.TRUE_FILES)
        and set(table["layout"]) == {ts.NINE_SETS}
    )
    assert (
        table.loc[table["dataset"] == "q2", "note"].str.startswith("one class only").all()
        and table.loc[table["dataset"] != "q2", "note"].isna().all()
    )
    assert (
        len(list((project / "runs" / "tiny" / "scores").glob("*.parquet"))) == 2
        and (project / "runs" / "tiny" / "figures" / "threshold_xdomain_stump.png").exists()
    )
    assert len(pd.read_csv(project / "runs" / "tiny" / "tables" / "threshold_beside_stump.csv")) == 99
    shown = " ".join(
        str(output.get("data", {}).get("text/markdown", ""))
        for cell in nbformat.read(out, 4).cells
        for output in cell.get("outputs", [])
    )
    assert f"All 11 metrics have a score for {10 * N} of {10 * N} texts" in shown and "FRANK" not in shown


def test_without_the_files_the_page_ends_early_and_says_which(project, tmp_path, monkeypatch):
    for variable in ("UETRUST_CACHE", "UETRUST_MIRROR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    out = run_notebook(
        project / "nbs/experiments/threshold/01_threshold.ipynb",
        project / "out.ipynb",
        dict(profile="threshold"),
    )
    assert (
        "data not at hand: xsumfaith/hallucination_annotations_xsum_summaries.csv"
        in (project / "out.missing.txt").read_text()
        and out.exists()
    )
