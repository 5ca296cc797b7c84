"""Answers judged by people: PRR as computed elsewhere, and what a choice by each metric costs."""

import numpy as np
import pytest

from uetrust.data.answers import EVOUNA_SYSTEMS
from uetrust.papers.people import answers


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


def test_sentences_name_the_system_in_which_the_judges_differ_most(judged):
    rows = answers.answers_prr({name: judged[name] for name in ("fid", "gpt35")})
    said = answers.answer_length_sentence(rows)
    assert (
        "for GPT-3.5, where the two differ most, the PRR of the length alone is 0.56 [" in said
        and "and 0.05 [" in said
    )
    assert "In 1 of 2 systems" in said
    assert "0.58 [" in answers.other_systems_sentence(rows)


def test_panels_have_people_first(judged):
    rows = answers.answers_prr(dict(fid=judged["fid"]))
    panels = answers.method_panels(rows, ("answer_length", "other_systems_f1"))
    assert list(dict.fromkeys(panels["group"])) == ["answer_length", "other_systems_f1"]
    assert set(panels["series"]) == {"people", "lexical match", "token F1"}
