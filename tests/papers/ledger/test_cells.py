"""Cell ledger: equality at printed precision, consistency checks, and missing or damaged data."""

import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.ledgers import needs_data, pick
from tests.helpers.pages import page_text
from uetrust.papers.ledger import cells as ledger


# Equal
@given(st.integers(-(10**6), 10**6), st.integers(0, 4), st.floats(-0.499, 0.499))
def test_a_number_equals_what_it_was_rounded_from(n, digits, off):
    text = f"{n / 10**digits:.{digits}f}"
    assert ledger._rounding_agreement(text, (n + off) / 10**digits) == "rounded"


@given(st.integers(1, 10**5), st.integers(0, 3), st.floats(0.51, 0.98), st.sampled_from([1, -1]))
def test_digits_cut_off_are_named_and_the_next_number_is_different(n, digits, off, sign):
    text = f"{sign * n / 10**digits:.{digits}f}"
    assert ledger._rounding_agreement(text, sign * (n + off) / 10**digits) == "cut"
    assert ledger._rounding_agreement(text, sign * (n - off) / 10**digits) == ""
    assert ledger._rounding_agreement(text, sign * (n + 1.01) / 10**digits) == ""


# Numbers
def test_every_number_is_there_once(led):
    n = ledger.printed_numbers()
    assert not n[ledger.CELL_KEY].duplicated().any()
    assert n["printed"].map(float).notna().all()
    assert n.groupby("paper", sort=False).size().to_dict() == {
        "He et al.": 1093 + 61,
        "ICE": 72,
        "FFLM": 850,
        "Narcissism": 100,
        "Schroedinger's Threshold": 959,
    }
    assert list(led[ledger.CELL_KEY].itertuples(index=False, name=None)) == list(
        n[ledger.CELL_KEY].itertuples(index=False, name=None)
    )
    assert (
        len(pick(n, paper="ICE", table=2, column="all dimensions")) == 6
    )  # ROUGE-L and BARTScore are printed once per system


def test_counts_add_up(led):
    counts = ledger.status_counts(led)
    assert (counts[ledger.CELL_STATUS].sum(axis=1) == counts["numbers"]).all() and counts[
        "numbers"
    ].sum() == len(led)
    assert ledger.status_counts(led, ["paper"])["numbers"].to_dict() == led.groupby("paper").size().to_dict()


# Checks among printed numbers
KNOWN = {
    ("FFLM", 2, "FFLM", "SummEval"),
    ("FFLM", 2, "FFLM", "FRANK"),
    ("FFLM", 9, "FFLM", "SummEval"),
    ("FFLM", 9, "FFLM", "FRANK"),
    ("FFLM", 10, "Our Approach: LLaMa-7b", "SummEval"),
    ("FFLM", 10, "Our Approach: LLaMa-7b", "FRANK"),
    ("Schroedinger's Threshold", 5, "kappa, Outdata", ""),
}


def contradicted(n):
    cells_ = ledger._consistency_checks(n)
    return n.loc[cells_.index[~cells_["agrees"]]]


def test_the_printed_tables_contradict_themselves_exactly_here():
    odd = contradicted(ledger.printed_numbers())
    assert (
        set(odd[["paper", "table", "row", "group"]].itertuples(index=False, name=None)) == KNOWN
        and len(odd) == 9
    )


@pytest.mark.parametrize(
    "where,new",
    [
        (dict(paper="He et al.", table=3, row="ROUGE-L", column="MSP"), "0.5107"),
        (dict(paper="He et al.", table=10, row="ROUGE-L", column="Row Mean"), "0.5000"),
        (dict(paper="ICE", table=2, row="Human: GPT-3", column="Overall"), "4.70"),
        (dict(paper="FFLM", table=3, row="FFLM", group="SummEval", column="spearman"), "46.8"),
        (dict(paper="FFLM", table=12, row="CoGenSum", column="Chen et al. (2023)"), "57.9"),
        (dict(paper="Schroedinger's Threshold", table=1, row="frank", column="ANLI"), "88.0"),
        (dict(paper="Schroedinger's Threshold", table=4, row="Xdomain|stump: -stump", column="AVG"), "65.1"),
        (dict(paper="Schroedinger's Threshold", table=2, row="frank", column="ANLI (rank)"), "11"),
    ],
)
def test_a_planted_error_is_found(where, new):
    n = ledger.printed_numbers()
    i = pick(n, **where).index
    assert len(i) == 1
    n.loc[i, "printed"] = new
    assert set(contradicted(n).index) - set(contradicted(ledger.printed_numbers()).index)


def failing(n):  # (table, kind of check) of Opitz that fails
    return {
        (int(n.at[i, "table"]), "repeat" if why.startswith("Table") else why.split(":")[0])
        for check in (ledger._opitz_means, ledger._opitz_ranks, ledger._repeats)
        for i, _, ok, why in check(n)
        if not ok and n.at[i, "paper"] == "Schroedinger's Threshold"
    }


RANK = "rank by the printed values"


@pytest.mark.parametrize(
    "table,row,column,new,found",
    [
        (1, "frank", "BLEU", "87.0", {(1, "mean of BLEU"), (1, RANK)}),
        (2, "mean", "ANLI", "74.2", {(2, "mean of ANLI"), (2, "repeat"), (4, "repeat")}),
        (2, "paws", "Q2 (rank)", "4", {(2, RANK)}),
        (5, "AUC", "SummaCC", "80.1", {(1, "repeat"), (5, "repeat")}),
        (4, "AUC|none: AUC", "ANLI (rank)", "9", {(4, RANK), (1, "repeat"), (4, "repeat")}),
    ],
)
def test_a_planted_error_of_opitz_fails_these_checks_and_no_other(table, row, column, new, found):
    n = ledger.printed_numbers()
    before, i = (
        failing(n),
        pick(n, paper="Schroedinger's Threshold", table=table, row=row, column=column).index,
    )
    assert before == {(5, RANK)} and len(i) == 1
    n.loc[i, "printed"] = new
    assert failing(n) == before | found


def test_two_metrics_may_trade_a_rank_they_tie_for_but_not_share_it():
    for ranks, ok in (("123", True), ("213", True), ("132", False), ("113", False)):
        printed = pd.DataFrame(
            [
                dict(paper="Schroedinger's Threshold", table=1, row="r", column=column + e, printed=value)
                for e, values in (("", "554"), (" (rank)", ranks))
                for column, value in zip("abc", values)
            ]
        )
        assert all(finding[2] for finding in ledger._opitz_ranks(printed)) == ok, ranks


def test_rounding_of_both_sides_is_no_contradiction():
    printed = pd.DataFrame(dict(printed=["1", "2", "2"]), index=[0, 1, 2])

    def findings(mean):  # (agrees, possible only by rounding) of each number
        printed.loc[2, "printed"] = mean
        return [
            (agrees, ledger.ROUNDING_NOTE in why)
            for _, _, agrees, why in ledger._mean_check(printed, [0, 1], 2, "mean")
        ]

    assert findings("2") == [(True, False)] * 3  # cells from .5 and 1.5 up to 1.5 and 2.5; 1.5 is .5 from 2
    assert findings("2.5") == [(False, False)] * 3  # 1 from 1.5, with .05 and .5 to spare
    assert findings("2.0") == [(True, True)] * 3
    assert [agrees for agrees, _ in findings("3")] == [False] * 3


def test_two_printed_means_of_opitz_are_only_right_by_rounding():
    led = ledger.cell_ledger("Schroedinger's Threshold")
    near = led[led["reason"].str.contains(ledger.ROUNDING_NOTE) & led["recomputed"].notna()]
    assert set(near[["table", "row", "column", "printed"]].itertuples(index=False, name=None)) == {
        (2, "mean", "FactCC", "55.4"),
        (4, "OutData|isotonic: -Isotonic", "AVG", "61.7"),
    }


def test_one_paper_is_the_same_as_that_paper_of_all(led):
    for paper in ledger.PAPER_PREFIXES:
        pd.testing.assert_frame_equal(
            ledger.cell_ledger(paper), led[led["paper"] == paper], check_dtype=False
        )
    with pytest.raises(ValueError, match="the papers are"):
        ledger.cell_ledger("Opitz")


# Recomputed from data
@needs_data
def test_what_the_released_scores_decide(led):
    equal = led[led["status"] == ledger.CELL_STATUS[0]]
    ice = pick(equal, paper="ICE", table=1)
    assert (ice["row"].str.startswith("ICE").sum(), (ice["row"] == "UniEval").sum()) == (16, 8)
    assert (
        pick(equal, paper="FFLM", table=3)["group"].str.startswith("FRANK").sum(),
        len(pick(equal, paper="Narcissism", table=1)),
    ) == (30, 12)
    assert set(ice.loc[ice["row"] == "UniEval", "how"]) == {"rounded"} and (ice["how"] == "cut").sum() == 11
    assert pick(equal, paper="Narcissism", row="SummEval-GPT2", column="Mean")[
        "recomputed"
    ].item() == pytest.approx(3.515, abs=1e-12)
    assert equal["agrees"].all() and not led.loc[led["status"] == ledger.CELL_STATUS[1], "agrees"].any()


@needs_data
def test_a_difference_names_the_order_of_the_columns(led):
    differ = led[led["status"] == ledger.CELL_STATUS[1]]
    assert differ["reason"].str.len().min() > 20
    for table, order in ((3, "spearman, pearson, kendall"), (5, "kendall, pearson, spearman")):
        assert (
            pick(differ, paper="FFLM", table=table, row="Rouge-2")["reason"]
            .str.contains(f"the columns fit when read as {order}")
            .all()
        )


def test_an_order_is_named_only_when_it_fits_better():
    names = ["pearson", "spearman", "kendall"]
    assert ledger._explain_difference(["24.7", "25.2", "19.5"], [25.2, 24.7, 19.5], names).startswith(
        "the columns fit when read as spearman, pearson, kendall"
    )
    assert (
        ledger._explain_difference(["10.0", "20.0", "30.0"], [10.3, 20.1, 30.2], names)
        == "largest difference in this row 0.3"
    )
    assert (
        ledger._explain_difference(["10.0", "11.0", "30.0"], [10.9, 10.2, 30.6], names)
        == "largest difference in this row 0.9"
    ), "another order halves the largest difference, or it is none"


def fake_qags(folder):
    "Files of the right shape; half of the summaries copy their source and are right"
    (folder / "qags").mkdir(parents=True)
    for name, n in (("cnndm", 235), ("xsum", 239)):
        rows = [
            dict(
                doc_id=str(i),
                source="the council met on monday to vote",
                system_output="the council met on monday" if i % 2 else "nobody came to the old mill",
                scores=dict(consistency=float(i % 2)),
                predict_scores=dict(consistency=0.5),
            )
            for i in range(n)
        ]
        (folder / "qags" / f"qags_{name}_result.json").write_text(json.dumps(rows))


def test_qags_and_the_gpt_study_are_used_when_they_are_there(tmp_path, monkeypatch):
    from uetrust.data import download as data
    from uetrust.data import loaders
    from uetrust.papers.ledger import recompute

    fake_qags(tmp_path)
    for system, word in (("gpt", "one"), ("brio", "two"), ("t0", "three")):
        rows = [dict(id=str(i), decoded=f"{word} two", references=["one two"]) for i in range(100)]
        (tmp_path / "ice").mkdir(exist_ok=True)
        (tmp_path / "ice" / f"{system}_summaries_converted.json").write_text(json.dumps(rows))
    monkeypatch.setenv("UETRUST_MIRROR", str(tmp_path))
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loaders, "fetch_file", data.find_file)  # the made files have hashes of their own
    for cached in (recompute._qags, recompute._qags_file):
        cached.cache_clear()
    sizes, three, rouge_l = recompute.fflm_table1_qags(), recompute.fflm_table3_qags(), recompute.ice_table2()
    for cached in (recompute._qags, recompute._qags_file):
        cached.cache_clear()
    assert list(sizes.values()) == [235, 239] and three["Rouge-2", "QAGSCNN", "pearson"] == pytest.approx(100)
    assert rouge_l == {
        ("ROUGE-L: GPT-3", "", "all dimensions"): 100,
        ("ROUGE-L: BRIO", "", "all dimensions"): 50,
        ("ROUGE-L: T0", "", "all dimensions"): 50,
    }
    (tmp_path / "ice" / "t0_summaries_converted.json").write_text(json.dumps(rows[:-1]))
    with pytest.raises(loaders.BadData, match="t0_summaries_converted.json"):
        loaders.ice_gpt_study()


@needs_data
def test_the_page_of_findings_says_what_the_ledger_says(led):
    facts, text = ledger.cell_ledger_facts(led), page_text("findings")
    assert f"print {facts.numbers:,} numbers. {facts.recomputed} can be recomputed" in text
    assert f"{facts.equal} are equal" in text and f"of which {facts.cut} are cut" in text
    assert f"{facts.different} differ. {facts.checked:,} can only be checked" in text
    assert f"and {facts.missing} need a model or data" in text


def test_every_number_has_one_status():
    status, how = [*ledger.CELL_STATUS, ledger.CELL_STATUS[0]], ["rounded", "", "", "", "cut"]
    facts = ledger.cell_ledger_facts(pd.DataFrame(dict(status=status, how=how)))
    assert facts == (5, 3, 2, 1, 1, 1, 1)
    assert facts.numbers == facts.recomputed + facts.checked + facts.missing
