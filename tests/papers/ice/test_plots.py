"""Figures of ICE: a rising curve, and a page without a single score."""

import numpy as np
import pandas as pd

from tests.helpers import endpoints as te
from tests.helpers.ice import SMALL, study
from uetrust.papers.ice import live as st
from uetrust.papers.ice import plots
from uetrust.statistics.judges import request_completions


# Together
def test_a_judge_that_knows_more_with_more_examples_gives_a_rising_curve(pool, tmp_path, knowing):
    with te.server() as (url, _):
        e = te.endpoint(url, chat=False)
        plan, requests = study(pool, e)
        t = st.scores_of_replies(plan, request_completions(e, requests, tmp_path / "r", progress=False))
    corr = st.ice_correlations(t, pool, 50)
    curve = st.by_example_count(corr).pivot(index="k", columns="dim", values="value").mean(axis=1)
    assert (
        curve[0] < curve[1] < curve[4] and curve[4] > 0.6 and not t["cut"].any() and t["tokens"].notna().all()
    )
    said = plots.ice_sentences(t, corr, "Somebody", "the truth")
    assert (
        said[0].startswith(f"Somebody was asked {len(plan)} questions: {len(plan)} (100%) have a score")
        and any("differ by up to" in p for p in said)
        and not any("Refused" in p for p in said)
    )


def test_a_page_without_a_single_score_says_so(pool):
    plan = st.ice_questions(pool, SMALL)
    t = st.scores_of_replies(
        plan,
        pd.DataFrame(dict(reply="The garden", why="", tokens=9.0), index=range(len(plan))).assign(
            why=np.where(plan["k"] == 4, "HTTP 400", ""),
            reply=lambda d: d["reply"].where(d["why"] == "", None),
        ),
    )
    why = np.where(plan["k"] == 4, "HTTP 400: context_length_exceeded", "")
    said = plots.ice_sentences(t, st.ice_correlations(t, pool, 0), "Nobody", "the truth", why)
    assert (
        said[0].startswith(
            f"This run cannot answer the question. Nobody was asked {len(plan)} questions: 0 (0%)"
        )
        and "hold no number" in said[0]
        and f"In {(plan['k'] == 4).sum()} refusals the prompt" in said[0]
        and "coherence 24 of 24 with 4" in said[2]
        and "says nothing about the method" in said[-1]
    )
