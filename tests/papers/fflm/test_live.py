"""FFLM as a run: the recorded evaluation of the original, tables by hand and by scipy, the whole profile."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from tests.helpers import endpoints as te
from uetrust.cli.notebooks import run_notebook
from uetrust.core import settings
from uetrust.core.settings import mirror, profile, root
from uetrust.data import consistency as b
from uetrust.data.bulletins import bulletins
from uetrust.data.loaders import BadData
from uetrust.generation.serve import open_endpoint
from uetrust.models import load as loading
from uetrust.nlg.fflm import mix_components, tune_fflm
from uetrust.papers.fflm import live as st
from uetrust.papers.fflm.live import FFLM_PROMPTS, _parse_answer, prompt_questions, requests_to
from uetrust.papers.ledger.cells import printed_numbers
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.judges import request_completions
from uetrust.statistics.texts.providers import shipped_models

TINY = "data/models/tiny-llama"
NAMES = dict(
    s2s="s2s_tok_list",
    lm="lm_tok_list",
    prefix="prefix_tok_list",
    s2s_doc="s2s_tok_list_1",
    lm_doc="lm_tok_list_1",
)


def rows(task, n, **columns):
    return pd.DataFrame(
        dict(
            task=task,
            set="X",
            split="test",
            id=[str(i) for i in range(n)],
            doc=[str(i) for i in range(n)],
            system="s",
            source="S",
            hypothesis="H",
            label=np.nan,
            human=np.nan,
            group="",
        )
        | columns
    )


@pytest.fixture(scope="module")
def drawn():
    "Validation and test texts with labels, three columns, some missing"
    rng = np.random.default_rng(4)
    t = rows("detection", 400, split=["val", "test"] * 200, label=(rng.random(400) < 0.4).astype(float))
    x = pd.DataFrame(rng.normal(size=(400, 3)) + t[["label"]].to_numpy() * [1, 0.5, 0], columns=list("abc"))
    x.iloc[[0, 1, 5], 1] = np.nan
    return t, x


# The recorded evaluation of the original
def test_detection_and_rating_are_those_of_the_original(oracle):
    rec = oracle("seed_systems/fflm_evaluation.json")
    p = pd.DataFrame(
        [st._probability_changes({k: np.atleast_1d(r[n]) for k, n in NAMES.items()}) for r in rec["input"]]
    )
    t = rows(
        "detection",
        len(p),
        split=[r["cut"] for r in rec["input"]],
        label=[float(r["label"]) for r in rec["input"]],
    )
    got = st.detection_results(t, {"FFLM": st.columns_of("FFLM", p)}).iloc[0]
    a, c = rec["chosen"]
    assert (
        got["value"] == pytest.approx(100 * rec["test_balanced_accuracy"], abs=1e-9)
        and got["threshold"] == pytest.approx(rec["best_threshold"], abs=1e-9)
        and got["weights"] == f"{a:.1f} {c:.1f} {1 - a - c:.1f}"
    )
    r = rows(
        "rating",
        len(p),
        human=[x["score"] for x in rec["rating_extra"]],
        system=[x["model_id"] for x in rec["rating_extra"]],
    )
    both = st.rating_results(r, st.mixed_rows(p)[["FFLM"]]).set_index("column")["value"]
    assert both.to_dict() == pytest.approx({k: 100 * v for k, v in rec["rating"].items()}, abs=1e-7)


# Detection
def test_one_column_gets_the_best_threshold_and_auc_needs_none(drawn):
    t, x = drawn
    got = st.detection_results(t, dict(a=x[["a"]])).iloc[0]
    val, y, s = t["split"] == "val", t["label"] == 1, x["a"]
    cuts = np.percentile(s[val], np.arange(0, 100, 0.2))
    best = max(balanced_accuracy_score(y[val], s[val] > c) for c in cuts)
    assert balanced_accuracy_score(y[val], s[val] > got["threshold"]) == pytest.approx(best) and got[
        "threshold"
    ] == max(c for c in cuts if balanced_accuracy_score(y[val], s[val] > c) > best - 1e-12)
    assert got["value"] == pytest.approx(
        100 * balanced_accuracy_score(y[~val], s[~val] > got["threshold"])
    ) and got["auc"] == pytest.approx(100 * roc_auc_score(y[~val], s[~val]))
    assert got["lo"] < got["value"] < got["hi"] and (got["n"], got["missing"], got["weights"]) == (
        200,
        0,
        "1.0",
    )


def test_two_columns_have_one_weight_and_three_are_tuned_as_in_the_original(drawn):
    t, x = drawn
    val, y = (t["split"] == "val") & x.notna().all(axis=1), t["label"] == 1
    two = st.detection_results(t, dict(p=x[["a", "b"]])).iloc[0]

    def best(w):
        s, k = (x["a"] * w + x["b"] * (1 - w))[val].to_numpy(), y[val].to_numpy()
        return max(
            (np.mean(s[k] > c) + np.mean(s[~k] <= c)) / 2 for c in np.percentile(s, np.arange(0, 100, 0.2))
        )

    w = float(two["weights"].split()[0])
    assert best(w) == pytest.approx(max(best(k / 10) for k in range(11))) and (two["n"], two["missing"]) == (
        198,
        3,
    )
    three, want = st.detection_results(t, dict(f=x)).iloc[0], tune_fflm(x[val].to_numpy(), y[val])
    test = (t["split"] == "test") & x.notna().all(axis=1)
    assert three["weights"].split()[0] == f"{want.alpha:.1f}" and three["threshold"] == want.threshold
    assert three["value"] == pytest.approx(
        100
        * balanced_accuracy_score(
            y[test], mix_components(x[test].to_numpy(), want.alpha, want.beta) > want.threshold
        )
    )


def test_test_labels_choose_nothing(drawn):
    t, x = drawn
    other = t.assign(label=t["label"].where(t["split"] == "val", 1 - t["label"]))
    a, c = (st.detection_results(d, dict(f=x, a=x[["a"]])) for d in (t, other))
    assert (
        a[["weights", "threshold"]].equals(c[["weights", "threshold"]])
        and np.allclose(a["value"] + c["value"], 100)
        and not np.allclose(a["value"], 50)
    )


def test_a_split_with_one_class_has_no_balanced_accuracy(drawn):
    t, x = drawn
    got = st.detection_results(
        t.assign(label=t["label"].where(t["split"] == "val", 1.0)), dict(a=x[["a"]])
    ).iloc[0]
    assert np.isnan(got["value"]) and np.isnan(got["auc"]) and got["n"] == 200


def test_the_weights_of_two_columns_sum_to_one_and_give_the_printed_accuracy(drawn):
    t, x = drawn
    found = st.detection_results(t, dict(p=x[["a", "b"]])).iloc[0]
    w = np.array(found["weights"].split(), float)
    test = ((t["split"] == "test") & x["b"].notna()).to_numpy()
    mixed = x.loc[test, ["a", "b"]].to_numpy() @ w
    assert w.sum() == pytest.approx(1) and (w >= 0).all()
    assert found["value"] == pytest.approx(
        100 * balanced_accuracy_score(t.loc[test, "label"] == 1, mixed > found["threshold"])
    )


@pytest.mark.parametrize("above,below", [(6, 9), (8, 18), (0, 0)])
def test_the_interval_is_that_of_two_shares_with_a_success_and_a_failure_more_within_0_and_100(above, below):
    "Of 8 faithful test texts some lie above the threshold, of 18 others some below it."
    score = [1.0, 0.0, *[2.0] * above, *[-1.0] * (8 - above), *[-1.0] * below, *[2.0] * (18 - below)]
    t = rows("detection", 28, split=["val"] * 2 + ["test"] * 26, label=[1.0, 0.0] + [1.0] * 8 + [0.0] * 18)
    found = st.detection_results(t, dict(a=pd.DataFrame(dict(a=score)))).iloc[0]
    value, shares = (above / 8 + below / 18) / 2, [(above + 1) / 10, (below + 1) / 20]
    variance = sum(p * (1 - p) / n for p, n in zip(shares, (8, 18))) / 4
    low, high = stats.norm.interval(0.95, value, np.sqrt(variance))
    assert found["value"] == pytest.approx(100 * value)
    assert found["lo"] == pytest.approx(100 * max(low, 0), abs=0.01)
    assert found["hi"] == pytest.approx(100 * min(high, 1), abs=0.01)


# Rating
def test_correlations_are_scipys_over_the_scored():
    rng = np.random.default_rng(1)
    r = rows(
        "rating",
        60,
        human=rng.integers(1, 6, 60).astype(float),
        system=[f"s{i % 6}" for i in range(60)],
        doc=[str(i // 6) for i in range(60)],
    )
    s = pd.DataFrame(dict(a=rng.normal(size=60) + r["human"]))
    s.loc[[3, 9], "a"] = np.nan
    got, ok = st.rating_results(r, s).set_index("column"), s["a"].notna()
    for k, f in dict(pearson=stats.pearsonr, spearman=stats.spearmanr, kendall=stats.kendalltau).items():
        assert got.at[k, "value"] == pytest.approx(100 * f(s.loc[ok, "a"], r.loc[ok, "human"]).statistic)
    assert (
        got["missing"].eq(2).all()
        and got["n"].eq(58).all()
        and got.at["spearman", "lo"] < got.at["spearman", "value"] < got.at["spearman", "hi"]
    )
    m = r.assign(a=s["a"])[ok].groupby("system")[["a", "human"]].mean()
    of = st.rating_results(r, s, "system").set_index("column")
    assert (
        of.at["pearson", "value"] == pytest.approx(100 * stats.pearsonr(m["a"], m["human"]).statistic)
        and set(of["group"]) == {"X system-level"}
        and of["n"].eq(6).all()
    )
    assert st.rating_results(r, s * np.nan)["value"].isna().all() and list(
        st.rating_results(r.iloc[:0], s)
    ) == list(st.rating_results(r, s)), "no text, no row, the same columns"


def test_changes_are_correlated_with_each_other():
    rng = np.random.default_rng(2)
    s = pd.DataFrame(rng.normal(size=(30, 3)), columns=["dY_prior", "dX_prior", "dY_cond"])
    got = st.change_correlations(rows("rating", 30), s).set_index(["row", "column"])["value"]
    assert len(got) == 9 and got["dX_prior + dY_cond", "kendall"] == pytest.approx(
        100 * stats.kendalltau(s["dX_prior"], s["dY_cond"]).statistic
    )


# Types of errors
def test_every_draw_has_all_faithful_texts_and_so_many_errors_of_one_type(monkeypatch):
    rng, calls = np.random.default_rng(3), []
    r = rows(
        "rating",
        120,
        set="FRANKXSUM",
        human=[1.0] * 40 + [0.5, 0.0] * 40,
        group=[""] * 40 + ["Sem"] * 60 + ["Disc"] * 4 + [""] * 16,
    )
    s = pd.DataFrame(dict(FFLM=rng.normal(size=120) + r["human"]))
    monkeypatch.setattr(st, "spearman", lambda x, y, f=st.spearman: calls.append((x, y)) or f(x, y))
    got = st.error_type_correlations(r, s, ("FFLM",)).set_index("type")
    graded = [(x.index, y) for x, y in calls if set(y) - {0.0, 1.0}]
    assert (
        got["drawn"].to_dict() == dict(Sem=10, Disc=4)
        and got["cases"].to_dict() == dict(Sem=60, Disc=4)
        and got["faithful"].eq(40).all()
        and len(calls) == 40
    )
    for i, _ in graded:
        assert (
            set(range(40)) <= set(i)
            and len(set(i)) == len(i)
            and r.loc[i, "group"].isin(["", "Sem", "Disc"]).all()
            and r.loc[i[r.loc[i, "human"] < 1], "group"].nunique() == 1
        )
    assert len({tuple(i) for i, _ in graded if len(i) == 50}) > 5, "samples differ"
    few = r.index[(r["human"] == 1) | (r["group"] == "Disc")]
    assert (
        got.at["Disc", "value"]
        == pytest.approx(100 * stats.spearmanr(s.loc[few, "FFLM"], r.loc[few, "human"]).statistic)
        and got.at["Disc", "lo"] == got.at["Disc", "hi"]
    )
    assert got.at["Disc", "binary"] == pytest.approx(
        100 * stats.spearmanr(s.loc[few, "FFLM"], r.loc[few, "human"] == 1).statistic
    )
    assert st.error_type_correlations(r, s, ("FFLM",)).equals(
        got.reset_index()[st.error_type_correlations(r, s, ("FFLM",)).columns]
    ) and not st.error_type_correlations(r, s, ("FFLM",), seed=1)["value"].equals(
        got["value"].reset_index(drop=True)
    )
    assert st.error_type_correlations(r.assign(group=""), s, ("FFLM",)).empty


def test_franks_groups_have_the_sizes_of_the_specification():
    if mirror() is None:
        pytest.skip("UETRUST_MIRROR is not at hand")
    d = st.frank()
    g = st._frank_groups().groupby(d["dataset"].to_numpy()).value_counts()
    assert {(s, k): int(g[s, k]) for s in ("cnndm", "bbc") for k in st.ERROR_GROUPS} == {
        ("cnndm", "Sem"): 155,
        ("cnndm", "Disc"): 74,
        ("cnndm", "CVer"): 67,
        ("bbc", "Sem"): 328,
        ("bbc", "Disc"): 16,
        ("bbc", "CVer"): 423,
    }


# What is read
@pytest.fixture(scope="module")
def small():
    return pd.concat(
        [st.fflm_texts(["bulletin:4"], "detection"), st.fflm_texts(["bulletin:4"], "rating")],
        ignore_index=True,
    )


def test_rows_are_the_scores_of_the_registry(small, tmp_path):
    pairs = st.unique_pairs(small)
    p = st.cached_changes(tmp_path, pairs, TINY, size=5)
    got = st.mixed_rows(p).set_axis(pairs["id"])
    t = (
        compute_metrics(
            pairs[["id", "hypothesis", "source"]],
            dict(fflm=settings.resolve_checkpoint(TINY)),
            progress=False,
        )
        .table.pivot(index="sample", columns="name", values="value")
        .loc[pairs["id"]]
    )
    for row, name in {
        "FFLM": "fflm",
        "dY_prior": "fflm_y_prior",
        "dX_prior": "fflm_x_prior",
        "dY_cond": "fflm_y_cond",
        "w/o w": "fflm_wo_w",
        "w/o log": "fflm_wo_log",
        "w/o w and log": "fflm_wo_w_and_log",
        "same": "fflm_equal",
        "w as printed": "fflm_paper",
        "CoPLLaMa": "cop_causal",
        "HaRiMLLaMa": "harim_causal",
    }.items():
        np.testing.assert_allclose(got[row], t[name], atol=2e-5, err_msg=row)
    assert p["note"].eq("").all()


def test_a_killed_reading_goes_on(small, tmp_path, monkeypatch):
    pairs = st.unique_pairs(small)
    first = st.cached_changes(tmp_path, pairs, TINY, size=5)
    files = sorted(tmp_path.glob("*.parquet"))
    assert len(files) == -(-len(pairs) // 5)
    monkeypatch.setattr(loading, "load_model", lambda *a, **kw: pytest.fail("nothing is left to read"))
    assert st.cached_changes(tmp_path, pairs, TINY, size=5).equals(first)
    files[1].unlink()
    monkeypatch.undo()
    times = {f: f.stat().st_mtime_ns for f in files if f.exists()}
    np.testing.assert_allclose(
        st.cached_changes(tmp_path, pairs, TINY, size=5)[list(first)[:-1]], first[list(first)[:-1]], atol=1e-6
    )
    assert files[1].exists() and {f: f.stat().st_mtime_ns for f in times} == times
    other = st.cached_changes(tmp_path, pairs.assign(hypothesis="Rain."), TINY, size=5)
    assert not np.allclose(other["fflm y_prior"], first["fflm y_prior"])


def test_a_pair_that_stands_in_two_sets_is_read_once(small):
    pairs = st.unique_pairs(small)
    assert (
        not pairs.duplicated(["source", "hypothesis"]).any()
        and pairs["id"].is_unique
        and len(pairs) < len(small)
    )
    back = st.values_by_text(pairs[["source", "hypothesis"]], pairs, small)
    assert back.index.equals(small.index) and (back == small[["source", "hypothesis"]]).all(axis=None)


def test_a_text_that_does_not_fit_misses_only_the_values_that_need_it(tmp_path):
    p = st.unique_pairs(
        rows(
            "rating", 2, source=["A short source.", "word " * 900], hypothesis=["Short.", "A summary " * 200]
        )
    )
    got = st.cached_changes(tmp_path, p, TINY)
    assert got.iloc[0].drop("note").notna().all() and got["note"][0] == ""
    cut = got.iloc[1]
    assert cut.drop("note").isna().any() and "window" in cut["note"]


def test_other_metrics_are_graded_and_what_is_missing_is_named(small, tmp_path):
    pairs = st.unique_pairs(small).iloc[:4]
    got, missing = st.baseline_scores(
        tmp_path, pairs, {k: v for k, v in shipped_models().items() if k == "bart"}, progress=False
    )
    want = (
        compute_metrics(
            pairs[["id", "hypothesis", "source"]],
            dict(bart=shipped_models()["bart"]),
            ["bart_score", "cop", "harim"],
            progress=False,
        )
        .table.pivot(index="sample", columns="name", values="value")
        .loc[pairs["id"]]
    )
    for row, name in dict(BARTScore="bart_score", CoPBART="cop", HaRiMBART="harim").items():
        np.testing.assert_allclose(got[row], want[name], atol=2e-5)
    assert (
        got[["Rouge-2", "Meteor", "BLEU"]].notna().all(axis=None)
        and missing["BERTScore"] == "a model for 'bertscore'"
        and not {"BARTScore", "Rouge-2"} & set(missing)
    )


# Prompts
@pytest.mark.parametrize(
    "reply,scale,want",
    [
        (" yes.", (), 1),
        ("No, yes", (), 0),
        ("The answer is YES", (), 1),
        ("nothing", (), np.nan),
        ("\n no", (), 0),
        ("maybe\nno", (), np.nan),
        ("5", (1, 5), 5),
        ("6", (1, 5), np.nan),
        ("10", (1, 10), 10),
        (" 4.5/5", (1, 5), 4.5),
        ("B2", (1, 5), np.nan),
        (None, (1, 5), np.nan),
        ("", (), np.nan),
    ],
)
def test_replies_by_simple_rules(reply, scale, want):
    assert _parse_answer(reply, scale) == pytest.approx(want, nan_ok=True)


def test_prompts_show_source_and_summary_once_and_no_gap_is_left():
    t = rows("detection", 1, source="{hypothesis} and \\1", hypothesis="{source}!")
    for task in ("detection", "rating"):
        for q in prompt_questions(t.assign(task=task))["question"]:
            assert q.count("{hypothesis} and \\1") == 1 and q.count("{source}!") == 1
    assert (
        len(prompt_questions(pd.concat([t, t.assign(split="val")], ignore_index=True))) == 3
        and [p.task for p in FFLM_PROMPTS] == ["detection"] * 3 + ["rating"] * 2
    )


def test_what_cannot_be_read_or_was_refused_counts_as_unfaithful():
    t = pd.concat(
        [rows("detection", 6, label=[1.0, 1, 1, 0, 0, 0]), rows("rating", 6, human=[1.0, 2, 3, 4, 5, 5])],
        ignore_index=True,
    )
    q = prompt_questions(t)
    completions = {
        0: ["yes", "perhaps", None, "no", "yes", "who knows"],
        3: ["1", "none", "3", "4", "5", None],
    }
    replies = pd.DataFrame(
        dict(reply=[completions.get(k, ["x"] * 6)[i % 6] for i, k in zip(q["text"], q["prompt"])])
    )
    replies["why"] = [
        "HTTP 413" if r is None else ""
        for r in replies["reply"].astype(object).where(replies["reply"].notna(), None)
    ]
    a = st.prompt_results(t, q, replies, "M")
    one = a[(a["task"] == "detection") & (a["row"] == "Chen et al. (2023)")].iloc[0]
    assert one["value"] == pytest.approx(
        100 * balanced_accuracy_score([1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 1, 0])
    ) and (one["n"], one["unread"], one["refused"], one["model"]) == (6, 2, 1, "M")
    g = a[(a["task"] == "rating") & (a["row"] == "Gao et al. (2023)")].set_index("column")
    assert g.at["spearman", "value"] == pytest.approx(
        100 * stats.spearmanr([1, 1, 3, 4, 5, 1], [1, 2, 3, 4, 5, 5]).statistic
    ) and (g.at["spearman", "unread"], g.at["spearman", "refused"]) == (1, 1)
    best = st._best_prompt(a)
    assert (
        set(best.loc[best["task"] == "detection", "row"]) == {"Chen et al. (2023)"}
        and set(best.loc[best["task"] == "rating", "row"]) == {"Gao et al. (2023)"}
        and len(best) == 4
    )


def test_answers_to_prompts_stand_in_the_order_of_the_prompts_and_of_the_sets():
    t = pd.concat(
        [
            rows(task, 4, set=name, **of)
            for task, of in (
                ("detection", dict(label=[1.0, 0, 1, 0])),
                ("rating", dict(human=[1.0, 2, 3, 4])),
            )
            for name in ("SummEval", "FRANK")
        ],
        ignore_index=True,
    )
    q = prompt_questions(t)
    found = st.prompt_results(t, q, pd.DataFrame(dict(reply="yes", why="", index=q.index)))
    assert list(dict.fromkeys(zip(found["task"], found["row"], found["group"]))) == [
        (p.task, p.who, name) for p in FFLM_PROMPTS for name in ("SummEval", "FRANK")
    ]


def test_a_model_of_the_study_judges_behind_a_server_of_its_own(small, tmp_path):
    q = prompt_questions(small[small["task"] == "detection"]).groupby("prompt").head(2)
    with open_endpoint(st.prompted_judge("X", dict(X=TINY)), chat=False) as e:
        got = request_completions(e, requests_to(e, q), tmp_path / "r", progress=False)
        assert e.model == "X" and request_completions(
            e, requests_to(e, q), tmp_path / "r", send=False, progress=False
        ).equals(got)
    assert len(got) == 6 and got["reply"].notna().any() and st.prompted_judge("ice-judge", {}).endpoint


# Next to the printed numbers
def test_names_are_those_that_the_tables_print():
    d = printed_numbers().query("paper=='FFLM'")

    def printed(n):
        return {st._key(r) for r in d.loc[d["table"] == n, "row"]}

    own = {st._key(r) for r in st.FFLM_ROWS} - {"w as printed"}
    assert (
        own - {"copllama", "harimllama"} == printed(4)
        and own - {"copllama", "harimllama", "same"} == printed(9)
        and {"fflm", "copllama", "harimllama"} <= printed(2) & printed(3) & printed(5)
    )
    assert {st._key(r) for r in st.BASELINE_SCORES} | {"rouge-2", "meteor", "bleu"} <= printed(2) | printed(
        3
    ) | printed(8) and {st._key(r) for r in st._BART.values()} == printed(8)
    assert set(st.DETECTION_SETS.values()) - {"bulletin"} == set(d.loc[d["table"] == 2, "group"]) and set(
        st.RATING_SETS.values()
    ) - {"bulletin"} == set(d.loc[d["table"] == 3, "group"])
    assert {p.who for p in FFLM_PROMPTS if p.task == "detection"} == set(
        d.loc[d["table"] == 12, "column"]
    ) and {p.who for p in FFLM_PROMPTS if p.task == "rating"} == set(d.loc[d["table"] == 13, "column"])


def test_numbers_stand_next_to_their_own_cells():
    def one(table, row, group, column):
        return st.own_and_printed(
            pd.DataFrame([dict(row=row, group=group, column=column, value=50.0)]), table
        ).iloc[0]

    assert one(2, "FFLM", "CoGenSum", "balanced_accuracy")[
        ["printed", "difference"]
    ].tolist() == pytest.approx([71.8, -21.8])
    assert (
        one(4, "w/o w and log", "QAGSXSUM", "kendall")["printed"] == 10.2
        and one(9, "dX_prior + dY_cond", "FactCC", "balanced_accuracy")["printed"] == 78.6
    )
    assert (
        one(10, "Prompting Approach: Vicuna-7B", "FRANK", "balanced_accuracy")["printed"] == 69.2
        and one(10, "Our Approach: Vicuna-7B", "FRANK", "balanced_accuracy")["printed"] == 83.8
    )
    assert (
        one(12, "FRANK", "Vicuna-7B balanced accuracy", "Gao et al. (2023)")["printed"] == 46.9
        and one(1, "Faithfulness Rating: FRANKCNN", "", "Test")["printed"] == 1250
    )
    assert np.isnan(one(2, "w as printed", "CoGenSum", "balanced_accuracy")["printed"])


# Sets, small files of the published form
N = 4  # Texts of a split


def write(at, name, text):
    (at / name).parent.mkdir(parents=True, exist_ok=True)
    (at / name).write_text(text, encoding="utf-8", newline="")


def lines(rs):
    return "".join(json.dumps(r) + "\n" for r in rs)


def pairs(
    k,
):  # Source, summary and label of 2*N texts: every other pair of them has a summary of another bulletin
    w = bulletins("test", 16 * N)[k * 2 * N : (k + 1) * 2 * N].reset_index(drop=True)
    return [
        (s, w["reference"][i if (i // 2) % 2 else (i + 1) % (2 * N)], (i // 2) % 2)
        for i, s in enumerate(w["source"])
    ]


def votes(y):
    return [
        dict(worker_id=w, response=r)
        for w, r in enumerate(("yes", "yes", "no") if y else ("no", "no", "yes"))
    ]


def sents(y, text):
    return dict(
        label="Correct" if y else "Incorrect",
        sents={"0": dict(label="Correct" if y else "Incorrect", text=text)},
    )


def franks():  # Two summaries of each group of errors and some without, of both parts
    d = st.frank().assign(id=lambda x: x["hash"] + " " + x["model_name"])
    d["group"] = st._frank_groups().to_numpy()
    return pd.concat(
        [
            g.groupby("group").head(2) if k else g[g["Factuality"] == 1].head(4)
            for s in ("cnndm", "bbc")
            for k in (0, 1)
            for g in [d[(d["dataset"] == s) & ((d["group"] != "") if k else True)]]
        ]
    )


def stand_ins(at):
    "The public files of every set; texts are bulletins"
    p = [list(enumerate(pairs(k))) for k in range(6)]

    def ident(k, i):
        return f"{k}{i:039d}"

    write(
        at,
        "cnndm/test.jsonl",
        lines(dict(id=ident(k, i), article=s, highlights="x") for k in (0, 1, 4) for i, (s, _, _) in p[k]),
    )
    write(at, "cnndm/validation.jsonl", lines([dict(id="9" * 40, article="A", highlights="x")]))
    write(at, "xsum/test.jsonl", lines(dict(id=str(i), document=s) for i, (s, _, _) in p[5]))
    parts = {
        "val_reranking": {ident(0, i): {"1": sents(y, h)} for i, (_, h, y) in p[0][:N]},
        "val_sentence_pairs": [],
        "test_see17_org": {ident(0, i): sents(y, h) for i, (_, h, y) in p[0][N:]},
    }
    parts["val_sentence_pairs"] = [
        dict(article_id=ident(0, 0), correct_sent="It rained.", incorrect_sent="It snowed.")
    ]
    for k, n in enumerate(b.COGENSUMM_FILES):
        write(
            at,
            f"cogensumm/{n}.json",
            json.dumps(parts.get(n, {ident(0, k): sents(k % 2, f"Nothing new {k}.")})),
        )
    write(
        at,
        "summeval/model_annotations.aligned.scored.jsonl",
        lines(
            dict(
                id=f"dm-test-{ident(1, i)}",
                decoded=h,
                model_id="M1",
                expert_annotations=[dict(consistency=5 if y else 3)] * 3,
            )
            for i, (_, h, y) in p[1]
        ),
    )
    for k, s in enumerate(("val", "test")):
        write(
            at,
            f"factcc/{s}/data-dev.jsonl",
            lines(
                dict(filepath=f"x/{ident(4, i)}.story", claim=h, label="CORRECT" if y else "INCORRECT")
                for i, (_, h, y) in p[4][k * N : (k + 1) * N]
            ),
        )
    for w, name in enumerate(("cnndm", "xsum")):
        write(
            at,
            f"qags/mturk_{name}.jsonl",
            lines(
                dict(
                    article=s,
                    summary_sentences=[
                        dict(sentence=h, responses=votes(y)),
                        dict(sentence="It rained.", responses=votes(i % 3)),
                    ],
                )
                for i, (s, h, y) in p[2 + w]
            ),
        )
    (at / "xsumfaith").mkdir(parents=True)
    with open(at / "xsumfaith" / "hallucination_annotations_xsum_summaries.csv", "w", newline="") as f:
        csv.writer(f).writerows(
            [
                ["bbcid", "system", "summary", "hallucination_type", "hallucinated_span", "worker_id"],
                *[
                    [i, "TranS2S", h, "NULL" if y else "extrinsic", "x", f"w{w}"]
                    for i, (_, h, y) in p[5]
                    for w in range(3)
                ],
            ]
        )
    for j, s in enumerate(b.POLYTOPE_SYSTEMS):
        part = [(str(i), src, h, y) for i, (src, h, y) in enumerate(pairs(6))][j % 4 : j % 4 + 2]
        (at / "polytope").mkdir(parents=True, exist_ok=True)
        tmp = at / "polytope" / "x.xlsx"
        with pd.ExcelWriter(tmp) as w:
            pd.DataFrame([r[:3] for r in part], columns=["ID", "Source", "Target"]).to_excel(
                w, sheet_name="Scores per segment", index=False
            )
            pd.DataFrame([(r[0], "Omission") for r in part if not r[3]], columns=["ID", "Subtypes"]).to_excel(
                w, sheet_name="Error Log", index=False
            )
        tmp.replace(at / "polytope" / f"Human_Annotation_Summarization_{s}.xlsm")
    f, w = franks(), bulletins("validation", 40)
    write(
        at,
        "frank/human_annotations_sentence.json",
        json.dumps(
            [
                dict(
                    hash=r.hash,
                    model_name=r.model_name,
                    article=w["source"][i % 40],
                    summary=(
                        w["reference"][i % 40] if r.group == "" else w["reference"][(i + 1) % 40]
                    ).lower(),
                    split=("valid", "test")[i % 2],
                    summary_sentences_annotations=[
                        {
                            f"annotator_{a}": ["NoE" if r.group == "" or (j and i % 3) else "EntE"]
                            for a in range(3)
                        }
                        for j in range(2)
                    ],
                )
                for i, r in enumerate(f.itertuples())
            ]
        ),
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    if mirror() is None:
        pytest.skip("UETRUST_MIRROR is not at hand")
    at = tmp_path_factory.mktemp("cache")
    stand_ins(at)
    return at


def test_every_set_is_read_by_its_loader(home, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(home))
    det = st.fflm_texts([n for n in st.DETECTION_SETS if n != "bulletin"], "detection", complete=False)
    assert (
        list(det) == list(st.FFLM_COLUMNS)
        and det.groupby(["set", "split"])["label"].nunique().eq(2).all()
        and set(det["set"]) == set(st.DETECTION_SETS.values()) - {"bulletin"}
    )
    for n, s in st.DETECTION_SETS.items():
        if n != "bulletin":
            assert sorted(det.loc[det["set"] == s, "hypothesis"]) == sorted(
                h for v in ("val", "test") for h in b.summac(n, v, complete=False)["hypothesis"]
            )
    rat = st.fflm_texts(
        ["frank_cnn", "qags_cnn", "summeval:1", "frank_xsum", "qags_xsum"], "rating", complete=False
    )
    assert (
        rat.groupby("set", sort=False).size().to_dict()
        == dict(FRANKCNN=10, QAGSCNN=2 * N, SummEval=16, FRANKXSUM=10, QAGSXSUM=2 * N)
        and rat["human"].notna().all()
        and rat["split"].eq("test").all()
    )
    f = rat[rat["set"].str.startswith("FRANK")]
    assert (
        f.groupby("set")["group"].value_counts().unstack().to_numpy().tolist() == [[4, 2, 2, 2]] * 2
        and f["hypothesis"].str[0].str.isupper().all()
        and det.loc[det["set"] == "FRANK", "hypothesis"].str.islower().all()
    )
    sizes = st.own_and_printed(st.text_counts(pd.concat([det, rat])), 1)
    assert sizes["printed"].notna().all() and sizes.loc[
        sizes["row"].str.endswith(": SummEval") & (sizes["column"] == "Test"), ["value", "printed"]
    ].to_numpy().tolist() == [[N, 850], [16, 1600]]
    with pytest.raises(BadData, match="were published"):
        st.fflm_texts(["frank"], "detection")


@pytest.mark.parametrize(
    "names,task,says",
    [
        (["frank"], "rating", "frank_cnn"),
        (["frank_cnn"], "detection", "xsumfaith"),
        (["bulletin:x"], "rating", "NAME:NUMBER"),
        (["bulletin"], "ranking", "detection"),
    ],
)
def test_wrong_sets_are_answered_with_the_known_ones(names, task, says):
    with pytest.raises(ValueError, match=says):
        st.fflm_texts(names, task)


def test_a_number_means_the_first_sources():
    if mirror() is None:
        pytest.skip("UETRUST_MIRROR is not at hand")
    a, c = (st.fflm_texts([f"summeval:{n}"], "rating") for n in (1, 3))
    assert len(a) == 16 and len(c) == 48 and c[:16].equals(a) and c["doc"].nunique() == 3
    assert st.fflm_texts(["bulletin:5"], "detection").groupby("split")["doc"].nunique().to_dict() == dict(
        val=5, test=5
    )


# The profile
def test_the_profile_names_sets_and_models_that_are_known():
    p = profile("fflm")
    models = st.named_models(p["fflm_models"], p["fflm_main"])
    assert p["fflm_detection"].split() == [n for n in st.DETECTION_SETS if n != "bulletin"] and p[
        "fflm_rating"
    ].split() == [n for n in st.RATING_SETS if n != "bulletin"]
    assert (
        list(models) == ["LLaMa-3B", "LLaMa-7B", "LLaMa-13B", "Vicuna-7B", "Alpaca-7B"]
        and set(p["fflm_judges"].split()) <= set(models)
        and not any(k in profile("smoke") for k in p if k.startswith("fflm_"))
    )
    d = printed_numbers().query("paper=='FFLM' and table==7")
    assert {r.rpartition(": ")[2] for r in d["row"]} <= set(models)
    assert st.named_models("tiny-llama x=y", "x") == {"tiny-llama": TINY, "x": "y"}
    for bad, says in (
        ("LLaMa", "no generator 'LLaMa'"),
        ("a=", "NAME=CHECKPOINT"),
        ("a=b", "one of ..a'., got 'LLaMa-7B'"),
    ):
        with pytest.raises((ValueError, LookupError), match=says):
            st.named_models(bad, "LLaMa-7B")


def knows(
    q, chat
):  # A judge that says no to the summary it is shown when that is longer than a line of its source
    verdict = "yes" if len(q["prompt"]) % 2 else "no"
    return dict(
        choices=[
            dict(
                index=0,
                text=f" {len(q['prompt']) % 5 + 1}" if q["prompt"].endswith("Marks:") else f" {verdict}.",
            )
        ],
        usage=dict(prompt_tokens=9, completion_tokens=2),
    )


def test_the_profile_runs_from_public_files_to_the_tables_when_only_names_change(
    home, tmp_path, renamed, monkeypatch
):
    monkeypatch.setattr(te, "completion", knows)
    ini = (root() / "settings.ini").read_text(encoding="utf-8").splitlines()
    with te.server() as (url, log):
        names = {
            "http://127.0.0.1:8000/v1": url,
            "fflm_judges = LLaMa-7B Vicuna-7B Alpaca-7B": "fflm_judges = ice-judge",
            "qags_cnn summeval frank_xsum": "qags_cnn summeval:1 frank_xsum",
            "openlm-research/open_llama_3b": TINY,
            "huggyllama/llama-7b": TINY,
            "huggyllama/llama-13b": TINY,
            "lmsys/vicuna-7b-v1.1": TINY,
            "chavinlo/alpaca-native": TINY,
            next(line for line in ini if " coco=" in line and " feqa=" in line): "metric_models = "
            "bart=data/models/tiny-bart feqa=data/cache/models/nobody",
        }
        nb = renamed("fflm/02_fflm_study", names, UETRUST_MIRROR=mirror(), UETRUST_CACHE=home)
        run_notebook(
            nb,
            tmp_path / "runs" / "fflm" / "notebooks" / "fflm_study.ipynb",
            dict(profile="fflm", complete=False),
        )
    out = tmp_path / "runs" / "fflm"

    def table(n):
        return pd.read_csv(out / "tables" / f"fflm_study_table{n}.csv")

    assert (
        table(1)["printed"].notna().all()
        and set(table(2)["group"]) == set(st.DETECTION_SETS.values()) - {"bulletin"}
        and set(table(3)["group"]) == set(st.RATING_SETS.values()) - {"bulletin"}
    )
    for n in (2, 3, 4, 5, 6, 7, 8, 9, 10):
        assert (
            table(n)["value"].notna().mean() > 0.9
            and table(n)["printed"].notna().sum() > 0
            and not table(n).duplicated(["row", "group", "column"]).any()
        ), n
    assert (
        table(9).groupby("row").size().eq(6).all()
        and table(4).groupby("row").size().eq(15).all()
        and set(table(9)["row"]) >= set(st.FFLM_ROWS) - {"CoPLLaMa", "HaRiMLLaMa"}
    )
    five = table(10).query("row.str.startswith('Our')").pivot(index="group", columns="row", values="value")
    assert five.shape == (6, 5) and five.nunique(axis=1).eq(1).all(), "one network under five names"
    ask, types = (
        pd.read_csv(out / "tables" / "fflm_study_prompts.csv"),
        pd.read_csv(out / "tables" / "fflm_study_types.csv"),
    )
    assert (
        ask["unread"].eq(0).all()
        and ask["refused"].eq(0).all()
        and set(ask["model"]) == {"ice-judge"}
        and len(log["seen"]) == len({q["prompt"] for q in log["seen"]})
    )
    assert (
        set(types["group"]) == {"FRANKCNN", "FRANKXSUM"}
        and types.groupby("group")["type"].nunique().eq(3).all()
        and types["drawn"].eq(2).all()
        and types["printed"].count() == 2
    )
    pages = json.loads((out / "pages" / "fflm_study.json").read_text())
    assert (
        "CoGenSum" in pages["answer"]
        and "where the paper prints 71.8" in pages["answer"]
        and "Stand-ins" not in " ".join(pages["text"])
        and str(tmp_path) not in json.dumps(pages)
    )
    assert len(list((out / "scores" / "fflm").glob("*.parquet"))) >= 10 and all(
        (out / "figures" / f"fflm_study_{f}.csv").exists() for f in ("detection", "rating", "models", "types")
    )
