"""The audit finds each pitfall in a file that was built to contain it, and is silent on clean files."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from uetrust.cli.cli import main
from uetrust.core.settings import root
from uetrust.evaluation.inference.confidence_set import _model_confidence_set
from uetrust.evaluation.inference.generalisability import reliability, variance_components
from uetrust.evaluation.prr import prr
from uetrust.report.audit import PITFALLS, audit, audit_panels

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
    return audit(df, ["good", "fair", *df.columns.intersection(["n_tokens"])], quality, length="words")


def rng():
    return np.random.default_rng(1)


def full():
    "An audit with gaps in the main quality, a label and a second metric: every panel has something to say."
    df = clean().assign(right=lambda df: (df["human"] > 0).astype(float), metric=lambda df: -df["fair"])
    df["human"] = df["human"].where(np.arange(N) > 40)
    return audit(df, ["good", "fair"], ["human", "metric", "right"], length="words")


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
    same = audit(df, ["good", "fair"], ["human", "metric"])
    assert same.no_quote == "'good is the best method on other texts too': one set of texts was measured."


def test_a_pilot_of_ten_and_the_risks_that_can_be_promised():
    df = clean().assign(right=lambda df: (df["human"] > -1.5).astype(float), document=np.arange(N) // 2)
    panel = audit(df, ["good", "fair"], "right").panels["promised_risk"]
    assert list(panel.table["alpha"]) == [0.05, 0.1, 0.2] * 2
    assert "divided among 2 methods" in panel.sentence and "texts" in panel.sentence
    assert "divided" not in audit(df, "good", "right").panels["promised_risk"].sentence
    grouped = audit(df, "good", "right", document="document").panels["promised_risk"].sentence
    assert "documents" in grouped and "documents" not in panel.sentence
    assert "promised_risk" not in audit(df.assign(right=1.0), ["good"], ["right"]).panels
    for quality in (df["human"], df["human"] - df["human"].min()):  # Below 0, and above 1
        assert "promised_risk" not in audit(df.assign(human=quality), "good", "human").panels
    assert "next_study" in audit(df.head(10), "good", "human").panels
    assert "next_study" not in audit(df.head(9), "good", "human").panels


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
    alone = audit(df, ["good", "fair"], "human")
    grouped = audit(df, ["good", "fair"], "human", document="document")
    assert (
        list(grouped.findings["pitfall"]) == ["duplicates"]
        and "50 documents" in grouped.findings["sentence"][0]
    )
    want = prr(df["human"], df["good"], clusters=df["document"])
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
    none = audit(noise, "good", "human")
    assert "inside the null interval" in none.quote and "a random order does as well" in none.no_quote
    other = audit(df.assign(metric=-df["fair"]), ["good", "fair"], ["human", "metric"], truth="human")
    loss = prr(df.human, df.good).value - prr(df.human, df.fair).value
    assert f"under metric it is fair, and the choice costs {loss:.2f} under human" in other.no_quote


def test_a_confidence_is_turned_round():
    df = clean().assign(sure=lambda df: -df["good"])
    a, b = audit(df, "good", "human"), audit(df, (), "human", confidence="sure")
    assert a.prr["value"].iloc[0] == b.prr["value"].iloc[0]


def test_binary_and_scaled_quality_get_the_measures_that_fit():
    df = clean().assign(
        right=lambda df: (df["human"] > 0).astype(float), share=lambda df: df["human"].rank() / N
    )
    table = audit(df, "good", ["right", "share", "human"]).panels["measures"].table.set_index("metric")
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
    assert "no quality was found by name; name it with --truth or --quality" in capsys.readouterr().err


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
    found = audit(df, ["good", "fair", "chance", *LENGTHS], ["human", "metric", "right"], length="words")
    assert {*LENGTHS, "chance"} < set(found.prr["method"]) and found.best == ["good"]
    assert set(found.panels) >= {"picks", "best_methods", "few_labels", "measures", "other_orders"}
    assert not any(name in names_in(found) for name in (*LENGTHS, "chance"))
    assert (
        "divided among 2 methods"
        in audit(df, ["good", "fair", *LENGTHS], "right").panels["promised_risk"].sentence
    )
    rows = found.findings[found.findings["pitfall"] == "baseline"]
    assert set(rows["columns"].str[0]) == set(LENGTHS) and (rows["title"] == "A baseline does as well").all()
    numbers, gap = rows.iloc[0]["numbers"], prr(df["human"], -df["human"]).value
    assert numbers["baseline"] == pytest.approx(gap) and numbers["lo"] > 0
    assert numbers["difference"] == pytest.approx(gap - prr(df["human"], df["good"]).value)


def test_where_there_are_only_baselines_nothing_is_quoted():
    df = clean().assign(metric=lambda df: -df["fair"])
    found = audit(
        df.rename(columns=dict(good="source_length")), ["source_length", "words"], ["human", "metric"]
    )
    assert "There is no uncertainty method here, only baselines (source_length, words)" in found.quote
    assert found.best == [] and "there is no method" in str(found) and len(found.prr) == 4


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
    ask = ["--methods", "lex_sim", "--metrics", "rouge_l", "--out", str(table)]
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
    assert "sentinels" not in set(audit(df, "good", "human", confidence="p_true").findings["pitfall"])
    df["p_true"] = df["p_true"].where(np.arange(N) > 8, -1)
    found = audit(df, "good", "human", confidence="p_true").findings.set_index("pitfall")
    assert "p_true is -1 for 9 of 400 texts" in found.at["sentinels", "sentence"]


def test_every_panel_is_on_the_page_in_the_terminal_and_in_json():
    found = full()
    some = {"measures", "picks", "best_methods", "joint", "length_control", "atlas"} | {"other_orders"}
    assert some <= set(found.panels) <= set(audit_panels())
    terminal, page, reported = (
        str(found),
        found.page(),
        json.loads(json.dumps(found.to_dict(), default=float)),
    )
    for name, panel in found.panels.items():
        assert panel.title in terminal and panel.sentence in terminal and len(panel.table)
        assert f"<h3>{html.escape(panel.title)}</h3>" in page and html.escape(panel.sentence) in page
        assert reported["panels"][name]["sentence"] == panel.sentence
        assert len(reported["panels"][name]["table"]) == len(panel.table)


def test_no_link_of_a_page_is_dead(tmp_path, monkeypatch):
    "Seen from any folder; and a package without the lessons prints no link."
    df = CASES["direction"](clean(), None)
    monkeypatch.chdir(tmp_path)
    links, shown = zip(*re.findall(r"href='file://([^']*)'>([^<]*)<", found(df).page()))
    assert len(links) >= 1 and all(Path(link).is_file() for link in links)
    assert [name.removesuffix(".ipynb") for name in shown] == [Path(link).stem for link in links]
    assert found(df).page().count("href=") == len(links)
    monkeypatch.setattr("uetrust.report.audit.root", lambda: tmp_path)
    assert "href=" not in found(df).page() and ".ipynb" not in str(found(df))


def test_the_joint_p_counts_all_cells_at_once():
    "Twenty methods that know nothing: some cell is below .05, all together are not; one that knows is."
    rng = np.random.default_rng(3)
    df = pd.DataFrame(rng.normal(size=(200, 24)), columns=[f"c{i}" for i in range(24)])
    nothing = audit(df, df.columns[:20], df.columns[20:]).panels["joint"].table.iloc[0]
    assert nothing["p_below_05"] > 0 and nothing["holm_below_05"] == 0 and nothing["joint_p"] > 0.05
    df["c0"] = -df["c21"] + rng.normal(size=200)
    assert audit(df, df.columns[:20], df.columns[20:]).panels["joint"].table["joint_p"].iloc[0] == 1 / 500


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
    assert "blocks of 20" in audit(df.head(100), ["good", "fair"], "human").panels["other_orders"].sentence
    for part in (audit(df.head(99), ["good", "fair"], "human"), audit(df, "good", "human")):
        assert "other_orders" not in part.panels
    texts = np.arange(N) // 4
    grouped = audit(df.assign(document=texts), ["good", "fair"], "human", document="document")
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
    assert "length_control" not in audit(df, "good", "human").panels


def test_the_winner_is_shown_with_those_that_are_as_good():
    panel = found(CASES["indistinct"](clean(), rng())).panels["best_methods"]
    assert (
        "1 other method of 2 cannot be told from it (model confidence set of 95%, n = 400)" in panel.sentence
    )
    assert panel.table["in_set"].all() and "With its luck discounted" in panel.sentence
