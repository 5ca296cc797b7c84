"""ICE as a run: which summaries are shown and judged, what is sent and paid, and missing scores."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.helpers import endpoints as te
from tests.helpers.ice import FOLD_0, SMALL, numbers, study
from tests.helpers.paths import ROOT
from uetrust.cli.notebooks import run_notebook
from uetrust.core.store import canonical_json
from uetrust.data.loaders import ice
from uetrust.generation.endpoint import EndpointError, ReplyCache
from uetrust.nlg.judge import ICE_SHOWN
from uetrust.papers.ice import live as runs
from uetrust.papers.ice import live as st
from uetrust.papers.ice.live import ICE_DIMENSIONS
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.judges import ice_replies, request_completions

TINY = dict(bart="tiny-bart", bertscore="tiny-encoder")


@pytest.fixture(scope="module")
def real():
    return st.summeval_texts()


def many(docs, each):
    "A pool with other numbers of articles and summaries"
    r = random.Random(docs)
    return pd.DataFrame(
        [
            dict(
                item=each * d + i,
                doc=f"d{d}",
                system=f"s{i}",
                source=f"Source {d}.",
                reference=f"Reference {d}.",
                hypothesis=f"Summary {d} {i}.",
            )
            | {q: r.randrange(5) / 4 for q in ICE_DIMENSIONS}
            for d in range(docs)
            for i in range(each)
        ]
    )


def questions(plan, value=0.5):
    "The same reply to every question"
    return st.scores_of_replies(
        plan, pd.DataFrame(dict(reply=f" {value}", why="", tokens=np.nan), index=range(len(plan)))
    )


# Who is shown, who is judged
@pytest.mark.parametrize("docs,each,size,seed", [(12, 3, 4, 1), (20, 5, 4, 7), (30, 2, 5, 3), (20, 4, 10, 1)])
def test_nothing_is_shown_and_judged_together_and_folds_cover_everything(docs, each, size, seed):
    p, n = many(docs, each), docs // size
    s = st.ICEStudy(
        size=size,
        seed=seed,
        ways=("uniform",),
        turns=n,
        k=(1, size),
        sets=1,
        held=1,
        judged=each * size * (n - 1),
    )
    doc, plan, seen = p.set_index("item")["doc"], st.ice_questions(p, s), st.shown_examples(p, s)
    for (_, dim, how, fold, _), g in plan.groupby(st.ICE_KEY):
        assert not set(doc[seen[how, dim, fold]]) & set(doc[g["item"]])
    ways = plan[(plan["part"] == "ways") & (plan["dim"] == "fluency")]
    assert Counter(ways["item"]) == dict.fromkeys(p["item"], n - 1), (
        "every summary is judged with the examples of every other fold"
    )
    for f in range(n):
        assert len({doc[i] for i in seen["uniform", "fluency", f]}) == size and set(
            ways.loc[ways["fold"] == f, "item"]
        ) == set(p["item"][~p["doc"].isin(st._checked_folds(p, s)[f])])


def test_the_papers_split_is_64_and_1536_with_its_examples(real):
    s = st.ICEStudy()
    seen, judged = st.shown_examples(real, s), st.judged_items(real, s, "ways")
    assert len(judged) == 1536 == len(set(judged)) and len(st._checked_folds(real, s)) == 25
    for how, by_dim in FOLD_0.items():
        for dim, want in by_dim.items():
            assert {i: real.set_index("item").at[i, dim] for i in seen[how, dim, 0]} == want
    sample = st.judged_items(real, s, "sets")
    held = set(sum(st._checked_folds(real, s)[:5], []))
    assert len(set(sample)) == 200 and not held & set(real.set_index("item")["doc"][sample])
    assert sample == st.judged_items(real, s, "sets", 2), "the same summaries with every set"


def test_a_first_hour_judges_a_few_of_the_same_summaries(real):
    every, few = (st.judged_items(real, st.ICEStudy(most=most), "ways") for most in (0, 50))
    assert len(few) == 50 == len(set(few)) and set(few) < set(every)
    assert st.judged_items(real, st.ICEStudy(most=5000), "ways") == every


def test_a_seed_is_a_study(real):
    (a, x), (b, y), (c, z) = (
        (st.judged_items(real, s, "sets"), st.shown_examples(real, s))
        for s in (st.ICEStudy(seed=n, ways=("uniform",)) for n in (1, 1, 2))
    )
    assert (a, x) == (b, y) and a != c and x != z


def test_the_grid_is_every_number_with_every_set_and_none_once():
    d = st._ice_designs(st.ICEStudy(k=(0, 1, 4), sets=3), ["coherence"])
    assert Counter(zip(d["part"], d["k"], d["how"])) == {
        ("ways", 4, w): 1 for w in ("uniform", "stratified", "as_coded")
    } | {("sets", 0, "none"): 1, ("sets", 1, "uniform"): 3, ("sets", 4, "uniform"): 3}


@pytest.mark.parametrize(
    "change,says",
    [
        (dict(k=(1, 5)), "k goes from 0 to 4, got 5"),
        (dict(sets=3), "there are 3 folds"),
        (dict(held=3), "some must be left"),
        (dict(judged=25), "have 24"),
        (dict(size=5), "folds of 5"),
        (dict(size=6, k=(6,), sets=1, held=1), "four quarters"),
        (dict(turns=4), "4 take turns"),
    ],
)
def test_an_impossible_design_is_an_error(pool, change, says):
    with pytest.raises(ValueError, match=says):
        (st.ice_questions(pool, SMALL._replace(**change)), st.shown_examples(pool, SMALL._replace(**change)))


def test_the_stand_in_has_summaries_that_fail_in_known_ways(pool):
    m = pool.groupby("system")[list(ICE_DIMENSIONS)].mean()
    assert (
        pool["item"].is_unique
        and pool[list(ICE_DIMENSIONS)].stack().between(0, 1).all()
        and st.scored_summaries("bulletin:test:12").equals(pool)
    )
    assert (
        (m.loc["paraphrase", ["consistency", "fluency", "relevance"]] == 1).all()
        and m.at["scrambled", "fluency"] == 0
        and m.at["other_bulletin", "consistency"] < 0.2
        and m.at["repeated", "coherence"] < 0.6 < m.at["repeated", "consistency"]
    )
    with pytest.raises(ValueError, match="summeval"):
        st.scored_summaries("cnn")


# What is sent
def test_prompts_grow_by_an_example_and_end_with_the_question(pool):
    plan = st.ice_questions(pool, SMALL)
    requests = runs.ice_requests(
        te.endpoint("http://127.0.0.1:9/v1", chat=False), pool, plan, st.shown_examples(pool, SMALL)
    )
    text, seen = pool.set_index("item"), st.shown_examples(pool, SMALL)
    for row, r in zip(plan.itertuples(), requests):
        blocks = r.body["prompt"].split("\n\n")
        assert (
            len(blocks) == row.k + 2 - (row.k == 0)
            if ICE_SHOWN[row.dim] is None and row.k
            else r.body["prompt"].count("Summary: ") == row.k + 1
        )
        assert r.body["prompt"].endswith(
            f"Summary: {text.at[row.item, 'hypothesis']}\n{row.dim.capitalize()}:"
        ) and (r.body["max_tokens"], r.body["temperature"]) == (5, 0)
        for i in seen[row.how, row.dim, row.fold][: row.k] if row.k else []:
            assert (
                f"{text.at[i, 'hypothesis']}\n{row.dim.capitalize()}: {text.at[i, row.dim]}\n"
                in r.body["prompt"]
            )
    none = [r.body["prompt"] for q, r in zip(plan.itertuples(), requests) if q.k == 0 and q.dim == "fluency"]
    assert none and all(p.startswith("\n\nSummary: ") for p in none)


def test_it_sends_what_the_judges_own_function_sends(pool, tmp_path, monkeypatch):
    monkeypatch.setattr(te, "completion", numbers)
    plan, seen = st.ice_questions(pool, SMALL), st.shown_examples(pool, SMALL)
    one = plan[(plan["part"] == "ways") & (plan["dim"] == "relevance") & (plan["how"] == "uniform")]
    with te.server() as (url, log):
        got = request_completions(
            te.endpoint(url, chat=False),
            runs.ice_requests(te.endpoint(url, chat=False), pool, one, seen),
            tmp_path / "r",
            progress=False,
        )
    by = pool.set_index("item")
    examples = [dict(by.loc[i], score=by.at[i, "relevance"]) for i in seen["uniform", "relevance", 0]]
    leaves, _ = ice_replies(
        te.endpoint(url, chat=False),
        "relevance",
        examples,
        by.loc[one["item"]].rename_axis("id").reset_index(),
        tmp_path / "r",
    )  # nobody listens any more
    assert (
        leaves["reply_ice_relevance"] == list(got["reply"])
        and len(log["seen"]) == len({q["prompt"] for q in log["seen"]}) == 48
    )
    with pytest.raises(ValueError, match="chat=False"):
        runs.ice_requests(te.endpoint(url), pool, one, seen)


# Money
def test_a_dry_run_counts_requests_and_tokens_and_sends_nothing(pool, tmp_path, knowing):
    with te.server() as (url, log):
        e = te.endpoint(url, chat=False, price_in=2.0, price_out=4.0, budget=9.0)
        plan, requests = study(pool, e)
        dry = runs.ice_estimate(e, requests, tmp_path / "r")
        unread = request_completions(e, requests, tmp_path / "r", send=False, progress=False)
        assert not log["seen"] and unread["why"].eq("not asked").all() and unread["tokens"].isna().all()
        different = {r.key: r.body for r in requests}
        assert dry[["questions", "requests", "cached", "tokens_out", "budget_left"]].tolist() == [
            len(plan),
            len(different),
            0,
            5 * len(different),
            9.0,
        ]
        assert (
            dry["tokens_in"] == sum(len(canonical_json(b).encode()) for b in different.values()) // 4
            and dry["cost"] == (2 * dry["tokens_in"] + 4 * dry["tokens_out"]) / 1e6
        )
        first = request_completions(e, requests[:300], tmp_path / "r", progress=False)
        seen = len(log["seen"])
        left = runs.ice_estimate(e, requests, tmp_path / "r")
        part = request_completions(e, requests, tmp_path / "r", send=False, progress=False)
        assert (
            seen == left["cached"] == len({r.key for r in requests[:300]})
            and len(log["seen"]) == seen
            and runs.ice_estimate(e, requests)["cached"] == 0
        )
        assert part["reply"][:300].equals(first["reply"]) and "not asked" in set(part["why"])
        everything = request_completions(e, requests, tmp_path / "r", progress=False)
    assert len(log["seen"]) == len(different) < len(plan) and everything["why"].eq("").all()


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[3])
from tests.helpers.endpoints import endpoint
from uetrust.papers.ice import live as st
from uetrust.papers.ice import plots
from uetrust.papers.ice.live import ice_requests
from uetrust.statistics.judges import request_completions
pool,s = st.scored_summaries('bulletin:test:12'),st.ICEStudy(k=(0, 1, 2, 4), sets=2, held=2, judged=12)
server = endpoint(sys.argv[2], chat=False, concurrency=1)
requests = ice_requests(server, pool, st.ice_questions(pool, s), st.shown_examples(pool, s))
got = request_completions(server, requests[:40], sys.argv[1]+'/replies', progress=False)
got.to_json(sys.argv[1]+'/got.json', orient='records')
"""


def test_killed_it_pays_at_most_the_request_under_way_again(pool, tmp_path, knowing):
    with te.server(slow=0.03) as (url, log):
        run = [sys.executable, "-c", SCRIPT, str(tmp_path), url, str(ROOT)]
        p = subprocess.Popen(run)
        while len(log["seen"]) < 20:
            assert p.poll() is None, "it ended before it was killed"
            time.sleep(0.005)
        p.send_signal(signal.SIGKILL)
        assert p.wait() == -9
        subprocess.run(run, check=True)
        e = te.endpoint(url, chat=False)
        _, requests = study(pool, e)
        assert 40 == len({r.key for r in requests[:40]}) <= len(log["seen"]) <= 40 + 1
        quiet = request_completions(e, requests[:40], tmp_path / "quiet", progress=False)
    assert [r["reply"] for r in json.loads((tmp_path / "got.json").read_text())] == list(quiet["reply"])


# Refusals
def test_a_part_that_is_refused_whole_does_not_stop_the_others(pool, tmp_path, knowing):
    e = te.endpoint("http://127.0.0.1:9/v1", chat=False, concurrency=1)
    plan, requests = study(pool, e)
    some = requests[:30]
    with te.server(["ok"] * 10 + [(413, {}, "too long")] * 12) as (url, log):
        got = request_completions(
            te.endpoint(url, chat=False, concurrency=1), some, tmp_path / "r", progress=False
        )
    assert (
        len(log["seen"]) == 30
        and got["why"].str.contains("too long").sum() == 12
        and got["reply"].notna().sum() == 18
        and not got["why"].str.contains("127.0.0.1").any()  # Else a table differs where a port does
    )
    with te.server([(413, {}, "too long")] * 99) as (url, _), pytest.raises(EndpointError, match="too long"):
        request_completions(te.endpoint(url, chat=False), some, tmp_path / "none", progress=False)
    with (
        te.server(["ok"] * 7 + [(401, {}, "who are you")] * 99) as (url, _),
        pytest.raises(EndpointError, match="who are you"),
    ):
        request_completions(
            te.endpoint(url, chat=False, concurrency=1), some, tmp_path / "key", progress=False
        )
    with ReplyCache(tmp_path / "key") as c:
        assert sum(c.get(r.key) is not None for r in some) == 7
    t = st.scores_of_replies(plan[:30], got)
    c = st.count_scores(t, ["part"])
    assert (
        c[["asked", "scored", "refused", "no_number", "not_asked"]].values.tolist() == [[30, 18, 12, 0, 0]]
        and c["mean"][0] == pytest.approx(t["value"].dropna().mean())
        and c["missing"][0] == 0.4
    )


# Scores
def test_every_kind_of_missing_score_is_counted_and_none_enters_a_mean():
    plan = pd.DataFrame(
        [dict(part="sets", dim="fluency", how="uniform", fold=0, k=1, item=i) for i in range(7)]
    )
    t = st.scores_of_replies(
        plan,
        pd.DataFrame(
            dict(
                reply=[" 0.25", "75%", "-0.5", "good", "", None, None],
                why=[""] * 5 + ["HTTP 413", "not asked"],
                tokens=[10.0] * 5 + [np.nan] * 2,
            )
        ),
    )
    assert (
        t["missing"].tolist() == [""] * 3 + ["no number"] * 2 + ["refused", "not asked"]
        and t["off"].tolist() == [False, True] + [False] * 5
    )
    c = st.count_scores(t).iloc[0]
    assert (
        (c["scored"], c["no_number"], c["refused"], c["not_asked"], c["off"]) == (3, 2, 1, 1, 1)
        and c["mean"] == pytest.approx((0.25 + 75 + 0.5) / 3)
        and c["missing"] == 4 / 7
    )
    with pytest.raises(ValueError, match="got 2 for 7"):
        st.scores_of_replies(plan, pd.DataFrame(dict(reply=["1", "2"], why="", tokens=1.0)))


def test_a_prompt_that_stops_growing_was_cut():
    plan = pd.DataFrame(
        [
            dict(part="sets", dim="fluency", how="none" if k == 0 else "uniform", fold=f, k=k, item=1)
            for f, k in [(0, 4), (0, 1), (0, 2), (1, 1), (1, 2), (1, 4)]
        ]
    )
    t = st.scores_of_replies(
        plan, pd.DataFrame(dict(reply="1", why="", tokens=[200.0, 100, 200, 100, np.nan, 90]))
    )
    assert t["cut"].tolist() == [True, False, False, False, False, True]


def test_correlations_are_those_of_scipy_over_the_scored(pool):
    rng, plan = np.random.default_rng(2), st.ice_questions(pool, SMALL, ["relevance"])
    truth = pool.set_index("item")["relevance"]
    replies = [
        f"{v:.2f}" if rng.random() > 0.3 else "nothing"
        for v in np.clip(truth[plan["item"]] + rng.normal(size=len(plan)) * 0.3, 0, 1)
    ]
    t = st.scores_of_replies(plan, pd.DataFrame(dict(reply=replies, why="", tokens=np.nan)))
    corr = st.ice_correlations(t, pool, 50).set_index([*st.ICE_KEY, "level", "coef"]).sort_index()
    for key, g in t.groupby(st.ICE_KEY):
        g = g.dropna(subset="value")
        x, y = g["value"], truth[g["item"]]
        r = corr.loc[(*key, "pooled", "spearman")]
        assert (
            r["value"] == pytest.approx(stats.spearmanr(x, y)[0])
            and r["n"] == len(g)
            and r["lo"] <= r["value"] <= r["hi"]
        )
        assert corr.at[(*key, "pooled", "kendall"), "value"] == pytest.approx(stats.kendalltau(x, y)[0])


def test_systems_are_compared_on_the_summaries_that_have_a_score():
    p = many(2, 3).assign(relevance=[1, 0.6, 0.2, 0, 0.6, 0.2])
    plan = pd.DataFrame(
        [dict(part="ways", dim="relevance", how="uniform", fold=0, k=4, item=i) for i in p["item"]]
    )
    t = st.scores_of_replies(
        plan, pd.DataFrame(dict(reply=[".9", ".5", ".1", "no", ".5", ".1"], why="", tokens=np.nan))
    )  # of the first system one summary of two
    c = st.ice_correlations(t, p, 0).query("coef=='spearman'").set_index("level")["value"]
    assert c["system"] == pytest.approx(
        1
    )  # 1 > .6 > .2 as the judge has it; with the mean of both it would be .5 < .6


def test_intervals_over_sets_are_students(pool):
    c = pd.DataFrame(
        [
            dict(
                part="sets",
                dim="fluency",
                how="uniform",
                fold=f,
                k=k,
                level="pooled",
                coef="spearman",
                value=v,
                n=9,
                skipped=0,
                lo=v - 0.1 if v == v else np.nan,
                hi=v + 0.2 if v == v else np.nan,
            )
            for k, vs in {1: (0.1, 0.3, 0.2), 2: (0.4, np.nan, 0.2), 4: (np.nan, np.nan, 0.5)}.items()
            for f, v in enumerate(vs)
        ]
    )
    n = st.by_example_count(c).set_index("k")
    lo, hi = stats.ttest_1samp([0.1, 0.3, 0.2], 0).confidence_interval(0.95)
    assert n.loc[1, ["value", "se", "lo", "hi", "sets", "undefined"]].tolist() == pytest.approx(
        [0.2, stats.sem([0.1, 0.3, 0.2]), lo, hi, 3, 0]
    )
    assert (
        n.at[2, "value"] == pytest.approx(0.3)
        and n["undefined"].tolist() == [0, 1, 2]
        and np.isnan(n.at[4, "se"])
        and n.at[4, "value"] == 0.5
    )
    s = st.by_example_set(c).set_index("k")
    assert (
        s["range"].tolist()[:2] == pytest.approx([0.2, 0.2])
        and np.isnan(s.at[4, "range"])
        and s["articles"].tolist() == pytest.approx([0.15] * 3)
    )


# The paper's own run
def test_the_released_scores_give_table_1(real):
    t = st.released_run(real, ice(), st.ICEStudy())
    c = (
        st.ice_correlations(t, real, 0)
        .query("part=='ways' and level=='pooled'")
        .pivot(index=["how", "dim"], columns="coef", values="value")
    )
    table = dict(
        uniform=dict(
            coherence=(0.476, 0.388),
            consistency=(0.486, 0.466),
            fluency=(0.366, 0.328),
            relevance=(0.467, 0.384),
        ),
        as_coded=dict(
            coherence=(0.497, 0.387),
            consistency=(0.298, 0.263),
            fluency=(0.397, 0.348),
            relevance=(0.485, 0.396),
        ),
    )
    for how, dims in table.items():
        for d, want in dims.items():
            assert (
                tuple(np.floor(1000 * c.loc[(how, d), ["spearman", "kendall"]].to_numpy(float)) / 1000)
                == want
            )  # cut to three digits, as printed
    assert t["missing"].eq("").all() and (t["part"] == "sets").sum() == 4 * 200
    with pytest.raises(ValueError, match="other summaries"):
        st.released_run(real, ice().iloc[1:], st.ICEStudy())


def test_a_constant_judge_has_no_correlation(pool):
    t = questions(st.ice_questions(pool, SMALL, ["fluency"]))
    assert st.ice_correlations(t, pool, 9)["value"].isna().all() and st.count_scores(t)["mean"].eq(0.5).all()


def test_the_profile_ice_runs_from_end_to_end_when_only_names_change(tmp_path, knowing, renamed):
    with te.server() as (url, log):
        names = {
            "http://127.0.0.1:8000/v1": url,
            "ice_texts = released": "ice_texts = bulletin:test:12",
            "ice_sets = 3": "ice_sets = 2",
            "ice_held = 5": "ice_held = 2",
            "ice_judged = 200": "ice_judged = 12",
            "unieval-sum bertscore": "unieval-sum bart=data/models/tiny-bart bertscore",
        }
        nb, out = (
            renamed("ice/03_ice_study", names, UETRUST_MIRROR=tmp_path, UETRUST_CACHE=tmp_path),
            tmp_path / "runs" / "ice",
        )
        run_notebook(nb, out / "notebooks" / "ice_study.ipynb", dict(profile="ice", draws=40))
        sent = len(log["seen"])
    others = pd.read_csv(out / "tables" / "ice_study_baselines.csv")
    assert set(others["row"]) == {"BARTScore"}  # The hub is out of reach
    page, curve = (
        json.loads((out / "pages" / "ice_study.json").read_text()),
        pd.read_csv(out / "figures" / "ice_study_numbers.csv"),
    )
    price = pd.read_csv(out / "tables" / "ice_study_estimate.csv").set_index("dim")
    assert sent == price.at["all", "requests"] == len({q["prompt"] for q in log["seen"]}) and {
        q["model"] for q in log["seen"]
    } == {"meta-llama/Llama-3.1-8B"}
    assert (
        sorted(curve["k"].unique()) == [0, 1, 2, 3, 4]
        and curve.query("k>0")["sets"].eq(2).all()
        and curve.query("k==4")["value"].min() > 0.5
    )
    (lacking,) = [text for text in page["text"] if text.startswith("Missing: ")]
    for name in ("MingZhong/unieval-sum", "roberta-large"):
        assert f"'{name}' could not be loaded" in lacking
    assert "CTC (consistency) by ctc lacks a model for 'ctc'" in lacking
    assert (
        any(text.endswith("questions (100%).") for text in page["text"])
        and (out / "figures" / "ice_study_sets.png").exists()
    )
    assert str(tmp_path) not in (out / "pages" / "ice_study.json").read_text()


def test_other_metrics_are_those_of_their_models_and_what_lacks_is_named(pool, tmp_path):
    "BARTScore and CTC by embeddings with two tiny models; UniEval and the trained aligner have none"
    models = {name: str(ROOT / "data/models" / model) for name, model in TINY.items()}
    items = list(pool["item"][:24])
    scores, missing = st.ice_baselines(pool, items, models, tmp_path, progress=False)
    texts = pool[pool["item"].isin(items)].assign(id=lambda rows: rows["item"].astype(str))
    texts = texts[["id", "hypothesis", "source", "reference"]]
    names = ["bart_score", "ctc_embedding", "ctc_embedding_relevance"]
    by_hand = compute_metrics(texts, models, names, progress=False).table
    by_hand = by_hand.pivot(index="sample", columns="name", values="value").loc[texts["id"]]
    assert Counter(scores["how"]) == dict(CTC=2 * 24, BARTScore=4 * 24)
    for _, rows in scores.groupby(["how", "dim"]):
        assert rows["item"].tolist() == items
        np.testing.assert_allclose(rows["value"], by_hand[rows["score"].iloc[0]], atol=1e-6)
    expected = {f"UniEval ({dim}) by unieval_{dim}": "a model for 'unieval'" for dim in ICE_DIMENSIONS}
    expected |= {
        "CTC (consistency) by ctc": "a model for 'ctc'",
        "CTC (relevance) by ctc_relevance": "a model for 'ctc'; a model for 'ctc_relevance'",
    }
    assert missing == expected
    table = (
        st.baseline_correlations(scores, pool, draws=50).set_index(["row", "group", "column"]).sort_index()
    )
    truth = pool.set_index("item").loc[items]
    for dim in ICE_DIMENSIONS:
        found = table.loc[("BARTScore", dim.capitalize())]["value"]
        assert found["rho"] == pytest.approx(stats.spearmanr(by_hand["bart_score"], truth[dim])[0])
        assert found["tau"] == pytest.approx(stats.kendalltau(by_hand["bart_score"], truth[dim])[0])
    assert table["n"].eq(24).all() and table["lo"].notna().sum() == 6
    half, _ = st.ice_baselines(pool, items, models, tmp_path, False, metric_dtype="bart=bfloat16")
    moved = (half["value"] - scores["value"]).abs().groupby(scores["how"]).max()
    assert moved["CTC"] == 0 < moved["BARTScore"] < 0.5
