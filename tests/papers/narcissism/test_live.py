"""Self-bias study: cells are the scores of their texts, prompts are used, gaps are counted."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr

from uetrust.core.settings import profile, resolve_checkpoint
from uetrust.nlg.likelihood import NARCISSISM_MODELS
from uetrust.papers.narcissism import live as live
from uetrust.papers.narcissism import tables
from uetrust.papers.narcissism.bias import interaction_residual, mean_matrix, score_panel, standardised_scores
from uetrust.scoring.generators import bank_plan, generator_settings
from uetrust.scoring.metrics import compute_metrics


def test_a_cell_is_the_score_of_its_text(judges, texts, tmp_path):
    panels, gone = live.score_panels(texts, judges, tmp_path, progress=False)
    assert list(panels) == list(live.EVALUATOR_FORMS) and gone == {form: {} for form in live.EVALUATOR_FORMS}
    row = texts.iloc[[9]]
    for name, judge in judges.items():
        scores = compute_metrics(
            row.rename(columns=dict(document="id")),
            {judge.statistic_prefix: resolve_checkpoint(judge.checkpoint)},
            [judge.score, judge.reference_score],
            progress=False,
        ).table.set_index("name")["value"]
        for form, score in zip(live.EVALUATOR_FORMS, (judge.score, judge.reference_score), strict=True):
            assert panels[form].at[(row["document"].iloc[0], "tiny-llama"), name] == pytest.approx(
                scores[score], abs=2e-5
            )


def test_stored_scores_are_not_computed_again(judges, texts, tmp_path):
    one = dict(list(judges.items())[:1])
    first, _ = live.score_panels(texts, one, tmp_path, progress=False)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again, _ = live.score_panels(texts, one, tmp_path, progress=False)
    assert (
        times
        and {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == times
        and all(first[form].equals(again[form]) for form in first)
    )


def test_a_judge_reads_its_prompt(judges, texts, tmp_path):
    prompted = replace(judges["tiny-bart"], prefix="Summarize: ")
    with_prompt = live.score_panels(texts, {"tiny-bart": prompted}, tmp_path, progress=False)[0][
        "reference-free"
    ]
    by_hand = live.score_panels(
        texts.assign(source="Summarize: " + texts["source"]),
        {"tiny-bart": judges["tiny-bart"]},
        tmp_path,
        progress=False,
    )[0]["reference-free"]
    assert with_prompt.equals(by_hand) and not with_prompt.equals(
        live.score_panels(texts, {"tiny-bart": judges["tiny-bart"]}, tmp_path, progress=False)[0][
            "reference-free"
        ]
    )


def test_a_document_without_a_score_is_left_out_everywhere(judges, texts, tmp_path):
    bad = texts.assign(hypothesis=texts["hypothesis"].where(texts.index != 5, ""))
    panels, gone = live.score_panels(
        bad, {"tiny-llama": judges["tiny-llama"], "tiny-bart": judges["tiny-bart"]}, tmp_path, progress=False
    )
    dropped = texts.at[5, "document"]
    assert (
        list(gone["reference-free"]) == [dropped]
        and dropped not in panels["reference-free"].index.unique("document")
        and len(panels["reference-free"]) == 9
    )


def test_what_cannot_be_run_is_named(texts, tmp_path):
    with pytest.raises(
        ValueError, match=r"GPT3-Curie \(retired\).*Cohere-Command \(hosted\).*echo_statistics"
    ):
        live.score_panels(
            texts,
            {name: NARCISSISM_MODELS[name] for name in ("GPT2", "GPT3-Curie", "Cohere-Command")},
            tmp_path,
        )


def test_the_self_effect_is_exact_for_three():
    rng = np.random.default_rng(1)
    names = list("abc")
    scores = score_panel(rng.normal(size=(30, 3, 3)) + 0.8 * np.eye(3), names, names)
    found = live.self_bias(scores, 400, 3)
    residual = interaction_residual(mean_matrix(standardised_scores(scores))).to_numpy()
    sums = [sum(residual[matching[j], j] for j in range(3)) for matching in permutations(range(3))]
    assert (
        found["value"] == pytest.approx(1.5 * np.trace(residual) / 3)
        and found["p"] == pytest.approx(np.mean([total >= np.trace(residual) - 1e-12 for total in sums]))
        and found["matchings"] == 6
        and found["documents"] == 30
    )
    assert found["lo"] < found["value"] < found["hi"] and found["control_hi"] < found["lo"]


def test_relatives_are_compared_with_strangers():
    names = ["x1", "x2", "y1", "y2"]
    like = np.array([[0.0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 2], [0, 0, 2, 0]])
    scores = score_panel(np.stack([like, like]), names, names)
    evaluator = NARCISSISM_MODELS["BART-Base"]
    judges = {name: replace(evaluator, family=name[0], size="", tuned="CNN") for name in names}
    assert live.family_effects(scores, judges) == {
        "family": 1.0
    }  # All are tuned on the same, none has a size


def test_people_and_judges_correlate_as_scipy_says(judges, texts, tmp_path):
    given = texts.assign(human=np.arange(12.0) % 7)
    judge = judges["tiny-llama"]
    keep = [i for i in range(12) if i != 3]  # It has no likelihood for an empty summary
    got = live.human_correlations(
        given.assign(hypothesis=given["hypothesis"].where(given.index != 3, "")),
        {"tiny-llama": judge},
        "reference-based",
        tmp_path,
        progress=False,
    ).set_index("coefficient")
    panels, _ = live.score_panels(given, {"tiny-llama": judge}, tmp_path, progress=False)
    scores = panels["reference-based"]["tiny-llama"].to_numpy()[keep]
    human = given["human"].to_numpy()[keep]
    assert (
        set(got["n"]) == {11}
        and got.at["spearman", "value"] == pytest.approx(spearmanr(scores, human)[0], abs=1e-6)
        and got.at["kendall", "value"] == pytest.approx(kendalltau(scores, human)[0], abs=1e-6)
    )
    groups = given["generator"].to_numpy()[keep]
    assert got.at["spearman", "within"] == pytest.approx(
        np.mean(
            [spearmanr(scores[groups == group], human[groups == group])[0] for group in dict.fromkeys(groups)]
        ),
        abs=1e-6,
    )


def test_judges_read_in_the_number_format_of_their_family(judges, texts, tmp_path):
    "Other scores, beside those in float32 and not in their place, by the panel and by the correlation"
    both = {name: judges[name] for name in ("tiny-bart", "tiny-llama")}
    assert judges["tiny-llama"].statistic_prefix == "gpt"

    def scores(formats=""):
        panels, _ = tables.panels_by_dataset(dict(bulletin=texts), both, tmp_path, formats)
        return panels["bulletin", "reference-free"]

    plain, half = scores(), scores("gpt=bfloat16")
    assert half["tiny-bart"].equals(plain["tiny-bart"]) and scores().equals(plain)
    gap = (half["tiny-llama"] - plain["tiny-llama"]).abs()
    assert 0 < gap.max() < 0.1 * plain["tiny-llama"].std() + 0.1
    one, given = {"tiny-llama": both["tiny-llama"]}, texts.assign(human=np.arange(12.0) % 7)
    got = live.human_correlations(given, one, "reference-free", tmp_path, False, "gpt=bfloat16")
    by_hand = spearmanr(half["tiny-llama"].to_numpy(), given["human"])[0]
    assert got.set_index("coefficient").at["spearman", "value"] == pytest.approx(by_hand, abs=1e-6)
    with pytest.raises(ValueError, match="no group of statistics is called opt"):
        scores("opt=bfloat16")
    with pytest.raises(ValueError, match="no group of statistics is called opt"):
        live.human_correlations(given, one, "reference-free", tmp_path, False, "opt=bfloat16")


def test_people_of_the_benchmarks():
    table = live.human_scored_summaries("summeval")
    assert (
        table.groupby("generator").size().to_dict() == dict.fromkeys(("BART", "T5", "GPT2"), 100)
        and table["human"].between(1, 5).all()
    )
    with pytest.raises(LookupError, match="'summeval'"):
        live.human_scored_summaries("nobody")


def test_the_profile_of_the_paper_resolves():
    banks = profile("narcissism")["cross_evaluation"].split()
    hub = [name for name, evaluator in NARCISSISM_MODELS.items() if evaluator.runs == "hub"]
    plans = [bank_plan("narcissism", bank) for bank in banks]
    assert [(one_plan.dataset, one_plan.generator.name) for one_plan in plans] == [
        (dataset, name) for dataset in ("cnndm-drawn", "xsum-drawn") for name in hub
    ]
    assert all(
        one_plan.generator.model == NARCISSISM_MODELS[one_plan.generator.name].checkpoint
        and one_plan.generator.decoding.samples == 0
        and not one_plan.generator.passes
        and one_plan.data.endswith(":500:42")
        for one_plan in plans
    )
    assert (
        plans[0].generator.decoding.document == "Summarize: {source}"
        and plans[2].generator.decoding.document == "{source}"
    )
    with pytest.raises(ValueError, match="retired"):
        generator_settings("GPT3-Curie")


def test_the_columns_of_an_empty_table_are_those_of_a_full_one():
    names = list("abc")
    scores = score_panel(np.random.default_rng(1).normal(size=(9, 3, 3)), names, names)
    words = pd.Series(range(27), index=scores.index)
    truth = pd.Series(np.random.default_rng(2).normal(size=27), index=scores.index)
    full, empty = (live.evaluator_table(some, words, truth, 50) for some in (scores, scores[:0]))
    assert list(full) == list(empty) and list(full.index) == list(empty.index)
