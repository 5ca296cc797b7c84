"""PRR tables of a run: scores of rows and columns, missing cells, verdicts, tests against printed cells."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.helpers.paths import ROOT
from uetrust.evaluation.prr import prr, prr_table
from uetrust.evaluation.resample import bootstrap_counts
from uetrust.papers.he2024 import own_tables as ot
from uetrust.papers.he2024.claims import CLAIM_VERDICTS, claim_ledger
from uetrust.papers.he2024.published import (
    DATASET_SIZES,
    normal_null_sd,
    printed_claims,
    printed_tables,
    table_settings,
)
from uetrust.report.plan import run_plan
from uetrust.statistics.scores import load_scores

reg = load_scores()

TABLES, PRINTED = printed_tables(), claim_ledger(draws=0)


def written(folder, bank, prr, left=(), missing=()):
    "A bank's results as the chapters write them"
    folder = Path(folder) / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    prr.to_csv(folder / f"cross--{bank}_prr.csv", index=False)
    pd.DataFrame(left, columns=["kind", "name", "why"]).to_csv(
        folder / f"cross--{bank}_left_out.csv", index=False
    )
    pd.DataFrame(missing, columns=["name", "lacks"]).to_csv(
        folder / f"methods--{bank}_missing.csv", index=False
    )


@pytest.fixture(scope="module")
def bank():
    "60 texts: metrics, methods and errors under names of the registry, with ties"
    rng = np.random.default_rng(1)
    truth, names = rng.integers(0, 9, 60) / 8, [f"s{i}" for i in range(60)]

    def noisy(sign, scores):
        return pd.DataFrame(
            {score: sign * truth + 0.4 * rng.normal(size=60).round(1) for score in scores}, names
        )

    quality = noisy(1, [scores[0] for metric, scores in ot.REGISTERED_METRICS.items() if "GPT" not in metric])
    uncertainty = noisy(-1, ["num_sets", "ecc", "lex_sim", "eigv"])
    errors = {error: (rng.random(60) < 0.4) * rng.random(60).round(1) for error in TABLES["T11"]}
    return quality, uncertainty, pd.DataFrame(errors, names).assign(CO=0.0)


# Scores of rows and columns
def test_the_released_form_comes_first_wherever_there_is_one():
    for options in (ot.REGISTERED_METHODS | ot.REGISTERED_METRICS).values():
        assert len(options) <= 2 and all(reg[name] for name in options)
        released = f"{options[-1].removesuffix('_he2024')}_he2024" in reg or options[0] != options[-1]
        assert options[0].endswith("_he2024") == released, options


def test_two_names_of_the_paper_never_share_a_score():
    names = [name for options in (ot.REGISTERED_METHODS | ot.REGISTERED_METRICS).values() for name in options]
    assert len(set(names)) == len(names)


def test_a_score_without_a_ranking_is_not_replaced_and_one_never_computed_is(tmp_path):
    cells = pd.DataFrame(
        [(method, "rouge_l", 0.1, 0.02, 50) for method in ("msp", "mte")],
        columns=["method", "metric", "value", "se", "n"],
    )
    written(
        tmp_path,
        "bulletin--tiny-bart",
        cells,
        [("method", "mte_he2024", "the same for all texts")],
        [("msp_he2024", "processed_logp"), ("rde", "train_states")],
    )
    results = ot.read_results(tmp_path, ["bulletin--tiny-bart", "bulletin--tiny-llama"])
    assert list(results) == ["bulletin--tiny-bart"]
    scores = ot.scores_of_tables(results, ot.STAND_IN_MODELS).query("table=='T8'").set_index("name")
    assert (
        scores.loc["MSP", ["ours", "form"]].tolist() == ["msp", "as defined"]
        and scores.at["MTE", "ours"] == ""
        and scores.at["MTE", "note"] == "mte_he2024: the same for all texts"
    )
    assert (
        scores.at["RDE", "note"] == "rde not computed (missing: train_states)"
        and "judge_wo_relevance_he2024" in scores.at["wo-GPT-3.5 (Relevance)", "note"]
    )
    assert list(ot.tables_of_run(scores.reset_index(), results)["T8"]) == ["MSP"]


def test_stand_ins_are_marked(bank):
    quality, uncertainty, _ = bank
    cells = prr_table(quality.assign(judge_own_relevance=quality["rouge_l"]), uncertainty)
    results = {"bulletin--tiny-llama-api": ot.BankResult(cells, {}, {})}
    got = ot.scores_of_tables(results, ot.STAND_IN_MODELS).set_index(["table", "name"])
    assert (
        got.at[("T5", "wi-in-GPT-3.5 (Relevance)"), "form"] == "stand-in"
        and got.at[("T5", "wi-in-GPT-3.5 (Overall)"), "note"] == "judge_own_overall not computed"
    )
    assert not len(ot.scores_of_tables(results, ot.PAPER_MODELS)) and set(got.index.unique("table")) == {
        "T5",
        "T6",
        "T9",
        "T10",
        "T11",
    }


# What the tables hold
@pytest.mark.parametrize("released", [True, False])
def test_every_cell_is_the_prr_it_is_named_for(bank, released):
    quality_, uncertainty, errors = bank
    under, by, flat = ot.join_errors(quality_, uncertainty, errors, released)
    assert flat == {"CO": "the same for all texts"} and "CO" not in under and "EI" in under
    results = {"bulletin--tiny-llama-api": ot.BankResult(prr_table(under, by), flat, {})}
    own = ot.tables_of_run(ot.scores_of_tables(results, ot.STAND_IN_MODELS), results)
    assert (
        set(own) == {"T5", "T6", "T9", "T10", "T11"}
        and "CO" not in own["T11"]
        and own["T5"].equals(own["T6"])
    )
    assert (
        own["T9"].index.tolist() == [metric for metric in TABLES["T9"].index if "GPT" not in metric]
        and own["T5"].columns.tolist() == TABLES["T5"].columns.tolist()
    )
    assert own["T5"].at["SummaC", "LexSim"] == pytest.approx(
        prr(quality_["summac_he2024"], uncertainty["lex_sim"]).value
    )
    assert own["T11"].at["ECC", "MR"] == pytest.approx(prr(-errors["MR"], uncertainty["ecc"]).value)
    sign = 1 if released else -1
    assert own["T10"].at["CTC", "EI"] == pytest.approx(
        prr(-errors["EI"], sign * quality_["ctc_he2024"]).value
    )


def test_a_quality_is_the_share_of_words_without_the_error(bank):
    metrics, methods, errors = bank
    under, by, _ = ot.join_errors(metrics, methods, errors)
    pd.testing.assert_frame_equal(under[["EI", "MR"]], 1 - errors[["EI", "MR"]])
    pd.testing.assert_frame_equal(under[metrics.columns], metrics)
    pd.testing.assert_frame_equal(by, pd.concat([methods, metrics], axis=1))


def test_resampled_texts_are_texts_repeated(bank):
    metrics, methods, errors = bank
    under, by, flat = ot.join_errors(metrics, methods, errors)
    results = {"bulletin--tiny-llama-api": ot.BankResult(prr_table(under, by), flat, {})}
    copies = ot.bootstrap_tables(
        ot.scores_of_tables(results, ot.STAND_IN_MODELS), {"bulletin--tiny-llama-api": (under, by)}, 3, seed=5
    )
    own = ot.tables_of_run(ot.scores_of_tables(results, ot.STAND_IN_MODELS), results)
    shapes = {name: (3, *table.shape) for name, table in own.items()}
    assert {name: copy.shape for name, copy in copies.items()} == shapes
    for k, times in enumerate(bootstrap_counts(60, 3, np.random.default_rng(5))):
        i = np.repeat(np.arange(60), times)

        def again(quality, uncertainty):
            return prr(quality.to_numpy()[i], uncertainty.to_numpy()[i]).value  # noqa: B023

        assert copies["T6"][k, own["T6"].index.get_loc("CTC"), 1] == pytest.approx(
            again(metrics["ctc_he2024"], methods["ecc"])
        )
        assert copies["T11"][k, 2, own["T11"].columns.get_loc("RE")] == pytest.approx(
            again(-errors["RE"], methods["lex_sim"])
        )


# Claims
def test_claims_about_the_paper_are_not_applicable():
    stand, paper = ot.not_applicable(ot.STAND_IN_MODELS), ot.not_applicable(ot.PAPER_MODELS)
    assert (
        stand["5-01"] == stand["4.2-18"] == stand["C2.3-02"] == ot.ABOUT_PAPER
        and stand["4.2-23"] == ot.UNDECIDED
        and stand["4.2-17"] == ""
    )
    assert (
        stand[stand == ot.ONE_BANK_FOR_TWO].index.tolist()
        == [claim.id for claim in printed_claims().itertuples() if "matrix agreement" in claim.cells]
        and (paper[stand == ot.ONE_BANK_FOR_TWO] == "").all()
    )


def test_the_printed_tables_have_the_printed_verdicts():
    both = ot.compare_verdicts(
        PRINTED, claim_ledger(TABLES, draws=0), ot.not_applicable(ot.PAPER_MODELS), TABLES
    )
    assert (
        both["same"].dropna().all()
        and both["same"].notna().sum() == (ot.not_applicable(ot.PAPER_MODELS) == "").sum()
        and both.loc[both["id"] == "4.2-17", "at_hand"].item() == "T7 16x9 of 16x9"
    )


def test_what_is_missing_is_named_and_stays_open():
    part = {"T7": TABLES["T7"].drop(index="SummaC")}
    both = ot.compare_verdicts(
        PRINTED, claim_ledger(part, draws=0), ot.not_applicable(ot.STAND_IN_MODELS), part
    ).set_index("id")
    assert (
        both.at["C1.3-02", "own"] == "not decidable"
        and "no row 'SummaC'" in both.at["C1.3-02", "note"]
        and both.at["C1.3-02", "same"] is None
    )
    assert both.at["4.2-17", "same"] and "table T5 is missing" in both.at["4.2-21", "note"]


@pytest.mark.parametrize("how", ["noise", "shuffle"])
def test_verdicts_on_copies_are_those_of_the_ledger(how):
    some = {name: TABLES[name] for name in ("T3", "T5", "T7", "T9", "T11")}
    rng = np.random.default_rng(0)
    copies = (
        ot.permute_names(some, ot.bank_of_table(ot.PAPER_MODELS), 2, seed=2)
        if how == "shuffle"
        else {
            name: table.to_numpy() + 0.2 * rng.normal(size=(2, *table.shape)) for name, table in some.items()
        }
    )
    codes = ot.verdict_codes(some, copies)
    for k in range(2):
        copy = {
            name: pd.DataFrame(copies[name][k], table.index, table.columns) for name, table in some.items()
        }
        led = claim_ledger(copy, draws=0).set_index("id")["verdict"]
        applicable = [id for id in codes.index if ot.not_applicable(ot.PAPER_MODELS)[id] == ""]
        assert CLAIM_VERDICTS[codes.loc[applicable, k].astype(int)].tolist() == led[applicable].tolist()
        assert set(led[led != "not decidable"].index) == set(codes.index)


def test_a_draw_without_a_value_decides_nothing_about_its_table():
    some = {name: TABLES[name] for name in ("T5", "T7")}
    copies = {name: np.stack([table.to_numpy()] * 2) for name, table in some.items()}
    copies["T7"][1, 0, 0] = np.nan
    codes = ot.verdict_codes(some, copies)
    assert codes.loc["4.2-17"].isna().tolist() == [False, True] and codes.loc["4.2-21"].notna().all()


def test_names_are_permuted_alike_in_the_tables_of_a_bank():
    some = {"T3": TABLES["T3"], "T4": TABLES["T3"], "T5": TABLES["T5"], "T11": TABLES["T11"]}
    first, second = (
        ot.permute_names(some, ot.bank_of_table(ot.STAND_IN_MODELS), 50, seed=seed) for seed in (1, 2)
    )
    assert (first["T3"] == first["T4"]).all() and not (first["T3"] == second["T3"]).all()
    for name, table in some.items():
        assert (np.sort(first[name].reshape(50, -1)) == np.sort(table.to_numpy().ravel())).all()

    def order(table, copy):  # Of the methods in a copy, by the row that holds the first cell
        row = np.flatnonzero((copy == table[0, 0]).any(1))[0]
        return [table[0].tolist().index(value) for value in copy[row]]

    columns = [order(TABLES["T5"].to_numpy(), copy) for copy in first["T5"]]
    rows = [order(TABLES["T11"].to_numpy().T, copy.T) for copy in first["T11"]]
    # the four methods move alike in T5 and T11, and in most of the 24 ways
    assert columns == rows and len(set(map(tuple, columns))) > 15


def test_agreement_is_counted_over_what_both_decide():
    both = pd.DataFrame(
        dict(id=list("abcd"), printed=["holds", "fails", "holds", "partly"], same=[True, True, False, None])
    )
    null = pd.DataFrame([[2, 2, 0, 0], [0, 1, 1, np.nan], [2, 0, 0, np.nan]], index=list("abc"))
    agreement = ot.verdict_agreement(both, null, null)
    assert (
        (agreement.share, agreement.n) == (2 / 3, 3)
        and agreement.null.tolist() == [1, 1 / 3, 0, 0]
        and agreement.p == 2 / 5
    )
    assert (agreement.lo, agreement.hi) == tuple(np.quantile([1, 1 / 3, 0, 0], [0.025, 0.975]))
    assert ot.verdict_agreement(both.assign(same=None), null).n == 0


def test_the_p_values_of_permuted_names_are_uniform():
    "Permuted tables instead of a run: p is spread over [0,1]"
    some = {name: TABLES[name] for name in ("T7", "T8")}
    banks = ot.bank_of_table(ot.STAND_IN_MODELS)
    runs = ot.permute_names(some, banks, 60, seed=11)
    null = ot.verdict_codes(some, ot.permute_names(some, banks, 300, seed=12))
    codes = ot.verdict_codes(some, runs)
    both = ot.compare_verdicts(
        PRINTED, claim_ledger(some, draws=0), ot.not_applicable(ot.PAPER_MODELS), some
    ).set_index("id")
    kept = both.index[both["same"].notna()]

    def p_value(k):
        same = CLAIM_VERDICTS[codes.loc[kept, k].astype(int)] == both.loc[kept, "printed"]
        return ot.verdict_agreement(both.loc[kept].assign(same=same).reset_index(), null).p

    p_values = np.array([p_value(k) for k in range(60)])
    assert stats.binom.sf((p_values <= 0.2).sum() - 1, 60, 0.2) > 0.001 and 0.3 < p_values.mean() < 0.75


# Against the printed numbers
def cell(value, name="T7"):
    return {name: pd.DataFrame([[value]], ["ROUGE-L"], [TABLES[name].columns[0]])}


def test_a_difference_has_the_error_of_two_runs_and_of_rounding():
    row = ot.test_cells(cell(TABLES["T7"].iat[0, 0] + 0.05), cell(0.03), cell(DATASET_SIZES["AESLC"])).iloc[0]
    sd = np.sqrt(2 * 0.03**2 + (1e-4) ** 2 / 12)
    assert (row["sd"], row["z"], row["p"]) == pytest.approx((sd, 0.05 / sd, 2 * stats.norm.sf(0.05 / sd)))
    assert row["inside"]
    few = ot.test_cells(cell(TABLES["T9"].iat[0, 0], "T9"), cell(0.03, "T9"), cell(50, "T9")).iloc[0]
    assert few["sd"] == pytest.approx(0.03 * 1.5**0.5, abs=1e-6)


@pytest.mark.parametrize("off", [0.5e-4, -0.5e-4, 2e-4])
def test_what_rounds_to_the_printed_number_is_no_deviation(off):
    row = ot.test_cells(cell(TABLES["T7"].iat[0, 0] + off), cell(0.0), cell(1906), exact=True).iloc[0]
    assert bool(row["inside"]) == (abs(off) <= 0.5e-4)


@pytest.mark.parametrize(
    "noise,exact,share",
    [
        (2**0.5, False, 0.05),
        (1.0, True, 0.05),
        (1.0, False, 2 * stats.norm.sf(1.96 * 2**0.5)),
        (2.0, True, 2 * stats.norm.sf(0.98)),
    ],
)
def test_as_many_cells_lie_outside_as_the_noise_says(tmp_path, noise, exact, share):
    out = n = 0
    for seed in range(2):
        folder = tmp_path / str(seed)
        results = ot.read_results(folder, ot.write_synthetic_run(folder, seed, noise=noise))
        cells, cover = ot.compare_with_print(results, exact=exact)
        assert cover["compared"].sum() == len(cells) == 960 and (cover["note"] == "").all()
        out, n = out + (~cells["inside"].astype(bool)).sum(), n + len(cells)
    lo, hi = stats.binom.interval(0.999, n, share)
    assert lo <= out <= hi


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_deviation_is_found_and_nothing_else(tmp_path, seed):
    where = ("T6", "UniEval (Fluency)", "ECC")
    shifts = {where: 8 * normal_null_sd(DATASET_SIZES["XSUM"])}
    cells, _ = ot.compare_with_print(
        ot.read_results(tmp_path, ot.write_synthetic_run(tmp_path, seed, shifts))
    )
    assert cells[cells["holm"] < 0.05][["table", "row", "column"]].values.tolist() == [list(where)]
    assert (
        cells.loc[cells["p"].idxmin(), "holm"] == pytest.approx(960 * cells["p"].min())
        and (cells["bh"] <= cells["holm"] + 1e-12).all()
    )


def test_what_was_not_run_is_counted_and_named(tmp_path):
    banks = ot.write_synthetic_run(tmp_path, banks=["aeslc--bart-large-cnn", "xsum--gpt-3.5"])
    path = tmp_path / "tables" / "cross--xsum--gpt-3.5_prr.csv"
    prr_cells = pd.read_csv(path)
    prr_cells.loc[prr_cells["metric"] == "rouge_l", "se"] = np.nan
    kept = (prr_cells["metric"] != "summac_he2024") & (prr_cells["method"] != "ecc")
    prr_cells[kept].to_csv(path, index=False)
    cells, cover = ot.compare_with_print(ot.read_results(tmp_path, banks))
    assert (
        cover["compared"].to_dict() == dict(T3=0, T4=0, T5=0, T6=28 * 3, T7=144, T8=0, T9=0)
        and cover["printed"].sum() == 960
    )
    assert (
        cover.at["T3", "note"] == "the bank aeslc--llama-2-7b-chat was not run"
        and cover.at["T6", "note"] == "missing: SummaC, ECC"
        and cover.at["T7", "note"] == ""
    )
    missing = cells[cells["row"].eq("ROUGE-L") & cells["table"].eq("T6")]
    assert (
        len(missing) == 3
        and missing[["p", "holm", "bh"]].isna().all(axis=None)
        and missing["inside"].isna().all()
    )
    with pytest.raises(ValueError, match="none of the banks aeslc--llama-2-7b-chat.*given are none"):
        ot.compare_with_print({})


def test_a_method_that_is_off_everywhere_is_found_as_a_whole(tmp_path):
    off = {
        (name, row, "RDE"): 4 * normal_null_sd(DATASET_SIZES[table_settings().at[name, "dataset"]])
        for name in ("T3", "T4", "T7", "T8")
        for row in TABLES[name].index
    }
    cells, _ = ot.compare_with_print(ot.read_results(tmp_path, ot.write_synthetic_run(tmp_path, 3, off)))
    found = ot.group_differences(cells)
    first = found[found["kind"] == "column"].iloc[0]
    z = cells.loc[cells["column"] == "RDE", "z"]
    assert (
        (first["name"], first["n"]) == ("RDE", 94)
        and first["mean_z"] == pytest.approx(z.mean())
        and first["p"] == pytest.approx(2 * stats.norm.sf(z.mean()))
        and first["p_independent"] == pytest.approx(2 * stats.norm.sf(z.mean() * 94**0.5))
    )
    assert (
        first["holm"] == pytest.approx(14 * first["p"])
        and (found["p"] >= found["p_independent"]).all()
        and (found.loc[found["name"] != "RDE", "holm"] > 0.05).all()
    )
    assert found.groupby("kind")["n"].sum().to_dict() == dict(table=960, column=960, row=960)


def test_the_texts_say_how_much_of_a_group_is_one_error(bank):
    "Sums of cells over resampled texts; equal cells of a row have the error of one cell"
    metrics, methods, _ = bank
    one = metrics["rouge_l"]
    printed = [
        metric for metric in ot.REGISTERED_METRICS if metric in TABLES["T5"].index and "GPT" not in metric
    ]
    same = pd.DataFrame({ot.REGISTERED_METRICS[metric][0]: one for metric in printed})
    for quality in (metrics, same):
        results = {
            "aeslc--gpt-3.5": ot.BankResult(
                prr_table(quality, methods).assign(n=DATASET_SIZES["AESLC"]), {}, {}
            )
        }
        names = ot.scores_of_tables(results)
        cells, _ = ot.compare_with_print(results)
        copies = ot.bootstrap_tables(names, {"aeslc--gpt-3.5": (quality, methods)}, 300, seed=1)
        found = ot.group_differences(cells, copies).set_index("name")
        sd = copies["T5"][:, :, 1].mean(1).std(ddof=1) * 2**0.5
        assert found.at["ECC", "p_texts"] == pytest.approx(
            2 * stats.norm.sf(abs(found.at["ECC", "difference"]) / sd)
        )
        table_sd = copies["T5"].mean((1, 2)).std(ddof=1) * 2**0.5
        z = abs(found.at["T5", "difference"]) / table_sd
        assert found.at["T5", "p_texts"] == pytest.approx(2 * stats.norm.sf(z))
        first = found.loc[list(TABLES["T5"]), "p_texts"].idxmin()
        assert found.at[first, "holm"] == pytest.approx(min(1, 4 * found.at[first, "p_texts"]))
    assert (
        sd == pytest.approx(copies["T5"][:, 0, 1].std(ddof=1) * 2**0.5)
        and ot.group_differences(cells)["p_texts"].isna().all()
    )


def test_ordered_differences_stand_over_the_quantiles_of_a_normal_distribution():
    z = np.array([2.5, -0.3, 0.1, np.nan, 0.4])
    cells = pd.DataFrame(dict(printed=0.2, own=0.2 + 0.1 * z, sd=0.1, z=z, p=z, inside=np.abs(z) < 1.96))
    fig = ot.plot_cell_tests(cells)
    points = fig.axes[1].collections[0].get_offsets()
    assert points[:, 1].tolist() == [-0.3, 0.1, 0.4, 2.5]
    np.testing.assert_allclose(stats.norm.cdf(points[:, 0]), [1 / 8, 3 / 8, 5 / 8, 7 / 8])
    labels = [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    assert labels == ["inside 95 %: 3", "outside: 1"]
    plt.close(fig)


def test_a_synthetic_run_depends_on_its_seed_only(tmp_path):
    def bytes_of(name, **options):
        banks = ot.write_synthetic_run(tmp_path / name, **options)
        return [(tmp_path / name / "tables" / f"cross--{bank}_prr.csv").read_bytes() for bank in banks]

    default = bytes_of("a")
    assert (
        default == bytes_of("b")
        and default != bytes_of("c", seed=1)
        and bytes_of("d", banks=["xsum--gpt-3.5"])
        == [default[list(ot.bank_of_table(ot.PAPER_MODELS)).index("xsum--gpt-3.5")]]
    )


def test_the_page_reads_a_finished_paper_profile(tmp_path, monkeypatch):
    "A synthetic run in the folder of the profile: the page names the deviation and what is missing"
    monkeypatch.setattr("uetrust.core.settings.out_dir", lambda name: tmp_path / name)
    monkeypatch.setattr("uetrust.report.pages.out_dir", lambda name: tmp_path / name)
    banks = [bank for bank in ot.bank_of_table(ot.PAPER_MODELS) if not bank.startswith("aeslc--llama")]
    ot.write_synthetic_run(tmp_path / "paper", 1, {("T8", "CTC", "MTE"): 0.1}, banks)
    space = {}
    for cell in nbformat.read(ROOT / "nbs/experiments/he2024/04_against_print.ipynb", 4).cells:
        if cell.cell_type == "code":
            exec(cell.source.replace('profile = "demo"', 'profile = "paper"'), space)
    report = json.loads((tmp_path / "paper" / "pages" / "against_print.json").read_text())
    text = " ".join(report["text"])
    assert (
        "SYNTHETIC" not in text + str(report["figures"])
        and "T8, CTC, MTE" in text
        and "covers 774 of 960 printed cells" in text
    )
    cover = pd.read_csv(tmp_path / "paper" / "tables" / "against_print_coverage.csv", index_col="table")
    assert cover.at["T3", "note"] == "the bank aeslc--llama-2-7b-chat was not run"
    own = pd.read_csv(tmp_path / "paper" / "tables" / "against_print.csv", keep_default_na=False)
    assert (own["table"] != "T3").all()
    planned = {table["table"]: table for table in run_plan("paper").to_dict()["tables"]}
    for (table, state), rows in own.groupby(["table", "state"]):
        assert len(rows) == planned[table][state]
    assert own["reason"].ne("").equals(own["state"].ne("equal"))
    msp = own[(own["table"] == "T8") & (own["row"] == "CTC") & (own["column"] == "MSP")].iloc[0]
    assert (msp["state"], msp["deviations"].split()[0]) == ("equal", "generation.text_of_bart")
    by_state = pd.read_csv(tmp_path / "paper" / "tables" / "against_print_states.csv", index_col="state")
    assert by_state["cells"].sum() == len(own) == 774
    assert by_state["inside"].sum() == own["inside"].sum() > 700
