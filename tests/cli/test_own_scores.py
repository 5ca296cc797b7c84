"""`uetrust power`, `guarantee` and `dose` on a file, as a user types them."""

import io
import json
from dataclasses import is_dataclass
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest

from tests.helpers.cli import call
from tests.helpers.command_runs import APPS
from uetrust.evaluation.inference.dose import metric_needs, prr_parts
from uetrust.evaluation.inference.guarantee import expected_guarantee, rejection_guarantee
from uetrust.evaluation.inference.next_labels import next_labels
from uetrust.evaluation.inference.power import annotator_table, power_table
from uetrust.evaluation.prr import prr


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


def test_the_plan_by_annotators_is_printed_and_written_too(pilot, capsys, tmp_path):
    words = ("power", pilot, "--annotators", "first", "second", "--uncertainty", "good", "fair")
    df, out = pd.read_csv(pilot), tmp_path / "power.csv"
    rows = pd.DataFrame(json.loads(call(capsys, *words, "--json", "--out", out)[1]))
    want = annotator_table(df[["first", "second"]], df[["good", "fair"]])
    assert rows["annotators"].isna().tolist() == [True] * 3 + [False] * 6
    of_people = rows[rows["annotators"].notna()].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_people[list(want)], want, check_dtype=False, rtol=0)
    printed = pd.read_csv(io.StringIO(call(capsys, *words, "--csv")[1]))
    for table in (printed, pd.read_csv(out)):
        assert list(table) == list(rows)
        pd.testing.assert_frame_equal(
            table.drop(columns="note"), rows.drop(columns="note"), check_dtype=False
        )


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
    assert "betting test" in call(capsys, "guarantee", pilot, *options, "--scale", "judge=1:5")[1]
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
    df, best = pd.read_csv(pilot), ["good", "fair"]
    parts = prr_parts(df["human"], df["rouge"], df[best])
    spread = power_table(df["rouge"], df[best])["unit_sd"].iloc[-1]
    needs = metric_needs(parts, 300, spread)._asdict()
    assert all(dict(n=300, **needs).items() <= row.items() for row in rows)
    assert {"n", *needs} < set(call(capsys, "dose", pilot, *options, "--csv")[1].splitlines()[0].split(","))


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("power", "--quality", "humen", "--uncertainty", "good"), "Did you mean 'human'?"),
        (("power", "--uncertainty", "good"), "--quality, or single judgements with --annotators"),
        (
            ("power", "--annotators", "first", "--uncertainty", "good"),
            "needs at least 2 columns of judgements",
        ),
        (
            ("guarantee", "--quality", "label", "--uncertainty", "good", "--alpha", "2"),
            "--alpha: needs a number above 0 and below 1, such as 0.1, got '2'",
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
    want = rejection_guarantee(df["label"], df["good"], 0.2, 0.05, document=df["article"].astype(str))
    assert row["threshold"] == pytest.approx(want.threshold)
    assert "divided among 2 methods" in panels["promised_risk"]["sentence"]


def test_next_labels_are_drawn_and_their_probabilities_kept(pilot, capsys, tmp_path):
    df = pd.read_csv(pilot)
    df.assign(human=df["human"].where(df.index < 60)).to_csv(pilot, index=False)
    options = ("--metric", "rouge", "--uncertainty", "good", "fair", "--n", 40, "--truth", "human")
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


def test_next_labels_say_what_is_missing(pilot, capsys):
    df = pd.read_csv(pilot)
    df["good"], df["rouge"] = df["good"].mask(df.index % 6 == 0), df["rouge"].mask(df.index % 7 == 0)
    df.assign(human=df["human"].where(df.index % 6 == 1)).to_csv(pilot, index=False)
    words = ("--metric", "rouge", "--uncertainty", "good", "--n", 5, "--every", "--csv", "--truth", "human")
    code, out, err = call(capsys, "next-labels", pilot, *words)
    assert code == 0 and len(out.splitlines()) == 251
    assert "50 of 300 texts have no uncertainty and cannot be drawn\n" in err
    assert "rouge is missing for 35 of 250 texts, where its median stands\n" in err


UNLIKELY = ("0", "1", "2", "-1", "nan", "inf", "x")  # No probabilities
NO_COUNT = ("0", "-5", "nan", "inf", "2.5", "1e3", "x")
GUARANTEE = ("guarantee", "--quality", "label", "--uncertainty", "good")
DOSE = ("dose", "--truth", "human", "--metric", "rouge", "--uncertainty", "good", "fair")
NEXT = ("next-labels", "--metric", "rouge", "--uncertainty", "good")
REFUSED = {
    ("power", "--quality", "human", "--uncertainty", "good"): {"--level": UNLIKELY, "--power": UNLIKELY},
    GUARANTEE: {"--alpha": UNLIKELY, "--delta": UNLIKELY, "--tau": ("nan", "inf", "-inf", "x")},
    (*GUARANTEE, "--expectation"): {"--alpha": UNLIKELY, "--tau": ("nan", "inf")},
    DOSE: {"--texts": NO_COUNT, "--target": (*UNLIKELY, "0.5")},
    NEXT: {"--n": NO_COUNT, "--seed": ("-1", "0.5")},
    ("prr", "--quality", "human", "--uncertainty", "good"): {"--max-rejection": ("0", "1.1", "nan", "-1")},
}


@pytest.mark.parametrize(
    ("argv", "option", "value"),
    [
        (argv, option, value)
        for argv, of in REFUSED.items()
        for option, values in of.items()
        for value in values
    ],
)
def test_a_number_that_an_option_cannot_mean_is_refused_by_name(pilot, capsys, argv, option, value):
    code, out, err = call(capsys, argv[0], pilot, *argv[1:], f"{option}={value}")
    assert code == 2 and not out and err.count("\n") == 1, (out, err)
    assert (
        f"Invalid value for {option}: needs a" in err and f"got '{value}'. `uetrust {argv[0]} --help`" in err
    )


def _members(hint):  # Types of a union
    return set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else set()


def plain_numbers(hints):
    "Options whose type is a plain int or float, groups of options included"
    found = set()
    for name, hint in hints.items():
        if is_dataclass(hint):
            found |= plain_numbers(get_type_hints(hint, include_extras=True))
        elif {int, float} & ({hint} if isinstance(hint, type) else _members(hint)):
            found.add(name)
    return found


@pytest.mark.parametrize("name", sorted(APPS))
def test_every_number_of_every_command_is_checked_where_it_is_typed(name):
    "A plain int takes 2.5 for 2, and a plain float takes nan; prices are checked where they are used"
    hints = get_type_hints(APPS[name].default_command, include_extras=True)
    assert plain_numbers(hints) <= {"price_in", "price_out", "budget"}


def test_python_users_are_answered_alike(pilot):
    df = pd.read_csv(pilot)
    for options in (dict(level=2), dict(level=0), dict(power=1), dict(power=np.nan)):
        with pytest.raises(ValueError, match="must lie between 0 and 1, got"):
            power_table(df["human"], df[["good"]], **options)
    for promise in (rejection_guarantee, expected_guarantee):
        for options, said in (
            (dict(tau=np.nan), "tau must be a finite number, got nan"),
            (dict(tau=np.inf), "tau must be a finite number, got inf"),
            (dict(alpha=np.nan), "alpha must lie between 0 and 1, got nan"),
            (dict(scale=(1, 0)), "a scale is .* two finite numbers"),
            (dict(scale=(0, np.nan)), "a scale is .* two finite numbers"),
        ):
            with pytest.raises(ValueError, match=said):
                promise(df["label"], df["good"], **options)
    parts = prr_parts(df["human"], df["rouge"], df[["good", "fair"]])
    for texts in (0, -5, 2.5, np.nan, np.inf):
        with pytest.raises(ValueError, match="texts must be a whole number from 1, got"):
            metric_needs(parts, texts)
    for confidence in (0.5, 1, np.nan):
        with pytest.raises(ValueError, match="confidence must lie between 0.5 and 1, got"):
            metric_needs(parts, 100, confidence=confidence)
    for n in (0, -3, 2.5, np.nan):
        with pytest.raises(ValueError, match="n must be a whole number from 1, got"):
            next_labels(df[["rouge"]], df[["good"]], n)


@pytest.mark.parametrize("value", [2, -0.1, np.nan, 0])
def test_probabilities_of_labels_that_are_none_are_refused(pilot, capsys, value):
    df = pd.read_csv(pilot)
    drawn = pd.Series(0.5, df.index).mask(df.index == 3, value)
    df.assign(human=df["human"].where(df.index < 60), drawn=drawn).to_csv(pilot, index=False)
    code, _, err = call(capsys, *NEXT[:1], pilot, *NEXT[1:], "--truth", "human", "--probability", "drawn")
    assert code == 2 and err.count("\n") == 1 and f"is {value:g}: it must lie above 0 and at most at 1" in err


def test_a_text_that_could_not_be_drawn_has_probability_0_without_a_label(pilot, capsys):
    df = pd.read_csv(pilot)
    labels = df["human"].where(df.index < 60)
    drawn = pd.Series(0.5, df.index).mask(df.index > 200, 0)
    df.assign(human=labels, drawn=drawn).to_csv(pilot, index=False)
    assert call(capsys, *NEXT[:1], pilot, *NEXT[1:], "--truth", "human", "--probability", "drawn")[0] == 0


def test_names_in_the_json_of_the_audit_are_those_of_the_columns(pilot, capsys):
    names = dict(good="NaN_score", fair="-Infinity u", human="Infinity")
    df = pd.read_csv(pilot).rename(columns=names)
    df.iloc[:3].assign(flat=1.0).to_csv(pilot, index=False)  # Of three texts there is no error
    out = call(
        capsys, "audit", pilot, "--quality", "Infinity", "--uncertainty", "NaN_score,-Infinity u", "--json"
    )[1]
    found = json.loads(out, parse_constant=pytest.fail)
    assert {row["method"] for row in found["prr"]} >= {"NaN_score", "-Infinity u"}
    assert {row["metric"] for row in found["prr"]} == {"Infinity"} and "null_score" not in out
    assert ": null" in out


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    quality = rng.normal(size=30)
    return pd.DataFrame(
        dict(
            sample=[f"s{i}" for i in range(30)],
            rouge=quality,
            judge=np.clip(np.round(5 + quality), 1, 10),
            msp=-quality + rng.normal(size=30),
            sets=rng.integers(1, 4, 30),
        )
    )


@pytest.mark.parametrize("end", ["csv", "parquet", "jsonl", "json"])
def test_prr_prints_the_numbers_of_the_library(scores, tmp_path, capsys, end):
    file = tmp_path / f"scores.{end}"
    write = dict(
        csv=lambda: scores.to_csv(file, index=False),
        parquet=lambda: scores.to_parquet(file),
        jsonl=lambda: scores.to_json(file, orient="records", lines=True),
        json=lambda: scores.to_json(file, orient="records"),
    )
    write[end]()
    options = "--id sample --quality rouge judge --uncertainty msp sets --json".split()
    code, out, _ = call(capsys, "prr", file, *options)
    found = {(row["method"], row["metric"]): row for row in json.loads(out)}
    assert code == 0 and len(found) == 4
    for (method, metric), row in found.items():
        assert row["value"] == pytest.approx(prr(scores[metric], scores[method]).value, abs=1e-8)
        assert row["n"] == 30
    assert "tied" in found["sets", "rouge"]["note"]


def test_options_reach_the_library(scores, tmp_path, capsys):
    file = tmp_path / "s.csv"
    clusters = [i // 3 for i in range(30)]
    scores.assign(doc=clusters).to_csv(file, index=False)
    options = "--quality rouge --uncertainty sets --area sum --ties worst --document doc --json".split()
    row = json.loads(call(capsys, "prr", file, *options)[1])[0]
    want = prr(scores.rouge, scores.sets, area="sum", ties="worst", document=clusters)
    assert (row["value"], row["se"]) == pytest.approx((want.value, want.se), abs=1e-8)
    options = "--quality rouge --uncertainty msp --compat he2024 --json".split()
    row = json.loads(call(capsys, "prr", file, *options)[1])[0]
    assert row["value"] == pytest.approx(prr(scores.rouge, scores.msp, compat="he2024").value, abs=1e-8)


MALFORMED = dict(
    wrong_column=("sample,rogue,msp\na,1,2\nb,2,1\nc,3,3\n", "has no column 'rouge'. Did you mean 'rogue'?"),
    text=("sample,rouge,msp\na,1,2\nb,good,1\nc,3,3\n", "'good' at sample b"),
    empty=("", "is empty: it has no header"),
    header_only=("sample,rouge,msp\n", "is empty"),
    one_row=("sample,rouge,msp\na,1,2\n", "has 1 sample;"),
    all_equal=("sample,rouge,msp\na,1,2\nb,1,3\nc,1,4\n", "constant quality"),
    all_uncertain_alike=("sample,rouge,msp\na,1,2\nb,2,2\nc,3,2\n", "nothing is ranked"),
    twice=("sample,rouge,msp\na,1,2\na,2,1\nc,3,3\n", "duplicated sample names: a"),
    infinite=("sample,rouge,msp\na,1,2\nb,inf,1\nc,3,3\n", "must be finite"),
    all_missing=("sample,rouge,msp\na,,2\nb,,1\nc,,3\n", "0 pairs"),
    ragged=("sample,rouge,msp\na,1,2\nb,2,1,9,9\nc,3,3\n", "line 3 has 5 fields"),
)


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_explained(name, tmp_path, capsys):
    text, says = MALFORMED[name]
    file = tmp_path / f"{name}.csv"
    file.write_text(text)
    code, out, err = call(capsys, "prr", file, "--id", "sample", "--quality", "rouge", "--uncertainty", "msp")
    assert code == 2 and out == "" and says in err and file.name in err and "Traceback" not in err


@pytest.mark.parametrize(
    "argv,says",
    [
        (("--quality", "rouge", "--scale", "judge"), "COLUMN=LOWEST:HIGHEST"),
        (("--quality", "rouge", "--scale", "rouge=0:.1"), "off its scale"),
        (("--quality", "rouge", "--max-rejection", "2"), "--max-rejection"),
        (("--quality", "rouge", "--scale", "jugde=1:2"), "scale names ['jugde'], but quality is ['rouge']"),
        (("--quality", "rouge", "--compat", "he2024", "--ties", "best"), "--ties: he2024 has its own order"),
        (("--quality", "rouge", "--compat", "he2024", "--ties", "average"), "--ties: he2024 has its own"),
    ],
)
def test_wrong_options_are_explained(scores, tmp_path, capsys, argv, says):
    file = tmp_path / "s.csv"
    scores.to_csv(file, index=False)
    code, _, err = call(capsys, "prr", file, "--uncertainty", "msp", *argv)
    assert code == 2 and says in err


def test_missing_and_foreign_files(tmp_path, capsys):
    assert (
        "there is no file"
        in call(capsys, "prr", tmp_path / "no.csv", "--quality", "a", "--uncertainty", "b")[2]
    )
    (tmp_path / "x.ods").write_text("")
    assert "not .ods" in call(capsys, "prr", tmp_path / "x.ods", "--quality", "a", "--uncertainty", "b")[2]
    (tmp_path / "x.parquet").write_text("not parquet")
    assert (
        "cannot be read as parquet"
        in call(capsys, "prr", tmp_path / "x.parquet", "--quality", "a", "--uncertainty", "b")[2]
    )
