"""Language of claims: every pattern, quantifier and draw on tables that are made up."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.helpers.claims import CLAIMS, PRR, TABLES, TOY, claim
from uetrust.core.checks import Undefined
from uetrust.papers.he2024.claim_language import (
    NoisyTables,
    _claim_dimension,
    _noise_sd,
    claim_tables,
    evaluate_cell,
    rank_correlations,
    shuffled_tables,
)
from uetrust.papers.he2024.published import normal_null_sd


def test_a_missing_value_undoes_its_own_row_only():
    x = np.array([[1.0, 2, 3], [3, np.nan, 1], [1, 3, 2]])
    assert (np.isnan(rank_correlations(x)) == [[0, 1, 0], [1, 1, 1], [0, 1, 0]]).all()


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
def test_patterns_on_a_toy_table(cell, want, n):
    "Means of columns: 0.217, 0.2, 0.3, 0.167; of rows: 0.25, 0.2375, 0.175"
    got = evaluate_cell(
        TOY, claim(decided_by="T9" if "EigV all" in cell or "ECC all" in cell else "T5"), cell
    )
    assert (got.values[0], got.n) == (pytest.approx(want, abs=1e-12), n)


def judged(tables=("T3", "T4", "T5", "T6"), **rows):  # Four methods, ranks as digits: judged(wo='1234')
    named = {
        f"{prompt.replace('_', '-')}-GPT-3.5 (Consistency)": [int(digit) / 10 for digit in ranks]
        for prompt, ranks in rows.items()
    }
    table = pd.DataFrame(named, index=["NumSets", "ECC", "LexSim", "EigV"]).T
    return NoisyTables(dict.fromkeys(tables, table))


def test_patterns_about_judges():
    one_claim = claim(section="C.1.3", decided_by="T3-T6")
    given = judged(wo="1234", wi_gt="1243", wi_ingt="1234", wi_in="4321")

    def first(cell, tables=given):
        return evaluate_cell(tables, one_claim, cell).values[0]

    assert [first("T5: rho(wi-gt, wi-in) < 1"), first("T5: rho(wo, wi-ingt) < 1")] == [1, 0]
    difference = first("T5 Consistency: rho(wi-ingt, wi-gt) - rho(wi-ingt, wi-in)")
    assert difference == pytest.approx(0.8 + 1)
    assert first("T5: mean rho(wi-in, others) < mean rho among others") == 1
    assert first("mean[1-rho(wo,wi-gt)] < mean[1-rho(wi-gt,wi-in)] over four settings") == 1
    assert first("mean[1-rho(wi-gt,wi-in)] < mean[1-rho(wo,wi-gt)] over four settings") == 0
    assert first("max(wins gt, wins in) < 3 of 4") == 0
    tied = judged(wo="1234", wi_gt="1243", wi_ingt="1234", wi_in="1243")
    assert first("max(wins gt, wins in) < 3 of 4", tied) == 1


def test_a_source_that_wins_three_settings_of_four_dominates():
    reference_wins = dict(wo="1234", wi_gt="1243", wi_ingt="1234", wi_in="4321")
    tie = dict(wo="1234", wi_gt="1243", wi_ingt="1234", wi_in="1243")
    one_claim = claim(section="C.1.6", decided_by="T3-T6")

    def table(name, wins):
        ranks = reference_wins if name < f"T{3 + wins}" else tie
        return (
            judged((name,), **ranks)
            .frame(name)
            .rename(index=lambda row: row.replace("Consistency", "Overall"))
        )

    def undecided(wins):
        given = NoisyTables({name: table(name, wins) for name in ("T3", "T4", "T5", "T6")})
        return evaluate_cell(given, one_claim, "max(wins gt, wins in) < 3 of 4").values[0]

    assert [undecided(k) for k in range(5)] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("negative,want", [(0, 1), (1, 1), (2, 0), (3, 0)])
def test_share_of_negative_cells(negative, want):
    "Of four correlations of the toy table: half are not few"
    plus, minus = "rho_rows(T5; CTC ~ SummaC)", "rho_rows(T5; CTC ~ ROUGE-L)"
    one_claim = claim(
        cells=" | ".join([minus] * negative + [plus] * (4 - negative) + ["share of negative cells < 1/2"])
    )
    got = evaluate_cell(TOY, one_claim, "share of negative cells < 1/2")
    assert (got.values[0], got.n) == (want, 4)


def test_patterns_about_a_whole_figure():
    "Figure 3 with all 16 metrics alike: each is a hub, every pair is identical, none is negative"
    alike = NoisyTables({"T7": TABLES["T7"] * 0 + np.arange(9.0), "T8": TABLES["T8"] * 0 + np.arange(9.0)})
    one_claim = claim(section="C.1.3", decided_by="T7")
    want = {
        "Fig 3: CTC > 0.5 with all": 1,
        "Fig 3: some pair other than Spearman/Kendall-Tau has rho = 1": 1,
        "T7: some pair of metrics has rho < 1": 0,
        "T7: some pair has rho < 0": 0,
        "T7: max(rho(CTC,SummaC), rho(CTC,UniEval)) > 0": 1,
        "T7: UniEval (Relevance) positive with > 50 % of the others": 1,
    }
    assert {cell: evaluate_cell(alike, one_claim, cell).values[0] for cell in want} == want
    one = TABLES["T7"] * 0 + np.arange(9.0)
    one.loc["CTC"] *= -1
    odd = NoisyTables({"T7": one})
    want = {
        "Fig 3: CTC > 0.5 with all": 0,
        "Fig 3: SummaC > 0.5 with all": 0,
        "T7: some pair of metrics has rho < 1": 1,
        "T7: some pair has rho < 0": 1,
        "T7: min(rho(CTC,SummaC), rho(CTC,UniEval)) > 0": 0,
        "T7: max(rho(CTC,SummaC), rho(CTC,UniEval)) > 0": 0,
    }
    assert {cell: evaluate_cell(odd, one_claim, cell).values[0] for cell in want} == want


def test_twins_alone_are_no_identical_pair():
    table = pd.DataFrame(
        np.random.default_rng(0).standard_normal(TABLES["T7"].shape), TABLES["T7"].index, TABLES["T7"].columns
    )
    table.loc["Spearman"] = table.loc["Kendall-Tau"]
    cell = "Fig 3: some pair other than Spearman/Kendall-Tau has rho = 1"
    assert evaluate_cell(NoisyTables({"T7": table}), CLAIMS["C1.1-04"], cell).values[0] == 0
    table.loc["CTC"] = table.loc["SummaC"]
    assert evaluate_cell(NoisyTables({"T7": table}), CLAIMS["C1.1-04"], cell).values[0] == 1


def test_both_signs():
    one_claim = CLAIMS["C1.2-13"]
    table = TABLES["T4"] * 0 + np.arange(6.0)
    assert evaluate_cell(NoisyTables({"T4": table}), one_claim, "ROUGE-L: both signs occur").values[0] == 0
    table.loc["Spearman"] *= -1
    assert [
        evaluate_cell(NoisyTables({"T4": table}), one_claim, f"{metric}: both signs occur").values[0]
        for metric in ("ROUGE-L", "Spearman")
    ] == [1, 0]


def test_matrix_agreement_of_equal_tables_is_one():
    cell = (
        "matrix agreement bart Relevance: "
        "Spearman between the off-diagonal cells of the AESLC and XSUM matrices"
    )
    found = evaluate_cell(NoisyTables({"T7": TABLES["T7"], "T8": TABLES["T7"]}), CLAIMS["6-01"], cell)
    assert (found.values, found.n) == (1, 10)


@pytest.mark.parametrize(
    "cell",
    [
        "T5 Consistency: rho(wi-ingt, wi-gt) - rho(wi-ingt, wi-in)",
        "matrix agreement bart Relevance: "
        "Spearman between the off-diagonal cells of the AESLC and XSUM matrices",
        "T5: ECC~LexSim is the largest of the three",
        "Fig 3: some pair other than Spearman/Kendall-Tau has rho = 1",
        "Fig 3: CTC > 0.5 with all",
        "T7: UniEval (Relevance) positive with > 50 % of the others",
        "T5: rho(wi-gt, wi-in) < 1",
        "T7: max(rho(CTC,SummaC), rho(CTC,UniEval)) > 0",
        "mean[1-rho(wo,wi-gt)] < mean[1-rho(wi-gt,wi-in)] over four settings",
        "T5: mean rho(wi-in, others) < mean rho among others",
        "max(wins gt, wins in) < 3 of 4",
        "14 methods",
        "number of groups in Table 2 = 5",
        "TofuEval release holds 1500 dialogue-summary pairs",
        "text about these figures uses wi-ingt only",
    ],
)
def test_what_names_judges_metrics_or_figures_of_he_et_al_is_open_for_another_paper(cell):
    own_claim = claim(section="C.1.3", decided_by="T3-T6")
    with pytest.raises(Undefined, match="can only be evaluated for He et al"):
        evaluate_cell(NoisyTables(TABLES, paper="ice"), own_claim, cell)


def test_matrix_agreement_is_spearmans_between_the_pairs_of_metrics():
    cell = (
        "matrix agreement bart Relevance: "
        "Spearman between the off-diagonal cells of the AESLC and XSUM matrices"
    )
    metrics = ["ROUGE-L", "Spearman", "Kendall-Tau", "UniEval (Relevance)", "wo-GPT-3.5 (Relevance)"]
    pairs = np.triu_indices(len(metrics), 1)
    aeslc, xsum = (TABLES[name].loc[metrics].T.corr("spearman").to_numpy()[pairs] for name in ("T7", "T8"))
    found = evaluate_cell(NoisyTables(TABLES), CLAIMS["6-01"], cell)
    assert found.n == len(aeslc)
    assert found.values[0] == pytest.approx(stats.spearmanr(aeslc.round(9), xsum.round(9)).statistic)


def test_tables_and_dimension_of_a_claim():
    assert claim_tables(claim(decided_by="T3-T5, T9")) == ["T3", "T4", "T5", "T9"]
    assert _claim_dimension(claim(section="C.1.5 / 6")) == "fluency"
    with pytest.raises(ValueError, match="claim 4.2-01: section '4.2' belongs to no dimension"):
        _claim_dimension(claim(section="4.2"))


# --- noise


def test_noise_has_the_stated_size():
    noisy = NoisyTables(TABLES, draws=4000)
    for name, sd in dict(
        T3=normal_null_sd(1906), T4=normal_null_sd(11334), T9=normal_null_sd(100), T10=0.3, T11=0.3
    ).items():
        assert _noise_sd(name) == sd
        noise = (noisy.array(name)[1:] - TABLES[name].to_numpy()) / sd
        assert noise.std() == pytest.approx(1, abs=0.01) and abs(noise.mean()) < 0.01
        assert (noisy.array(name)[0] == TABLES[name].to_numpy()).all()


def test_noise_of_an_unknown_table_is_an_error():
    with pytest.raises(ValueError, match="the noise of 'T12' is not known"):
        NoisyTables({"T12": PRR}).array("T12")


def test_noise_of_a_table_does_not_depend_on_the_others():
    assert (
        NoisyTables({"T7": TABLES["T7"]}, 3, 1).array("T7") == NoisyTables(TABLES, 3, 1).array("T7")
    ).all()
    assert (NoisyTables(TABLES, 3, 1).array("T7") != NoisyTables(TABLES, 3, 2).array("T7"))[1:].all()


def test_shuffles_of_a_table_are_those_of_seed_0_and_do_not_depend_on_the_others():
    alone, all_, other = (
        shuffled_tables(given, 3, **seed).array("T7")
        for given, seed in (({"T7": TABLES["T7"]}, {}), (TABLES, dict(seed=0)), (TABLES, dict(seed=1)))
    )
    assert (alone == all_).all() and (alone[0] == TABLES["T7"]).all(axis=None)
    assert (alone[1:] != other[1:]).any()


def test_all_draws_of_a_cell_agree_with_one_table_at_a_time():
    noisy = NoisyTables(TABLES, draws=3)
    for k in range(4):
        single = NoisyTables(
            {
                name: pd.DataFrame(noisy.array(name)[k], table.index, table.columns)
                for name, table in TABLES.items()
            }
        )
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
            for cell in CLAIMS[id].cells.split(" | "):
                assert (
                    evaluate_cell(noisy, CLAIMS[id], cell).values[k]
                    == evaluate_cell(single, CLAIMS[id], cell).values[0]
                ), (id, cell)
