"""The claim ledger: its language reads every claim, its rules give the recorded totals, and it says what it cannot decide."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.checks import Undefined
from uetrust.papers.he2024.claim_language import (
    FORMS,
    Bench,
    claim_dimension,
    claim_tables,
    evaluate,
    find,
    language,
    noise_sd,
    rank_corr,
)
from uetrust.papers.he2024.claims import (
    QUANTIFIERS,
    TESTS,
    VERDICTS,
    Part,
    changed,
    ledger,
    parse,
    totals,
    verdicts,
)
from uetrust.papers.he2024.published import claims, figures, null_sd, tables

T, C = tables(), {c.id: c for c in claims().itertuples()}
LED = ledger()
ROW = LED.set_index("id")
BENCH = Bench(T)


def value(cell, c=None):
    return evaluate(BENCH, c or C["4.2-01"], cell).values[0]


def verdict(id):
    return ROW.loc[id, "verdict"]


# --- totals of the audit


def test_totals():
    assert totals(LED).tolist()[:8] == [114, 21, 18, 1, 16, 83, 53, 109]


@pytest.mark.parametrize("seed", range(4))
def test_about_27_holding_claims_are_overturned_by_noise(seed):
    assert abs(totals(ledger(seed=seed))["... same verdict in less than half of the draws"] - 27) <= 2


def test_the_ledger_is_deterministic():
    pd.testing.assert_frame_equal(LED, ledger())
    assert not LED["stability"].equals(ledger(seed=1)["stability"])


def test_columns_and_order():
    assert LED.columns.tolist() == [
        "id",
        "section",
        "where",
        "claim",
        "decided_by",
        "predicate",
        "satisfied",
        "cells",
        "verdict",
        "threshold_sensitive",
        "stability",
        "n_obs",
        "significant_cells",
        "correlation_cells",
        "note",
    ]
    assert LED["id"].tolist() == claims()["id"].tolist()


# --- what the audit says about single claims


def test_figure_10_perfect_disagreement():
    assert value("rho_rows(T6; ROUGE-L ~ wi-ingt-GPT-3.5 (Overall))") == -1
    assert verdict("C1.1-02") == "holds"


def test_figure_4_is_not_one():
    assert value("rho_rows(T5; wi-ingt-GPT-3.5 (Fluency) ~ UniEval (Relevance))") == 0.6
    assert verdict("C1.1-03") == "fails"


def test_figure_16_is_not_identical():
    judge = [f"{p}-GPT-3.5 (Relevance)" for p in ("wo", "wi-in", "wi-gt", "wi-ingt")]
    rho = {p: value(f"rho_rows(T5; {p[0]} ~ {p[1]})") for p in combinations(judge, 2)}
    assert rho.pop((judge[0], judge[1])) == rho.pop((judge[2], judge[3])) == 1
    assert set(rho.values()) == {0.8}
    assert (verdict("C1.2-07"), ROW.loc["C1.2-07", "satisfied"]) == ("fails", 1)


def test_figures_25_and_34():
    assert verdict("C1.6-01") == verdict("C1.4-11") == "holds"


def test_figures_18_to_20():
    "Ten of eleven statements hold, one of them exactly at the threshold; the eleventh is met in 9 of 10 cells"
    ids = [f"C1.3-{i:02d}" for i in (1, 2, 3, 4, 8, 9, 10, 13, 14, 15, 16)]
    assert ROW.loc[ids, "where"].isin(["Fig. 18", "Fig. 19", "Fig. 20"]).all()
    assert ROW.loc[ids, "verdict"].value_counts().to_dict() == dict(holds=10, partly=1)
    assert ROW.loc["C1.3-15", ["verdict", "satisfied", "cells"]].tolist() == ["partly", 9, 10]
    assert value("rho_rows(T7; BARTScore ~ wo-GPT-3.5 (Consistency))") == 0.5
    assert verdict("C1.3-03") == "holds"


def test_failing_general_findings():
    assert {
        i: (verdict(i), ROW.loc[i, "satisfied"], ROW.loc[i, "cells"])
        for i in ("6-01", "C1.3-22", "C1.3-26", "C2.4-05")
    } == {
        "6-01": ("fails", 3, 10),
        "C1.3-22": ("fails", 0, 6),
        "C1.3-26": ("fails", 1, 4),
        "C2.4-05": ("fails", 5, 15),
    }
    agree = [value(s) for s in C["6-01"].cells.split(" | ")]
    assert (round(min(agree), 2), round(max(agree), 2)) == (-0.33, 0.8)


def test_unieval_overall_is_high_in_six_of_sixteen_cases():
    cells = C["C1.6-10"].cells.split(" | ")
    assert sum(value(s) >= 0.5 for s in cells[:-1]) == 6
    assert value(cells[-1], C["C1.6-10"]) == (np.mean([value(s) < 0 for s in cells[:-1]]) < 0.5)
    assert verdict("C1.6-10") == "fails"


def test_ground_truth_dominates():
    d = np.array([value(s) for s in C["6-02"].cells.split(" | ")])
    assert ((d > 0).sum(), (d < 0).sum(), (d == 0).sum()) == (11, 6, 3)
    assert verdict("6-02") == "holds"


def test_redundancy_advice():
    "One of ECC, LexSim, EigV: right under metrics, wrong under human marks"
    nlg = [
        value(f"rho_cols({t}; {a} ~ {b})")
        for t in ("T5", "T6", "T9")
        for a, b in combinations(("ECC", "LexSim", "EigV"), 2)
    ]
    assert (verdict("4.2-16"), verdict("H-01"), verdict("H-02")) == ("holds", "holds", "fails")
    assert min(nlg) > 0.65 and max(nlg) < 0.985
    assert [round(value(f"rho_rows(T11; LexSim ~ {m})"), 2) for m in ("ECC", "EigV")] == [0.11, 0.11]
    assert verdict("C2.2-03") == "holds"


def test_method_claims_do_not_depend_on_the_drawn_metrics():
    "Figures 7, 8, 13, 14: all 30 or 31 metrics, or the 15 or 16 drawn ones"
    drawn = T | {
        t: T[t][~T[t].index.str.startswith(("wo-", "wi-gt-", "wi-in-"))] for t in ("T3", "T4", "T5", "T6")
    }
    ids = [i for i in ROW.index if i.startswith("4.2-") and "rho_cols" in C[i].cells]
    again = ledger(drawn, claims().query("id in @ids"), draws=0)
    assert len(ids) == 16
    assert again["verdict"].tolist() == [verdict(i) for i in ids]
    assert again.set_index("id")["n_obs"][["4.2-10", "4.2-13"]].tolist() == [16, 15]


def test_counts_and_captions():
    assert [
        verdict(i)
        for i in (
            "5-01",
            "5-02",
            "5-03",
            "5-04",
            "4.2-18",
            "4.2-20",
            "4.1-01",
            "5-05",
            "5-06",
            "C2.3-02",
            "5-08",
        )
    ] == ["holds", "holds", "fails", "fails", "fails", "fails", "fails", "holds", "holds", "holds", "fails"]


def test_eq_3_is_refuted_by_two_tables():
    "A fact is all or nothing: seven tables of nine do not make it partly true"
    assert [value(s) for s in C["5-07"].cells.split(" | ")] == [1, 0, 1, 1, 1, 1, 1, 1, 0]
    assert verdict("5-07") == "fails"
    assert np.isnan(ROW.loc["5-07", "stability"])


def test_noise_cannot_touch_facts():
    only = LED[LED["stability"].isna()]
    kinds = {find(C[i], s)[0].kind for i in only["id"] if C[i].cells for s in C[i].cells.split(" | ")}
    assert kinds == {"fact"}
    assert len(only) == 12 + 1 and (only["verdict"] == "holds").sum() == 5, (
        "twelve claims of facts, and the one that nothing decides"
    )


def test_n_obs():
    assert ROW.loc[["C1.1-02", "4.2-10", "4.2-08", "C2.3-07", "6-01", "C2.4-04"], "n_obs"].tolist() == [
        4,
        31,
        16,
        7,
        10,
        7,
    ]
    assert ROW.loc[["4.2-17", "5-01"], "n_obs"].isna().all()


def test_four_methods_are_never_significant():
    four = LED[
        [
            bool(c.cells)
            and all(
                s.startswith("rho_") and n == 4
                for s, n in ((s, evaluate(BENCH, c, s).n) for s in c.cells.split(" | "))
            )
            for c in C.values()
        ]
    ]
    assert len(four) > 20 and (four["significant_cells"] == 0).all()


def test_significance_is_tested_with_each_cells_own_n():
    "C1.2-16 mixes four to nine methods: rho = 1 counts where there are more than four"
    assert ROW.loc["C1.2-16", ["n_obs", "significant_cells", "correlation_cells"]].tolist() == [4, 4, 7]


# --- the language


def test_every_cell_of_every_claim_is_read():
    read = [(c.id, s, find(c, s)) for c in C.values() if c.cells for s in c.cells.split(" | ")]
    assert len(read) == 1020
    for id, s, _ in read:
        assert sum(f.pattern.fullmatch(s) is not None for f in FORMS) == 1, (id, s)


def test_every_form_is_used_and_explained():
    lang = language()
    assert (lang["cells"] > 0).all() and lang["meaning"].str.len().gt(20).all()
    assert set(lang["kind"]) == {"rho", "derived", "prr", "fact"}


def test_every_test_and_quantifier_is_used():
    parts = [p for c in C.values() for p in parse(c)[0]]
    assert {p.test for p in parts} == set(TESTS) and {p.quantifier for p in parts} == set(QUANTIFIERS)


@given(
    st.integers(2, 7).flatmap(
        lambda n: st.lists(st.lists(st.integers(-3, 3), min_size=n, max_size=n), min_size=2, max_size=4)
    )
)
def test_rank_corr_equals_scipy(rows):
    from scipy.stats import rankdata

    x = np.array(rows, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        want = np.corrcoef(rankdata(x, axis=1))
    flat = np.ptp(x, axis=1) == 0
    want[flat[:, None] | flat] = np.nan
    np.testing.assert_allclose(rank_corr(x), want, rtol=0, atol=1e-11)


def test_a_missing_value_undoes_its_own_row_only():
    x = np.array([[1.0, 2, 3], [3, np.nan, 1], [1, 3, 2]])
    assert (np.isnan(rank_corr(x)) == [[0, 1, 0], [1, 1, 1], [0, 1, 0]]).all()


def claim(**kw):
    return C["4.2-01"]._replace(**kw)


PRR = pd.DataFrame(
    [[0.1, 0.2, 0.3, 0.4], [0.15, 0.1, 0.4, 0.3], [0.4, 0.3, 0.2, -0.2]],
    ["CTC", "SummaC", "ROUGE-L"],
    ["NumSets", "ECC", "LexSim", "EigV"],
)
TOY = Bench({"T5": PRR, "T9": PRR, "T11": PRR.T})


@pytest.mark.parametrize(
    "cell,want,n",
    [
        ("rho_rows(T5; CTC ~ SummaC)", 0.6, 4),
        ("rho_rows(T5; CTC ~ ROUGE-L)", -1, 4),
        ("rho_cols(T5; NumSets ~ ECC)", 0.5, 3),
        ("rho_cols(T5; NumSets ~ EigV)", -1, 3),
        ("T5[CTC, EigV]", 0.4, 0),
        ("T5[ROUGE-L, RowMean]", 0.175, 0),
        ("T5: ECC~LexSim is the largest of the three", 0, 3),
        ("T5: ECC~EigV is the largest of the three", 0, 3),
        ("T5: LexSim~EigV is the largest of the three", 1, 3),
        ("rho(T9[CTC], T11 Row Mean)", -0.4, 4),
        ("CTC all positive", 1, 0),
        ("ROUGE-L: all seven PRR > 0", 0, 0),
        ("ECC all positive", 1, 0),
        ("EigV all positive", 0, 0),
        ("share of positive cells < 1/2", 0, 0),
        ("argmax Row Mean = CTC", 1, 0),
        ("argmax Col Mean T5 = LexSim", 1, 0),
        ("argmax Col Mean T5 = NumSets", 0, 0),
        ("CTC: argmax = EigV", 1, 0),
        ("SummaC: argmax = EigV", 0, 0),
        ("SummaC: argmax = MSP", 0, 0),
        ("rank order by Col Mean (T9) differs from rank order by Row Mean (T11)", 0, 0),
    ],
)
def test_forms_on_a_toy_table(cell, want, n):
    "Means of columns: 0.217, 0.2, 0.3, 0.167; of rows: 0.25, 0.2375, 0.175"
    got = evaluate(TOY, claim(decided_by="T9" if "EigV all" in cell or "ECC all" in cell else "T5"), cell)
    assert (got.values[0], got.n) == (pytest.approx(want, abs=1e-12), n)


def judged(tables=("T3", "T4", "T5", "T6"), **rows):  # Four methods, ranks as digits: judged(wo='1234')
    return Bench(
        {
            t: pd.DataFrame(
                {
                    f"{k.replace('_', '-')}-GPT-3.5 (Consistency)": [int(x) / 10 for x in v]
                    for k, v in rows.items()
                },
                index=["NumSets", "ECC", "LexSim", "EigV"],
            ).T
            for t in tables
        }
    )


def test_forms_about_judges():
    c, b = (
        claim(section="C.1.3", decided_by="T3-T6"),
        judged(wo="1234", wi_gt="1243", wi_ingt="1234", wi_in="4321"),
    )
    assert [
        evaluate(b, c, f"T5: rho({p}, {q}) < 1").values[0] for p, q in (("wi-gt", "wi-in"), ("wo", "wi-ingt"))
    ] == [1, 0]
    assert evaluate(b, c, "T5 Consistency: rho(wi-ingt, wi-gt) - rho(wi-ingt, wi-in)").values[
        0
    ] == pytest.approx(0.8 + 1)
    assert evaluate(b, c, "T5: mean rho(wi-in, others) < mean rho among others").values[0] == 1
    assert (
        evaluate(b, c, "mean[1-rho(wo,wi-gt)] < mean[1-rho(wi-gt,wi-in)] over four settings").values[0] == 1
    )
    assert (
        evaluate(b, c, "mean[1-rho(wi-gt,wi-in)] < mean[1-rho(wo,wi-gt)] over four settings").values[0] == 0
    )
    assert evaluate(b, c, "max(wins gt, wins in) < 3 of 4").values[0] == 0
    assert (
        evaluate(
            judged(wo="1234", wi_gt="1243", wi_ingt="1234", wi_in="1243"), c, "max(wins gt, wins in) < 3 of 4"
        ).values[0]
        == 1
    )


def test_a_source_that_wins_three_settings_of_four_dominates():
    gt, tie = (
        dict(wo="1234", wi_gt="1243", wi_ingt="1234", wi_in="4321"),
        dict(wo="1234", wi_gt="1243", wi_ingt="1234", wi_in="1243"),
    )
    c = claim(section="C.1.6", decided_by="T3-T6")

    def undecided(wins):
        t = {
            k: d.rename(index=lambda m: m.replace("Consistency", "Overall"))
            for k in ("T3", "T4", "T5", "T6")
            for d in [judged((k,), **(gt if k < f"T{3 + wins}" else tie)).frame(k)]
        }
        return evaluate(Bench(t), c, "max(wins gt, wins in) < 3 of 4").values[0]

    assert [undecided(k) for k in range(5)] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("negative,want", [(0, 1), (1, 1), (2, 0), (3, 0)])
def test_share_of_negative_cells(negative, want):
    "Of four correlations of the toy table: half are not few"
    plus, minus = "rho_rows(T5; CTC ~ SummaC)", "rho_rows(T5; CTC ~ ROUGE-L)"
    c = claim(
        cells=" | ".join([minus] * negative + [plus] * (4 - negative) + ["share of negative cells < 1/2"])
    )
    got = evaluate(TOY, c, "share of negative cells < 1/2")
    assert (got.values[0], got.n) == (want, 4)


def test_forms_about_a_whole_figure():
    "Figure 3 with all 16 metrics alike: each is a hub, every pair is identical, none is negative"
    alike = Bench({"T7": T["T7"] * 0 + np.arange(9.0), "T8": T["T8"] * 0 + np.arange(9.0)})
    c = claim(section="C.1.3", decided_by="T7")
    want = {
        "Fig 3: CTC > 0.5 with all": 1,
        "Fig 3: some pair other than Spearman/Kendall-Tau has rho = 1": 1,
        "T7: some pair of metrics has rho < 1": 0,
        "T7: some pair has rho < 0": 0,
        "T7: max(rho(CTC,SummaC), rho(CTC,UniEval)) > 0": 1,
        "T7: UniEval (Relevance) positive with > 50 % of the others": 1,
    }
    assert {s: evaluate(alike, c, s).values[0] for s in want} == want
    one = T["T7"] * 0 + np.arange(9.0)
    one.loc["CTC"] *= -1
    odd = Bench({"T7": one})
    want = {
        "Fig 3: CTC > 0.5 with all": 0,
        "Fig 3: SummaC > 0.5 with all": 0,
        "T7: some pair of metrics has rho < 1": 1,
        "T7: some pair has rho < 0": 1,
        "T7: min(rho(CTC,SummaC), rho(CTC,UniEval)) > 0": 0,
        "T7: max(rho(CTC,SummaC), rho(CTC,UniEval)) > 0": 0,
    }
    assert {s: evaluate(odd, c, s).values[0] for s in want} == want


def test_twins_alone_are_no_identical_pair():
    x = pd.DataFrame(np.random.default_rng(0).standard_normal(T["T7"].shape), T["T7"].index, T["T7"].columns)
    x.loc["Spearman"] = x.loc["Kendall-Tau"]
    assert (
        evaluate(
            Bench({"T7": x}), C["C1.1-04"], "Fig 3: some pair other than Spearman/Kendall-Tau has rho = 1"
        ).values[0]
        == 0
    )
    x.loc["CTC"] = x.loc["SummaC"]
    assert (
        evaluate(
            Bench({"T7": x}), C["C1.1-04"], "Fig 3: some pair other than Spearman/Kendall-Tau has rho = 1"
        ).values[0]
        == 1
    )


def test_both_signs():
    c = C["C1.2-13"]
    x = T["T4"] * 0 + np.arange(6.0)
    assert evaluate(Bench({"T4": x}), c, "ROUGE-L: both signs occur").values[0] == 0
    x.loc["Spearman"] *= -1
    assert [
        evaluate(Bench({"T4": x}), c, f"{m}: both signs occur").values[0] for m in ("ROUGE-L", "Spearman")
    ] == [1, 0]


def test_matrix_agreement_of_equal_tables_is_one():
    s = "matrix agreement bart Relevance: Spearman between the off-diagonal cells of the AESLC and XSUM matrices"
    assert evaluate(Bench({"T7": T["T7"], "T8": T["T7"]}), C["6-01"], s)[1:] == (1, 10)


def test_tables_and_dimension_of_a_claim():
    assert claim_tables(claim(decided_by="T3-T5, T9")) == ["T3", "T4", "T5", "T9"]
    assert claim_dimension(claim(section="C.1.5 / 6")) == "fluency"
    with pytest.raises(ValueError, match="claim 4.2-01: section '4.2' belongs to no dimension"):
        claim_dimension(claim(section="4.2"))


# --- noise


def test_noise_has_the_stated_size():
    b = Bench(T, draws=4000)
    for t, sd in dict(T3=null_sd(1906), T4=null_sd(11334), T9=null_sd(100), T10=0.3, T11=0.3).items():
        assert noise_sd(t) == sd
        z = (b.x(t)[1:] - T[t].to_numpy()) / sd
        assert z.std() == pytest.approx(1, abs=0.01) and abs(z.mean()) < 0.01
        assert (b.x(t)[0] == T[t].to_numpy()).all()


def test_noise_of_an_unknown_table_is_an_error():
    with pytest.raises(ValueError, match="the noise of 'T12' is not known"):
        Bench({"T12": PRR}).x("T12")


def test_noise_of_a_table_does_not_depend_on_the_others():
    assert (Bench({"T7": T["T7"]}, 3, 1).x("T7") == Bench(T, 3, 1).x("T7")).all()
    assert (Bench(T, 3, 1).x("T7") != Bench(T, 3, 2).x("T7"))[1:].all()


def test_all_draws_of_a_cell_agree_with_one_table_at_a_time():
    b = Bench(T, draws=3)
    for k in range(4):
        single = Bench({t: pd.DataFrame(b.x(t)[k], d.index, d.columns) for t, d in T.items()})
        for id in (
            "4.2-14",
            "4.4-01",
            "4.4-02",
            "C1.1-04",
            "C1.2-13",
            "C1.2-15",
            "C1.2-17",
            "C1.3-21",
            "C1.3-27",
            "C1.3-28",
            "C1.6-10",
            "C1.6-12",
            "C2.4-02",
            "C2.4-03",
            "C2.4-05",
        ):
            for s in C[id].cells.split(" | "):
                assert evaluate(b, C[id], s).values[k] == evaluate(single, C[id], s).values[0], (id, s)


# --- verdicts


def read(parts, values, **kw):
    return str(VERDICTS[verdicts([Part(*p) for p in parts], np.array(values, float)[:, None], **kw)[0][0]])


@pytest.mark.parametrize(
    "quantifier,holds",
    [("all of", 4), ("none of", 0), ("at least one of", 1), (">= 75 % of", 3), ("> 50 % of", 3)],
)
def test_quantifiers(quantifier, holds):
    "The smallest (for 'none of': largest) number of true cells, out of four, with which a claim holds"
    got = [read([(quantifier, 4, "is true")], [1] * k + [0] * (4 - k)) == "holds" for k in range(5)]
    assert got == [k <= holds if quantifier == "none of" else k >= holds for k in range(5)]


@pytest.mark.parametrize(
    "test,true,false",
    [
        (">= S", 0.5, 0.499),
        ("<= -S", -0.5, -0.499),
        ("v < S", 0.499, 0.5),
        ("|v| < S", -0.499, -0.5),
        ("0 < v < S", 0.499, 0.5),
        ("0 < v < S", 0.001, 0),
        ("v < Z", 0.299, 0.3),
        ("v > 0", 0.001, 0),
        ("v < 0", -0.001, 0),
        ("v >= 0.9", 0.9, 0.899),
        ("v = 1", 1, 0.999),
        ("v = -1", -1, -0.999),
        ("is true", 1, 0),
    ],
)
def test_tests(test, true, false):
    assert (read([("all of", 1, test)], [true]), read([("all of", 1, test)], [false])) == ("holds", "fails")


def test_partly():
    assert read([("all of", 4, "v > 0")], [1, 1, 0, 0]) == "partly"
    assert read([("all of", 4, "v > 0")], [1, 0, 0, 0]) == "fails"
    assert read([("none of", 4, "v > 0")], [1, 1, 0, 0]) == "partly"
    assert read([("none of", 4, "v > 0")], [1, 1, 1, 0]) == "fails"
    assert read([("all of", 3, "v > 0"), ("all of", 1, "v < 0")], [0, 0, 0, -1]) == "partly", (
        "one part of two is met"
    )
    assert read([("all of", 3, "v > 0"), ("all of", 1, "v < 0")], [0, 0, 0, 1]) == "fails"
    assert read([("all of", 4, "is true")], [1, 1, 1, 0], quoted=True) == "fails"
    assert read([("all of", 4, "is true")], [1, 1, 1, 1], quoted=True) == "holds"


def test_thresholds_are_arguments():
    assert ledger(strong=0.6).set_index("id").loc["C1.3-03", "verdict"] == "fails"
    assert ROW.loc["C1.3-03", "threshold_sensitive"] and not ROW.loc["C1.3-02", "threshold_sensitive"]
    low, high = (ledger(strong=s, none=z, draws=0)["verdict"] for s, z in ((0.4, 0.2), (0.6, 0.4)))
    decided = LED["verdict"] != "not decidable"
    assert (
        LED["threshold_sensitive"][decided].astype(bool)
        == ((low != LED["verdict"]) | (high != LED["verdict"]))[decided]
    ).all()


def test_without_draws_there_is_no_stability():
    led = ledger(draws=0)
    assert led["stability"].isna().all() and led["verdict"].equals(LED["verdict"])


# --- what cannot be read or decided


def one(**kw):
    return pd.DataFrame([claim(**kw)._asdict()]).drop(columns="Index")


@pytest.mark.parametrize(
    "kw,message",
    [
        (
            dict(cells="rho(T3; a)", predicate="all of 1 cells v > 0"),
            r"claim X: no form reads the cell 'rho\(T3; a\)'",
        ),
        (
            dict(cells="T5[CTC, ECC]", predicate="most of 1 cells v > 0"),
            r"claim X: cannot read 'most of 1 cells v > 0'; a part is .*'at least one of'",
        ),
        (
            dict(cells="T5[CTC, ECC]", predicate="all of 1 cells v > 1"),
            r"claim X: cannot read 'all of 1 cells v > 1'",
        ),
        (
            dict(cells="T5[CTC, ECC]", predicate="all of 2 cells v > 0"),
            "claim X: the predicate speaks of 2 cells, the claim has 1",
        ),
    ],
)
def test_broken_claims_are_errors_that_name_the_claim(kw, message):
    with pytest.raises(ValueError, match=message):
        ledger(claims=one(id="X", **kw))


def test_claims_need_their_columns():
    with pytest.raises(ValueError, match=r"missing: \['predicate', 'cells'\]"):
        ledger(claims=claims()[["id", "section", "where", "claim", "decided_by"]])


def test_the_undecidable_claim():
    r = ROW.loc["4.2-23"]
    assert (r["verdict"], r["note"]) == ("not decidable", "no printed number decides it")
    assert r[["satisfied", "threshold_sensitive", "stability", "n_obs"]].isna().all()


def test_a_missing_table_leaves_open_exactly_what_needs_it():
    led = ledger({t: d for t, d in T.items() if t != "T8"}, draws=0)
    open_ = led[led["verdict"] == "not decidable"].set_index("id").drop(index="4.2-23")
    uses = lambda c: any(
        "T8" in s or "Fig 9:" in s or "matrix agreement bart" in s
        for s in c.cells.split(" | ")
        if s and find(c, s)[0].kind != "fact"
    )
    assert set(open_.index) == {i for i, c in C.items() if uses(c)}
    assert open_["note"].str.startswith("table T8 is missing; given are T3, T4").all()
    rest = ~led["id"].isin(open_.index)
    assert led["verdict"][rest].equals(LED["verdict"][rest])


def test_without_tables_only_facts_remain():
    led = ledger({}, draws=0)
    assert led.set_index("id")["verdict"][lambda v: v != "not decidable"].to_dict() == {
        i: verdict(i) for i in LED["id"][LED["stability"].isna()] if i != "4.2-23"
    }
    assert "given are none" in led["note"][0]


@pytest.mark.parametrize(
    "change,note",
    [
        (lambda d: d.drop(index="CTC"), "table T7 has no row 'CTC'"),
        (lambda d: d.drop(columns="MD"), "table T7 has no col 'MD'"),
        (lambda d: d.T.assign(CTC=0).T, "a constant among 'SummaC', 'CTC'"),
        (lambda d: d.where(d != d.loc["CTC", "MD"]), "a missing value or"),
    ],
)
def test_a_missing_row_column_or_value_leaves_a_claim_open(change, note):
    c = claims().query("id=='C1.3-02'" if "MD" not in note else "id=='4.2-09'")
    led = ledger(T | {"T7": change(T["T7"])}, c, draws=5)
    assert led["verdict"].tolist() == ["not decidable"]
    assert note in led["note"][0]


def test_a_missing_prr_is_named():
    x = T["T7"].copy()
    x.loc["UniEval (Consistency)", "MD"] = np.nan
    led = ledger(T | {"T7": x}, claims().query("id=='4.2-17'"), draws=0)
    assert led["note"][0] == "table T7 lacks a value in 'UniEval (Consistency)'"


def test_another_run_moves_verdicts_and_changed_lists_them():
    flipped = ledger(T | {"T7": -T["T7"]}, draws=0)
    d = changed(LED, flipped).set_index("id")
    assert d.loc["4.2-17", ["before", "after"]].tolist() == ["holds", "fails"]
    assert len(changed(LED, LED)) == 0
    moved = (LED["verdict"] != flipped["verdict"]).to_numpy()
    assert d.index.tolist() == LED["id"][moved].tolist() and (d["before"] != d["after"]).all()
    assert flipped.set_index("id").loc["C1.3-01", "verdict"] == "holds", (
        "a correlation of two rows does not change when both turn"
    )


def test_figures_of_the_claims_are_the_registered_ones():
    assert {f"T{figures().loc[k, 'source_table']}" for k in (3, 4, 5, 9, 10, 11)} == {
        "T3",
        "T4",
        "T5",
        "T6",
        "T7",
        "T8",
    }
    assert ROW.loc["C1.1-01", ["verdict", "cells"]].tolist() == ["holds", 94]


def test_undefined_is_the_reason():
    with pytest.raises(Undefined, match="table T3 is missing"):
        TOY.corr("T3", ["CTC", "SummaC"])
