"""The audit finds each pitfall in a file that was built to contain it, and is silent on clean files."""

import html
import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.audit_edges import judged, pairs
from uetrust.cli.cli import main
from uetrust.core.settings import root
from uetrust.evaluation.inference.confidence_set import _model_confidence_set
from uetrust.evaluation.inference.generalisability import reliability, variance_components
from uetrust.evaluation.prr import prr
from uetrust.report.audit import audit, not_quotable, quotable
from uetrust.report.pitfalls import PITFALLS, Audited, audit_panels

N = 400


def clean(seed=0):
    "Quality, a method that follows it closely, one that follows it less, and lengths that matter to nobody."
    rng = np.random.default_rng(seed)
    human = rng.normal(size=N)
    good, fair = -human + 0.4 * rng.normal(size=N), -human + 2.5 * rng.normal(size=N)
    return pd.DataFrame(dict(human=human, good=good, fair=fair, words=rng.integers(10, 90, N)))


def length(df, rng):
    words = df["words"] / 30
    return df.assign(
        human=-words + 0.5 * rng.normal(size=N),
        good=words + 0.3 * rng.normal(size=N),
        fair=-rng.normal(size=N),
    )


def rare(df, rng):
    bad = np.arange(N) < 12
    noisy = bad * 1.0 + 0.01 * rng.normal(size=N)
    return df.assign(human=(~bad).astype(float), good=noisy, fair=rng.normal(size=N))


CASES = dict(
    length=length,
    length_alone=lambda df, rng: df.assign(judge=-df["words"], good=df["words"] + 3 * rng.normal(size=N)),
    ties=lambda df, rng: df.assign(fair=(df["fair"] > 2.5).astype(float)),
    failed_replies=lambda df, rng: df.assign(
        judge=np.where(np.arange(N) < 7, -1, np.clip(np.round(5 + df["human"]), 1, 10))
    ),
    sentinels=lambda df, rng: df.assign(fair=np.where(np.arange(N) < 5, -999, df["fair"])),
    duplicates=lambda df, rng: pd.concat([df, df.head(80)], ignore_index=True),
    constant=lambda df, rng: df.assign(judge=3.0),
    base_rate=rare,
    indistinct=lambda df, rng: df.assign(fair=df["good"] + 0.01 * rng.normal(size=N)),
    direction=lambda df, rng: df.assign(fair=-df["fair"]),
    baseline=lambda df, rng: df.assign(n_tokens=50 - 9 * df["human"]),
)


def found(df):
    quality = [name for name in ("human", "judge") if name in df]
    return judged(
        df,
        ["good", "fair", *df.columns.intersection(["n_tokens"])],
        quality,
        length="words",
    )


def rng():
    return np.random.default_rng(1)


def full():
    "An audit with gaps in the main quality, a label and a second metric: every panel has something to say."
    df = clean().assign(right=lambda df: (df["human"] > 0).astype(float), metric=lambda df: -df["fair"])
    df["human"] = df["human"].where(np.arange(N) > 40)
    return judged(df, ["good", "fair"], ["human", "metric", "right"], length="words")


@pytest.mark.parametrize("name", CASES)
def test_a_file_with_a_pitfall_has_exactly_this_finding(name):
    df = CASES[name](clean(), rng())
    findings = found(df).findings
    assert list(findings["pitfall"].unique()) == [name]
    assert findings["numbers"].iloc[0] and (PITFALLS[name][1] == findings["lesson"]).all()


@pytest.mark.parametrize("code", [-1000, -9, 99, 99999])
def test_a_code_for_missing_is_found(code):
    df = clean()
    df["fair"] = np.where(np.arange(N) < 5, code, df["fair"] / 100)
    assert "sentinels" in set(found(df).findings["pitfall"])


def test_what_is_left_at_equal_length_is_the_partial_correlation():
    df = CASES["length"](clean(), rng())
    numbers = found(df).findings["numbers"].iloc[0]
    r = df[["good", "human", "words"]].rank()
    left = [
        r[name] - np.polyval(np.polyfit(r["words"], r[name], 1), r["words"]) for name in ("good", "human")
    ]
    assert numbers["at_equal_length"] == pytest.approx(np.corrcoef(*left)[0, 1], abs=1e-9)


def test_a_choice_that_costs_nothing_is_no_reason_against_a_sentence():
    df = clean().assign(metric=lambda df: df["human"] + 0.01 * np.arange(N) % 2)
    same = judged(df, ["good", "fair"], ["human", "metric"])
    assert same.no_quote == "'good is the best method on other texts too': one set of texts was measured."


def test_a_pilot_of_ten_and_the_risks_that_can_be_promised():
    df = clean().assign(right=lambda df: (df["human"] > -1.5).astype(float), document=np.arange(N) // 2)
    panel = judged(df, ["good", "fair"], "right").panels["promised_risk"]
    assert list(panel.table["alpha"]) == [0.05, 0.1, 0.2] * 2
    assert "divided among 2 methods" in panel.sentence and "texts" in panel.sentence
    assert "divided" not in judged(df, "good", "right").panels["promised_risk"].sentence
    grouped = judged(df, "good", "right", document="document").panels["promised_risk"].sentence
    assert "documents" in grouped and "documents" not in panel.sentence
    assert "promised_risk" not in judged(df.assign(right=1.0), ["good"], ["right"]).panels
    for quality in (df["human"], df["human"] - df["human"].min()):  # Below 0, and above 1
        assert "promised_risk" not in judged(df.assign(human=quality), "good", "human").panels
    assert "next_study" in judged(df.head(10), "good", "human").panels
    assert "next_study" not in judged(df.head(9), "good", "human").panels


def test_every_pitfall_has_a_case_and_a_lesson_that_exists():
    assert set(CASES) == set(PITFALLS)
    assert all((root() / lesson).exists() for _, lesson, _ in PITFALLS.values())


@pytest.mark.parametrize("seed", range(5))
def test_clean_files_stay_silent(seed):
    assert list(found(clean(seed)).findings["sentence"]) == []


def test_documents_widen_the_errors_and_are_reported():
    rng = np.random.default_rng(2)
    df = clean().assign(document=np.arange(N) // 8)
    shift = np.repeat(rng.normal(size=N // 8), 8)
    df["human"] += shift
    df["good"] -= shift
    alone = judged(df, ["good", "fair"], "human")
    grouped = judged(df, ["good", "fair"], "human", document="document")
    assert (
        list(grouped.findings["pitfall"]) == ["duplicates"]
        and "50 documents" in grouped.findings["sentence"][0]
    )
    want = prr(df["human"], df["good"], document=df["document"])
    assert grouped.prr["se"].iloc[0] == pytest.approx(want.se) and alone.prr["se"].iloc[0] != want.se


def test_the_two_sentences_follow_the_numbers():
    df = clean()
    good = found(df)
    assert good.quote.startswith(
        "On these 400 texts, judged by human, good has a prediction-rejection ratio of"
    )
    assert f"{prr(df.human, df.good).value:.2f} (95 % interval" in good.quote and "outside" in good.quote
    same = found(CASES["indistinct"](df, rng()))
    assert "cannot be told from it" in same.quote and "the difference is within noise" in same.no_quote
    noise = df.assign(good=np.random.default_rng(4).normal(size=N))
    none = judged(noise, "good", "human")
    assert "inside the null interval" in none.quote and "a random order does as well" in none.no_quote
    other = judged(
        df.assign(metric=-df["fair"]),
        ["good", "fair"],
        ["human", "metric"],
        truth="human",
    )
    loss = prr(df.human, df.good).value - prr(df.human, df.fair).value
    assert f"under metric it is fair, and the choice costs {loss:.2f} under human" in other.no_quote


def test_a_confidence_is_turned_round():
    df = clean().assign(sure=lambda df: -df["good"])
    a, b = (
        judged(df, "good", "human"),
        judged(df, (), "human", confidence="sure"),
    )
    assert a.prr["value"].iloc[0] == b.prr["value"].iloc[0]


def test_binary_and_scaled_quality_get_the_measures_that_fit():
    df = clean().assign(
        right=lambda df: (df["human"] > 0).astype(float), share=lambda df: df["human"].rank() / N
    )
    table = judged(df, "good", ["right", "share", "human"]).panels["measures"].table.set_index("metric")
    assert list(table.index) == ["right", "share"]
    assert table.loc["right", "auroc"] > 0.9 and np.isnan(table.loc["share", "auroc"])
    assert (table[["aurc", "augrc"]] > 0).all(axis=None)


def test_the_model_confidence_set_keeps_the_best_with_its_level():
    "Ten methods of equal worth: in about 95 of 100 repetitions all remain; a clearly worse one goes."
    rng, kept = np.random.default_rng(0), []
    for _ in range(100):
        data = rng.normal(size=(60, 10))
        left_out = (data.sum(0) - data) / 59
        kept.append(len(_model_confidence_set(data.mean(0), left_out, draws=500)))
    assert 0.85 <= np.mean(np.array(kept) == 10) <= 1.0
    data[:, 3] -= 3
    assert 3 not in _model_confidence_set(data.mean(0), (data.sum(0) - data) / 59)


def test_the_command_prints_writes_a_page_and_json(tmp_path, capsys):
    file, page = tmp_path / "s.csv", tmp_path / "a.html"
    CASES["direction"](clean(), None).rename(columns={"good": "<b>good"}).to_csv(file, index=False)
    ask = ["audit", str(file), "--uncertainty", "<b>good", "fair", "--quality", "human", "--length", "words"]
    assert main([*ask, "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert "May be quoted: On these 400 texts" in out and "May not be quoted:" in out
    assert "01_what_is_prr" in out and "--confidence" in out
    assert "<b>good" not in page.read_text() and "&lt;b&gt;good" in page.read_text()
    assert "<th></th>" not in page.read_text()  # Rows have no numbers
    assert main([*ask, "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["n"] == N and reported["findings"][0]["pitfall"] == "direction"


def test_methods_are_found_by_name_and_missing_columns_are_explained(tmp_path, capsys):
    wide, long = tmp_path / "s.parquet", tmp_path / "l.csv"
    df = clean().rename(columns={"good": "msp", "fair": "mte"})
    df.to_parquet(wide)
    df.assign(sample=[f"s{i}" for i in range(N)]).melt("sample", var_name="name").to_csv(long, index=False)
    for file in (wide, long):
        assert main(["audit", str(file), "--quality", "human", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)["prr"]
        assert {row["method"] for row in rows} == {"msp", "mte", "words"}
        assert rows[0]["value"] == pytest.approx(prr(df["human"], df["msp"]).value)
    assert main(["audit", str(wide), "--quality", "humna"]) == 2
    assert "has no column 'humna'. Did you mean 'human'?" in capsys.readouterr().err
    df.drop(columns="human").to_parquet(wide)
    assert main(["audit", str(wide)]) == 2
    assert "no quality was found by name; name it with --quality COLUMN or --truth" in capsys.readouterr().err


LENGTHS = ["source_length", "n_tokens", "summary_len"]


def names_in(found):
    "Methods that an audit puts first, anywhere"
    panels = found.panels
    reported = [found.quote, found.no_quote] + [panel.sentence for panel in panels.values()]
    tables = [panels[name].table for name in ("picks", "best_methods", "length_control", "next_study")]
    cells = [table[column] for table in tables for column in ("pick", "method", "first") if column in table]
    return " ".join([*reported, *found.best, *pd.concat(cells)])


def test_a_baseline_is_listed_and_never_wins():
    "Lengths that order the texts perfectly stand in the table of PRR and in the finding, and nowhere else."
    df = clean().assign(metric=lambda df: -df["fair"], right=lambda df: (df["human"] > 0).astype(float))
    df = df.assign(**{name: -df["human"] for name in LENGTHS}, chance=-df["metric"])
    df["human"] = df["human"].where(np.arange(N) > 40)
    found = judged(
        df,
        ["good", "fair", "chance", *LENGTHS],
        ["human", "metric", "right"],
        length="words",
    )
    assert {*LENGTHS, "chance"} < set(found.prr["method"]) and found.best == ["good"]
    assert set(found.panels) >= {"picks", "best_methods", "few_labels", "measures", "other_orders"}
    assert not any(name in names_in(found) for name in (*LENGTHS, "chance"))
    assert (
        "divided among 2 methods"
        in judged(df, ["good", "fair", *LENGTHS], "right").panels["promised_risk"].sentence
    )
    rows = found.findings[found.findings["pitfall"] == "baseline"]
    assert set(rows["columns"].str[0]) == set(LENGTHS) and (rows["title"] == "A baseline does as well").all()
    numbers, gap = rows.iloc[0]["numbers"], prr(df["human"], -df["human"]).value
    assert numbers["baseline"] == pytest.approx(gap) and numbers["lo"] > 0
    assert numbers["difference"] == pytest.approx(gap - prr(df["human"], df["good"]).value)


def test_where_there_are_only_baselines_nothing_is_quoted():
    df = clean().assign(metric=lambda df: -df["fair"])
    found = judged(
        df.rename(columns=dict(good="source_length")),
        ["source_length", "words"],
        ["human", "metric"],
    )
    assert "There is no uncertainty method here, only baselines (source_length, words)" in found.quote
    assert found.best == [] and found.verdict == [found.quote] and len(found.prr) == 4


@pytest.mark.parametrize("name, end", [("lex_sim", -1.0), ("LexicalSimilarity_rougeL", -1.0), ("bleu", 99.0)])
def test_the_end_of_a_scale_is_no_sentinel(name, end):
    "All samples equal is -1 of lex_sim; the same values of an unknown score are codes."
    df = clean().assign(**{name: np.where(np.arange(N) < 9, end, end / 4 + np.arange(N) / 1e6)})
    ask = (
        dict(quality="human", uncertainty="good")
        if name != "bleu"
        else dict(uncertainty="good", truth="human")
    )
    kind = "quality" if name == "bleu" else "uncertainty"
    ask[kind] = [*np.atleast_1d(ask.get(kind, [])), name]
    assert "sentinels" not in set(audit(df, **ask).findings["pitfall"])
    ask[kind][-1] = "mystery"
    found = audit(df.rename(columns={name: "mystery"}), **ask).findings
    assert ["mystery"] in list(found.loc[found["pitfall"] == "sentinels", "columns"])


def test_samples_that_are_all_equal_are_no_code_in_the_audit_of_their_scores(tmp_path, capsys):
    "From the file of texts to the audit, as a user goes; the same numbers under another name are codes."
    rows = [
        dict(id=i, hypothesis=f"house {i % 3}", reference="house 1", samples=["a b"] * 3) for i in range(2)
    ]
    unlike = [["a b c d", f"a {i} e f", "g h"] for i in range(2, 8)]
    rows += [
        dict(rows[1], id=i, samples=drawn, hypothesis=f"house {i % 3}") for i, drawn in enumerate(unlike, 2)
    ]
    pd.DataFrame(rows).to_json(tmp_path / "texts.jsonl", orient="records", lines=True)
    table = tmp_path / "scores.csv"
    ask = ["--method", "lex_sim", "--metric", "rouge_l", "--out", str(table)]
    assert main(["score", str(tmp_path / "texts.jsonl"), *ask]) == 0
    scores = pd.read_csv(table)
    assert (scores["lex_sim"] == -1).sum() == 2 and scores["lex_sim"].max() < 0
    for name, reported in ("lex_sim", False), ("mine", True):
        scores.rename(columns=dict(lex_sim=name)).to_csv(table, index=False)
        capsys.readouterr()
        main(["audit", str(table), "--quality", "rouge_l", "--uncertainty", name, "--id", "id"])
        assert (f"{name} is -1 for 2 of 8 texts" in capsys.readouterr().out) == reported


def test_a_code_in_a_confidence_is_found_as_it_stands_in_the_file():
    "-1 among probabilities; 1, which is -1 once turned round, is none."
    df = clean().assign(p_true=np.where(np.arange(N) < 9, 1.0, 0.2 + np.arange(N) / 1e4))
    assert "sentinels" not in set(judged(df, "good", "human", confidence="p_true").findings["pitfall"])
    df["p_true"] = df["p_true"].where(np.arange(N) > 8, -1)
    found = judged(df, "good", "human", confidence="p_true").findings.set_index("pitfall")
    assert "p_true is -1 for 9 of 400 texts" in found.at["sentinels", "sentence"]


def test_every_panel_is_on_the_page_and_in_json():
    found = full()
    some = {"measures", "picks", "best_methods", "joint", "length_control", "atlas"} | {"other_orders"}
    assert some <= set(found.panels) <= set(audit_panels())
    page, reported = html.unescape(found.page()), json.loads(json.dumps(found.to_dict(), default=float))
    for name, panel in found.panels.items():
        assert f"<summary>{panel.title}</summary><p>{panel.sentence} " in page and len(panel.table)
        assert reported["panels"][name]["sentence"] == panel.sentence
        assert len(reported["panels"][name]["table"]) == len(panel.table)


def test_the_joint_p_counts_all_cells_at_once():
    "Twenty methods that know nothing: some cell is below .05, all together are not; one that knows is."
    rng = np.random.default_rng(3)
    df = pd.DataFrame(rng.normal(size=(200, 24)), columns=[f"c{i}" for i in range(24)])
    nothing = judged(df, df.columns[:20], df.columns[20:]).panels["joint"].table.iloc[0]
    assert nothing["p_below_05"] > 0 and nothing["holm_below_05"] == 0 and nothing["joint_p"] > 0.05
    df["c0"] = -df["c21"] + rng.normal(size=200)
    assert judged(df, df.columns[:20], df.columns[20:]).panels["joint"].table["joint_p"].iloc[0] == 1 / 500


def test_other_texts_and_metrics_would_rank_the_methods_alike_or_not():
    "By hand from the PRR of ten blocks; no panel for 99 texts, and none for one method."
    df = clean().assign(metric=lambda df: df["human"] + np.random.default_rng(5).normal(size=N))
    panel = found(df.rename(columns={"metric": "judge"})).panels["other_orders"]
    blocks = [df[np.arange(N) % 10 == block] for block in range(10)]
    values = [
        [[prr(b[q], b[u]).value for q in ("human", "metric")] for b in blocks] for u in ("good", "fair")
    ]
    parts = variance_components(values, ("method", "texts", "metrics"))
    each, one = reliability(parts, dict(texts=10, metrics=2)), reliability(parts, {})
    sentence = (
        f"reliability of {each:.2f} with 10 blocks of 40 texts, 2 metrics, and of {one:.2f} with one of each"
    )
    assert sentence in panel.sentence
    assert list(panel.table["facet"]) == ["blocks of 40 texts", "metrics"] and each > 0.95
    assert "(400 texts)" in panel.sentence and list(panel.table["observed"]) == [10, 2]
    assert "blocks of 20" in judged(df.head(100), ["good", "fair"], "human").panels["other_orders"].sentence
    for part in (
        judged(df.head(99), ["good", "fair"], "human"),
        judged(df, "good", "human"),
    ):
        assert "other_orders" not in part.panels
    texts = np.arange(N) // 4
    grouped = judged(df.assign(document=texts), ["good", "fair"], "human", document="document")
    assert list(grouped.panels["other_orders"].table["facet"]) == ["blocks of 80 texts"]


def test_every_panel_and_finding_leads_to_a_page_that_exists():
    pages = {panel.page for name in CASES for panel in found(CASES[name](clean(), rng())).panels.values()}
    pages |= {panel.page for panel in full().panels.values()} | {lesson for _, lesson, _ in PITFALLS.values()}
    assert len(pages) > 10 and all((root() / page).is_file() for page in pages)


def test_length_control_takes_away_what_length_gives():
    df = CASES["length"](clean(), rng())
    table = found(df).panels["length_control"].table.set_index("method")
    assert table.loc["good", "prr"] > 0.5 and abs(table.loc["good", "within"]) < 0.2
    assert table.loc["good", "within_lo"] < table.loc["good", "within"] < table.loc["good", "within_hi"]
    assert "length_control" not in judged(df, "good", "human").panels


def test_the_winner_is_shown_with_those_that_are_as_good():
    panel = found(CASES["indistinct"](clean(), rng())).panels["best_methods"]
    assert (
        "1 other method of 2 cannot be told from it (model confidence set of 95%, n = 400)" in panel.sentence
    )
    assert panel.table["in_set"].all() and "With its luck discounted" in panel.sentence


def test_the_sentences_name_the_best_three_others_and_the_interval():
    rng = np.random.default_rng(0)
    quality = rng.normal(size=80)
    df = pd.DataFrame(dict(q=quality) | {f"u{i}": -quality + 0.01 * rng.normal(size=80) for i in range(6)})
    found = Audited(df[["q"]], df.drop(columns="q"), "q")
    found.__dict__["compared"] = type("Best", (), dict(best=["u0", "u1", "u2", "u3", "u4", "u5"]))
    top = found.main_prr.iloc[0]
    others = [name for name in found.best if name != top["method"]]
    assert f"null interval of ±{1.96 * top['null_sd']:.2f} that" in quotable(found)
    assert quotable(found).endswith(f"; {', '.join(others[:3])} and 2 more cannot be told from it.")
    assert not_quotable(found).startswith(f"'{top['method']} is better than {others[0]}'")


@pytest.mark.parametrize("factor, side", [(0.99, "inside"), (1.01, "outside of")])
def test_the_null_interval_ends_at_196_standard_deviations(factor, side):
    quality, unsure = pairs(50, 1)
    found = Audited(pd.DataFrame(dict(q=quality)), pd.DataFrame(unsure), "q")
    row = found.prr.assign(null_sd=0.25, value=1.96 * 0.25 * factor)
    found.__dict__["prr"] = row
    assert f", {side} the null interval of ±0.49 that" in quotable(found)
    assert ("by chance" in not_quotable(found)) == (side == "inside")


def test_missing_columns_are_named_with_twenty_that_are_there():
    df = pd.DataFrame({f"c{i}": [1.0, 2, 3] for i in range(25)})
    with pytest.raises(ValueError, match="no column gone for quality; there are c0, .*, c19 and 5 more"):
        judged(df, "c1", "gone")
    with pytest.raises(ValueError, match="an audit needs a quality column and an uncertainty"):
        judged(df, "c1")
    with pytest.raises(ValueError, match="no column words for length"):
        judged(df, "c1", "c2", length="words")


def test_the_first_quality_is_the_main_one_unless_a_truth_is_named():
    df = pd.DataFrame(dict(a=[1.0, 2, 3, 4, 5], b=[5.0, 1, 2, 4, 3], u=[5.0, 4, 3, 2, np.nan]))
    assert "judged by a, u" in judged(df, "u", ["a", "b"]).quote
    named = judged(df, "u", ["a", "b"], truth="b")
    assert "judged by b, u" in named.quote and list(named.prr["metric"]) == ["b", "a"]
    assert named.missing == dict(u=1) and named.n == 5


# The verdict
def test_the_verdict_is_a_claim_that_the_numbers_support():
    df = clean()
    claim = "good orders these 400 texts better than chance"
    assert found(df).verdict[0] == f"Yes: {claim} and better than the other method."
    same = found(CASES["indistinct"](df, rng())).verdict
    both = "Yes: both methods order these 400 texts better than chance"
    assert same[0] == f"{both}, but which method is best cannot be told."
    assert "is first: PRR 0." in same[1] and "cannot be told from it." in same[1]
    assert "random orders give ±0.1" in same[1]
    draws = [np.random.default_rng(seed).normal(size=N) for seed in (4, 5)]
    good, fair = (draw * np.sign(prr(df["human"], draw).value) for draw in draws)  # Above 0, by chance
    noise = df.assign(good=good, fair=fair)
    shown = "to order these 400 texts better than chance."
    assert found(noise).verdict[0] == f"No: none of the 2 methods is shown {shown}"
    assert judged(noise, "good", "human").verdict[0] == f"No: good is not shown {shown}"
    assert judged(df, "good", "human").verdict[0] == f"Yes: {claim}."


def test_a_baseline_that_may_do_as_well_is_in_the_first_sentence():
    df = CASES["baseline"](clean(), rng())
    first, _, gap = found(df).verdict
    assert first.startswith("Not by itself: ") and first.endswith("but the baseline n_tokens is better.")
    assert gap.startswith("n_tokens, a baseline, has +0.")
    near = clean().assign(n_tokens=lambda df: df["good"] + 0.01 * np.random.default_rng(3).normal(size=N))
    assert found(near).verdict[0].endswith("but the baseline n_tokens may do as well.")
    weak = clean().assign(n_tokens=lambda df: df["fair"])  # Orders the texts, but less well
    assert "baseline" not in " ".join(found(weak).verdict)


def test_there_is_no_verdict_where_rows_repeat_or_texts_are_few():
    twice = pd.concat([clean()] * 2, ignore_index=True)
    reason = "these 800 rows are 400 different rows, so every error is too small"
    assert found(twice).verdict[0] == f"No verdict yet: {reason}."
    few = judged(clean().head(3), ["good", "fair"], "human")
    assert few.verdict[0] == "No verdict: these 3 texts allow no interval for any method."
    assert "too few texts for an interval" in few.quote and "nan" not in few.brief()


def test_an_unreliable_interval_is_said_to_be_one():
    rare_bad = judged(rare(clean(), rng()), ["good", "fair"], "human")
    assert "The interval is unreliable: effective sample size of the risk 12." in rare_bad.quote
    assert "The interval is unreliable" in rare_bad.verdict[1] and "unreliable" not in found(clean()).quote


@pytest.mark.parametrize("seed", range(3))
def test_every_first_sentence_is_short(seed):
    for name, case in CASES.items():
        first = found(case(clean(seed), rng())).verdict[0]
        assert len(first.split()) <= 25 and first.count("(") <= 1, (name, first)


# What an audit takes
def test_values_are_in_the_order_of_prr():
    df = clean()
    known = prr(df["human"], df["good"])
    for result in (
        audit(df["human"], df["good"]),
        audit(list(df["human"]), df["good"].to_numpy()),
        audit(quality=df["human"], uncertainty=df["good"]),
        audit(df[["human"]], df[["good", "fair"]]),
    ):
        assert result.prr["value"].iloc[0] == pytest.approx(known.value) and result.n == N
    grouped = audit(df["human"], df["good"], document=np.arange(N) // 2, length=df["words"])
    known = prr(df["human"], df["good"], document=np.arange(N) // 2)
    assert grouped.prr["se"].iloc[0] == pytest.approx(known.se)
    assert "length_control" in grouped.panels


def test_a_file_and_its_table_give_the_same_audit(tmp_path):
    df = clean().rename(columns=dict(good="msp", fair="mte"))
    df.to_csv(tmp_path / "s.csv", index=False)
    for given in (str(tmp_path / "s.csv"), tmp_path / "s.csv"):
        of_file = audit(given)
        assert of_file.verdict == audit(df).verdict and of_file.source["file"] == "s.csv"
    assert audit(tmp_path / "s.csv", quality="human", uncertainty="mte").best == ["mte"]


@pytest.mark.parametrize(
    "given, said",
    [
        (lambda df: audit(df, "good", "human"), "audit(table, quality='human', uncertainty="),
        (lambda df: audit(df, ["good", "fair"]), "audit(table, quality='human', uncertainty="),
        (lambda df: audit(df["human"]), "audit(quality, uncertainty)"),
        (lambda df: audit(), "audit(quality, uncertainty)"),
        (lambda df: audit(df["human"], 5), "uncertainty must be numbers, one per text, got 5"),
        (lambda df: audit(df["human"], df["good"].head(3)), "quality has 400 texts and uncertainty 3"),
        (lambda df: audit(df[["human"]], df[["human"]]), "human cannot be quality and uncertainty at once"),
        (lambda df: audit(df, quality="human"), "no uncertainty was found by name"),
        (lambda df: audit(df, uncertainty="good", quality="no"), "no column no for quality; there are human"),
    ],
)
def test_a_call_that_cannot_work_is_answered_in_one_line(given, said):
    with pytest.raises(ValueError) as error:
        given(clean().drop(columns="words"))
    assert said in str(error.value) and "\n" not in str(error.value)


def test_what_a_file_lacks_is_named_with_how_to_get_it(tmp_path, capsys):
    df = clean().rename(columns=dict(good="msp", fair="mte"))
    for columns, said in (
        (["msp", "mte"], ["references and `uetrust score`", "`uetrust judge`", "labels of people"]),
        (["human", "words"], []),
        (["human"], ["log-probabilities, or several samples of each text"]),
        (["words"], ["references and"]),
    ):
        df[columns].to_csv(tmp_path / "s.csv", index=False)
        code = main(["audit", str(tmp_path / "s.csv")])
        err = capsys.readouterr().err.strip()
        assert (code == 2) == bool(said) and all(part in err for part in said) and "\n" not in err
