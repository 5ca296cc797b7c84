"""Every model writes and judges: cells are the scores of their texts, prompts are read, gaps are counted, the profile of the paper resolves."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr

from uetrust.core.settings import profile
from uetrust.data.bulletins import bulletins
from uetrust.nlg.likelihood import EVALUATORS
from uetrust.papers.narcissism import live as st
from uetrust.papers.narcissism.bias import interaction_residual, mean_matrix, panel, standardised
from uetrust.scoring.generators import generator, plan
from uetrust.scoring.metrics import grade
from uetrust.scoring.pipeline import place


@pytest.fixture(scope="module")
def judges():
    return {n: st.judge_of(generator(n)) for n in ("tiny-bart", "tiny-t5", "tiny-llama")}


@pytest.fixture(scope="module")
def texts():
    b = bulletins("test", 4)

    def by(g, said):
        return pd.DataFrame(
            dict(document=b["id"], generator=g, hypothesis=said, source=b["source"], reference=b["reference"])
        )

    return pd.concat(
        [
            by("tiny-bart", b["reference"]),
            by("tiny-t5", b["paraphrase"]),
            by("tiny-llama", ["Rain fell.", "The town is old.", "A vote.", "No."]),
        ],
        ignore_index=True,
    )


def test_a_cell_is_the_score_of_its_text(judges, texts, tmp_path):
    panels, gone = st.grids(texts, judges, tmp_path, progress=False)
    assert list(panels) == list(st.FORMS) and gone == {f: [] for f in st.FORMS}
    r = texts.iloc[[9]]
    for n, e in judges.items():
        t = grade(
            r.rename(columns=dict(document="id")),
            {e.leaves: place(e.checkpoint)},
            [e.score, e.reference_score],
            progress=False,
        ).set_index("name")["value"]
        for form, score in zip(st.FORMS, (e.score, e.reference_score), strict=True):
            assert panels[form].at[(r["document"].iloc[0], "tiny-llama"), n] == pytest.approx(
                t[score], abs=2e-5
            )


def test_scores_on_file_are_not_read_again(judges, texts, tmp_path):
    one = dict(list(judges.items())[:1])
    first, _ = st.grids(texts, one, tmp_path, progress=False)
    times = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    again, _ = st.grids(texts, one, tmp_path, progress=False)
    assert (
        times
        and {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == times
        and all(first[f].equals(again[f]) for f in first)
    )


def test_a_judge_reads_its_prompt(judges, texts, tmp_path):
    asked = replace(judges["tiny-bart"], prefix="Summarize: ")
    with_prompt = st.grids(texts, {"tiny-bart": asked}, tmp_path, progress=False)[0]["reference-free"]
    by_hand = st.grids(
        texts.assign(source="Summarize: " + texts["source"]),
        {"tiny-bart": judges["tiny-bart"]},
        tmp_path,
        progress=False,
    )[0]["reference-free"]
    assert with_prompt.equals(by_hand) and not with_prompt.equals(
        st.grids(texts, {"tiny-bart": judges["tiny-bart"]}, tmp_path, progress=False)[0]["reference-free"]
    )


def test_a_document_without_a_score_is_left_out_everywhere(judges, texts, tmp_path):
    bad = texts.assign(hypothesis=texts["hypothesis"].where(texts.index != 5, ""))
    panels, gone = st.grids(
        bad, {"tiny-llama": judges["tiny-llama"], "tiny-bart": judges["tiny-bart"]}, tmp_path, progress=False
    )
    lost = texts.at[5, "document"]
    assert (
        gone["reference-free"] == [lost]
        and lost not in panels["reference-free"].index.unique("document")
        and len(panels["reference-free"]) == 9
    )


def test_what_cannot_be_run_is_named(texts, tmp_path):
    with pytest.raises(ValueError, match=r"GPT3-Curie \(retired\).*Cohere-Command \(hosted\).*echo_leaves"):
        st.grids(texts, {n: EVALUATORS[n] for n in ("GPT2", "GPT3-Curie", "Cohere-Command")}, tmp_path)


def test_the_self_effect_is_exact_for_three():
    rng = np.random.default_rng(1)
    names = list("abc")
    scores = panel(rng.normal(size=(30, 3, 3)) + 0.8 * np.eye(3), names, names)
    b = st.self_bias(scores, 400, 3)
    r = interaction_residual(mean_matrix(standardised(scores))).to_numpy()
    sums = [sum(r[p[j], j] for j in range(3)) for p in permutations(range(3))]
    assert (
        b["value"] == pytest.approx(1.5 * np.trace(r) / 3)
        and b["p"] == pytest.approx(np.mean([s >= np.trace(r) - 1e-12 for s in sums]))
        and b["matchings"] == 6
        and b["documents"] == 30
    )
    assert b["lo"] < b["value"] < b["hi"] and b["control_hi"] < b["lo"]
    assert f"lambda = {b['value']:.3f}" in st.sentence("reference-free", b) and "30 documents" in st.sentence(
        "reference-free", b
    )


def test_relatives_are_compared_with_strangers():
    names = ["x1", "x2", "y1", "y2"]
    like = np.array([[0.0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 2], [0, 0, 2, 0]])
    scores = panel(np.stack([like, like]), names, names)
    e = EVALUATORS["BART-Base"]
    judges = {n: replace(e, family=n[0], size="", tuned="CNN") for n in names}
    assert st.kin(scores, judges) == {"family": 1.0}  # All are tuned on the same, none has a size


def test_people_and_judges_correlate_as_scipy_says(judges, texts, tmp_path):
    given = texts.assign(human=np.arange(12.0) % 7)
    e, keep = (
        judges["tiny-llama"],
        [i for i in range(12) if i != 3],
    )  # It has no likelihood for an empty summary
    got = st.with_people(
        given.assign(hypothesis=given["hypothesis"].where(given.index != 3, "")),
        {"tiny-llama": e},
        "reference-based",
        tmp_path,
        progress=False,
    ).set_index("coefficient")
    x, h = (
        st.grids(given, {"tiny-llama": e}, tmp_path, progress=False)[0]["reference-based"][
            "tiny-llama"
        ].to_numpy()[keep],
        given["human"].to_numpy()[keep],
    )
    assert (
        set(got["n"]) == {11}
        and got.at["spearman", "value"] == pytest.approx(spearmanr(x, h)[0], abs=1e-6)
        and got.at["kendall", "value"] == pytest.approx(kendalltau(x, h)[0], abs=1e-6)
    )
    groups = given["generator"].to_numpy()[keep]
    assert got.at["spearman", "within"] == pytest.approx(
        np.mean([spearmanr(x[groups == g], h[groups == g])[0] for g in dict.fromkeys(groups)]), abs=1e-6
    )


def test_people_of_the_benchmarks():
    t = st.people("summeval")
    assert (
        t.groupby("generator").size().to_dict() == dict.fromkeys(("BART", "T5", "GPT2"), 100)
        and t["human"].between(1, 5).all()
    )
    with pytest.raises(LookupError, match="'summeval'"):
        st.people("nobody")


def test_the_profile_of_the_paper_resolves():
    banks = profile("narcissism")["grid"].split()
    hub = [n for n, e in EVALUATORS.items() if e.runs == "hub"]
    plans = [plan("narcissism", b) for b in banks]
    assert [(p.dataset, p.generator.name) for p in plans] == [(d, n) for d in ("cnndm", "xsum") for n in hub]
    assert all(
        p.generator.model == EVALUATORS[p.generator.name].checkpoint
        and p.generator.decoding.samples == 0
        and not p.generator.passes
        and p.data.endswith(":500")
        for p in plans
    )
    assert (
        plans[0].generator.decoding.document == "Summarize: {source}"
        and plans[2].generator.decoding.document == "{source}"
    )
    with pytest.raises(ValueError, match="retired"):
        generator("GPT3-Curie")
