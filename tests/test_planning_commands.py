"""`uetrust power`, `guarantee` and `dose` on a file, as a user types them."""

import json

import numpy as np
import pandas as pd
import pytest

from uetrust.app.cli import main
from uetrust.evaluation.inference.guarantee import rejection_guarantee
from uetrust.evaluation.inference.next_labels import next_labels
from uetrust.evaluation.inference.power import power_table


@pytest.fixture
def pilot(tmp_path):
    rng = np.random.default_rng(7)
    human, documents = np.repeat(rng.normal(size=150), 2), np.repeat(np.arange(150), 2)
    df = pd.DataFrame(dict(human=human, article=documents, good=-human + rng.normal(size=300)))
    df = df.assign(fair=-human + 3 * rng.normal(size=300), label=(human > -0.8).astype(int))
    df = df.assign(rouge=human + rng.normal(size=300), first=human + rng.normal(size=300))
    df = df.assign(second=human + rng.normal(size=300), judge=np.clip(np.round(3 + human), 1, 5))
    df.to_csv(tmp_path / "pilot.csv", index=False)
    return tmp_path / "pilot.csv"


def call(capsys, *argv):
    code = main([str(word) for word in argv])
    return code, *capsys.readouterr()


def test_power_plans_by_document_and_by_annotator(pilot, capsys):
    options = ("--quality", "human", "--uncertainty", "good", "fair")
    df = pd.read_csv(pilot)
    rows = json.loads(call(capsys, "power", pilot, *options, "--json")[1])
    want = power_table(df["human"], df[["good", "fair"]])
    assert [row["texts"] for row in rows] == list(want["texts"])
    by_document = json.loads(call(capsys, "power", pilot, *options, "--document", "article", "--json")[1])
    assert (
        by_document[2]["units"] == 150
        and by_document[2]["texts"]
        == power_table(df["human"], df[["good", "fair"]], df["article"])["texts"].iloc[2]
    )
    code, out, _ = call(
        capsys, "power", pilot, "--annotators", "first", "second", "--uncertainty", "good", "fair"
    )
    assert code == 0 and "To tell good from fair with 80% power takes" in out and "judgements" in out


def test_a_wanted_power_is_said_and_used(pilot, capsys):
    options = ("power", pilot, "--quality", "human", "--uncertainty", "good", "fair")
    assert "with 95% power" in call(capsys, *options, "--power", "0.95")[1]
    low, high = (
        json.loads(call(capsys, *options, "--json", "--power", power)[1])[2]["texts"]
        for power in ("0.5", "0.95")
    )
    assert high > 2 * low


def test_a_guarantee_is_promised_from_a_file(pilot, capsys):
    df = pd.read_csv(pilot)
    options = ("--quality", "label", "--uncertainty", "good", "--alpha", "0.15", "--json")
    row = json.loads(call(capsys, "guarantee", pilot, *options)[1])[0]
    want = rejection_guarantee(df["label"], df["good"], 0.15)
    assert (row["threshold"], row["p"]) == pytest.approx((want.threshold, want.p))
    by_document = json.loads(call(capsys, "guarantee", pilot, *options, "--document", "article")[1])[0]
    assert by_document["units"] == 150 and by_document["bound"] == "betting"
    code, out, _ = call(capsys, "guarantee", pilot, *options[:-1])
    assert code == 0 and "With probability 90% the risk of kept texts is at most 0.15" in out


def test_several_methods_share_the_probability_of_a_broken_promise(pilot, capsys):
    options = ("--quality", "label", "--uncertainty", "good", "fair", "--alpha", "0.2", "--json")
    rows = json.loads(call(capsys, "guarantee", pilot, *options)[1])
    assert [row["delta"] for row in rows] == [0.05, 0.05]


def test_a_judge_needs_its_scale_or_a_line(pilot, capsys):
    options = ("--quality", "judge", "--uncertainty", "good", "--alpha", "0.4")
    code, out, err = call(capsys, "guarantee", pilot, *options)
    assert code == 2 and "pilot.csv: quality must lie on the scale 0 to 1" in err and out == ""
    assert "betting test" in call(capsys, "guarantee", pilot, *options, "--scale", "1:5")[1]
    assert "binomial test" in call(capsys, "guarantee", pilot, *options, "--tau", "3")[1]


def test_an_expectation_is_promised_on_average(pilot, capsys):
    options = ("--quality", "label", "--uncertainty", "good", "--expectation")
    assert "at most 10% of new texts on average" in call(capsys, "guarantee", pilot, *options)[1]


def test_dose_says_how_good_a_metric_must_be(pilot, capsys):
    options = ("--truth", "human", "--metric", "rouge", "--uncertainty", "good", "fair")
    code, out, _ = call(capsys, "dose", pilot, *options, "--texts", "400")
    assert code == 0 and "By the truth good is better than fair" in out and "With 400 texts" in out
    rows = json.loads(call(capsys, "dose", pilot, *options, "--json")[1])
    for row in rows:
        assert row["ratio"] * row["truth"] + row["error"] == pytest.approx(row["metric"])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("power", "--quality", "humen", "--uncertainty", "good"), "Did you mean ['human']"),
        (("power", "--uncertainty", "good"), "--quality, or single judgements with --annotators"),
        (
            ("power", "--annotators", "first", "--uncertainty", "good"),
            "needs at least 2 columns of judgements",
        ),
        (
            ("guarantee", "--quality", "label", "--uncertainty", "good", "--alpha", "2"),
            "alpha must lie between",
        ),
        (("guarantee", "--quality", "label", "--uncertainty", "good", "--scale", "5"), "LOWEST:HIGHEST"),
        (("dose", "--truth", "human", "--metric", "rouge", "--uncertainty", "good"), "at least 2 columns"),
    ],
)
def test_wrong_commands_are_answered_in_one_line(pilot, capsys, argv, said):
    code, _, err = call(capsys, argv[0], pilot, *argv[1:])
    assert code == 2 and said in err and "Traceback" not in err


def test_the_audit_plans_the_next_study_and_promises_where_it_can(pilot, capsys):
    options = ("--uncertainty", "good", "fair", "--document", "article")
    out = call(capsys, "audit", pilot, "--quality", "human", *options)[1]
    assert "Power of the next study: To tell good from fair" in out and "guarantee" not in out
    found = json.loads(call(capsys, "audit", pilot, "--quality", "label", *options, "--json")[1])
    panels = found["panels"]
    plan = panels["next_study"]["table"]
    assert [row["second"] for row in plan] == ["chance", "fair"]
    df = pd.read_csv(pilot)
    row = next(r for r in panels["promised_risk"]["table"] if (r["method"], r["alpha"]) == ("good", 0.2))
    want = rejection_guarantee(df["label"], df["good"], 0.2, 0.05, clusters=df["article"])
    assert row["threshold"] == pytest.approx(want.threshold)
    assert "divided among 2 methods" in panels["promised_risk"]["sentence"]


def test_next_labels_are_drawn_and_their_probabilities_kept(pilot, capsys, tmp_path):
    df = pd.read_csv(pilot)
    df.assign(human=df["human"].where(df.index < 60)).to_csv(pilot, index=False)
    options = ("--metrics", "rouge", "--uncertainty", "good", "fair", "--n", 40, "--labels", "human")
    rows = json.loads(
        call(capsys, "next-labels", pilot, *options, "--json", "--out", tmp_path / "all.csv")[1]
    )
    every = pd.read_csv(tmp_path / "all.csv")
    assert len(rows) == every["next"].sum() == 40 and len(every) == 300
    assert [row["text"] for row in rows] == list(every["text"][every["next"]])
    assert not every["next"].iloc[:60].any()
    want = next_labels(df[["rouge"]], df[["good", "fair"]], 40, df["human"].where(df.index < 60))
    np.testing.assert_allclose(every["probability"], want["probability"])
    code, _, told = call(capsys, "next-labels", pilot, *options[:-4], "--n", 400)
    assert code == 2 and "pilot.csv: 400 texts cannot be drawn: 300 of 300 have no label" in told
