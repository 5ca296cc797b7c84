"""Audit panels on people's labels: a truth with gaps, and a judge next to people."""

# ruff: noqa: F811

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.few_labels import (
    labels_of,
    texts,  # noqa: F401
)
from uetrust import audit, prr_from_labels
from uetrust.evaluation.inference.noisy_judge import corrected_for_judge, judge_accuracy
from uetrust.report.audit_labels import judge_as_instrument
from uetrust.report.pitfalls import Audited


def test_audit_of_a_truth_with_gaps(texts, tmp_path, capsys):
    "The command line tells the PRR of all texts, and what labels alone would tell."
    from uetrust.cli.cli import main

    scores = texts.assign(human=labels_of(texts, 100)).rename_axis("sample").reset_index()
    scores[["sample", "human", "close", "unsure"]].to_csv(tmp_path / "scores.csv", index=False)
    words = ["--id", "sample", "--quality", "human", "close", "--truth", "human", "--uncertainty", "unsure"]
    assert main(["audit", str(tmp_path / "scores.csv"), *words]) == 0
    reported = " ".join(capsys.readouterr().out.split())
    assert "If the 100 texts with human were drawn evenly at random from the 600, unsure has" in reported
    found = prr_from_labels(scores["human"], scores[["close"]], scores["unsure"])
    assert f"{found.value:.3f} [{found.lo:.3f}, {found.hi:.3f}]" in reported


def answers(n=400, labels=120, follow=0.0, seed=0):
    "Answers judged right or wrong: by people in part, by a judge and by a second one that guesses"
    rng = np.random.default_rng(seed)
    right = rng.random(n) < 0.7
    unsure = rng.normal(size=n) - right
    missed = np.clip(0.1 + follow * unsure, 0, 1)
    judge = np.where(right, rng.random(n) >= missed, rng.random(n) < 0.2).astype(float)
    human = np.where(rng.permutation(n) < labels, right, np.nan)
    guess = (rng.random(n) < 0.7).astype(float)
    return pd.DataFrame(dict(human=human, judge=judge, guess=guess, unsure=unsure, doc=np.arange(n) // 2))


def audit_output(tmp_path, capsys, df, *options):
    from uetrust.cli.cli import main

    df.to_csv(tmp_path / "answers.csv", index=False)
    words = ["--uncertainty", "unsure", "--quality", "human", "guess", "judge", *options]
    assert main(["audit", str(tmp_path / "answers.csv"), *words]) == 0
    return capsys.readouterr().out


def test_the_command_shows_the_judge_as_an_instrument(tmp_path, capsys):
    df = answers()
    panels = json.loads(audit_output(tmp_path, capsys, df, "--json"))["panels"]
    table = pd.DataFrame(panels["judge_as_instrument"]["table"]).set_index(["judge", "rate"])
    known = judge_accuracy(df["judge"], df["human"], draws=400).set_index("rate")
    for rate in ("sensitivity", "specificity", "kappa", "right_by_people", "agreement_by_chance"):
        assert tuple(table.loc[("judge", rate), ["value", "lo", "hi"]]) == pytest.approx(
            tuple(known.loc[rate, ["value", "lo", "hi"]])
        )
    assert table.at[("guess", "kappa"), "value"] < 0.3 < table.at[("judge", "kappa"), "value"]
    kappa = known.loc["kappa"]
    assert "On the 120 of 400 texts with both labels judge calls" in panels["judge_as_instrument"]["sentence"]
    shown = f"Kappa is {kappa['value']:.2f} [{kappa['lo']:.2f}, {kappa['hi']:.2f}]"
    assert shown in panels["judge_as_instrument"]["sentence"]


def test_the_command_shows_a_measure_four_ways(tmp_path, capsys):
    df = answers()
    words = " ".join(audit_output(tmp_path, capsys, df).split())
    panels = json.loads(audit_output(tmp_path, capsys, df, "--json"))["panels"]
    rows = pd.DataFrame(panels["judge_corrected"]["table"]).set_index(["judge", "measure", "by"])
    assert len(rows) == 2 * 3 * 4
    fixed = corrected_for_judge(df["unsure"], df["judge"], df["human"], draws=400)
    powered = prr_from_labels(df["human"], df[["judge"]], df["unsure"])
    for by, found in {"corrected": fixed, "prediction-powered": powered}.items():
        row = rows.loc[("judge", "prr", by)]
        assert tuple(row[["value", "lo", "hi"]]) == pytest.approx((found.value, found.lo, found.hi))
        assert (row["n_labels"], row["n"]) == (120, 400)
    assert "unsure by a judge with errors: If the labelled texts are like the others, unsure has" in words


def test_errors_that_follow_the_uncertainty_are_reported(tmp_path, capsys):
    for follow, reported in {0.0: False, 0.15: True}.items():
        df = answers(2000, 800, follow)
        words = " ".join(audit_output(tmp_path, capsys, df.assign(guess=df["judge"])).split())
        assert ("The correction: the judge's errors follow the uncertainty (p = 0.0" in words) == reported


def test_documents_are_the_unit_of_the_panels(tmp_path, capsys):
    df = pd.concat([answers(), answers()], ignore_index=True)
    df["doc"] = np.tile(np.arange(400), 2)
    width = {}
    for name, options in dict(plain=(), named=("--document", "doc")).items():
        panel = json.loads(audit_output(tmp_path, capsys, df, "--json", *options))["panels"][
            "judge_as_instrument"
        ]
        rates = pd.DataFrame(panel["table"]).set_index(["judge", "rate"])
        width[name] = rates.at[("judge", "sensitivity"), "hi"] - rates.at[("judge", "sensitivity"), "lo"]
    assert width["named"] > 1.2 * width["plain"]


@pytest.mark.parametrize(
    "change",
    [
        dict(human=np.arange(400) % 5.0),  # People grade
        dict(judge=np.linspace(0, 1, 400), guess=0.5),  # Judges grade, or say always the same
        dict(human=np.where(np.arange(400) < 3, [1, 0] * 200, np.nan)),  # 3 labels
    ],
)
def test_without_two_that_say_right_or_wrong_there_is_no_panel(change, tmp_path, capsys):
    df = answers().assign(**change)
    panels = json.loads(audit_output(tmp_path, capsys, df, "--json"))["panels"]
    assert not {"judge_as_instrument", "judge_corrected"} & set(panels)


@pytest.mark.parametrize("documents, there", [(2, False), (3, True)])
def test_labels_of_two_documents_are_too_few(documents, there):
    df = answers(labels=400).assign(doc=np.arange(400) // 20)
    df.loc[df["doc"] >= documents, "human"] = np.nan
    given = Audited(df[["human", "judge"]], df[["unsure"]], "human", document=df["doc"], by_people=True)
    assert (judge_as_instrument(given) is not None) == there


def test_a_metric_that_is_no_people_is_no_truth_unless_it_is_named():
    df = answers().rename(columns=dict(human="exact_match"))
    columns = dict(uncertainty="unsure", quality=["exact_match", "judge"])
    assert "judge_as_instrument" not in audit(df, **columns).panels
    assert "judge_as_instrument" in audit(df, **columns, truth="exact_match").panels


def test_a_judge_that_tells_nothing_has_no_corrected_value():
    df = answers()
    df["judge"] = 1 - df["judge"]
    reported = audit(df, uncertainty="unsure", quality=["human", "judge"]).panels["judge_corrected"].sentence
    assert "undefined corrected as if" in reported and "this judge tells nothing" in reported
