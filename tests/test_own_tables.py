"""Tables of an own run: who takes which place, what is missing, verdicts on other tables, and a rerun against the printed numbers."""

import json
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from uetrust.core.registry import load_scores
from uetrust.evaluation.prr import prr, prr_table
from uetrust.evaluation.resample import bootstrap_counts
from uetrust.papers.he2024 import own_tables as ot
from uetrust.papers.he2024.claims import VERDICTS, ledger
from uetrust.papers.he2024.published import ITEMS, claims, null_sd, table_settings, tables

reg = load_scores()

ROOT = Path(__file__).resolve().parents[1]
T, PRINTED = tables(), ledger(draws=0)
BY_NLG = [t for t, k in table_settings()["kind"].items() if k == "UE-NLG"]


def written(at, bank, prr, left=(), lacks=()):
    "A bank's results as the chapters write them"
    at = Path(at) / "tables"
    at.mkdir(parents=True, exist_ok=True)
    prr.to_csv(at / f"cross--{bank}_prr.csv", index=False)
    pd.DataFrame(left, columns=["kind", "name", "why"]).to_csv(
        at / f"cross--{bank}_left_out.csv", index=False
    )
    pd.DataFrame(lacks, columns=["name", "lacks"]).to_csv(at / f"methods--{bank}_missing.csv", index=False)


@pytest.fixture(scope="module")
def bank():
    "60 texts: metrics, methods and errors under our names, with ties"
    rng = np.random.default_rng(1)
    truth, names = rng.integers(0, 9, 60) / 8, [f"s{i}" for i in range(60)]

    def noisy(sign, ns):
        return pd.DataFrame({n: sign * truth + 0.4 * rng.normal(size=60).round(1) for n in ns}, names)

    q = noisy(1, [ns[0] for m, ns in ot.METRICS.items() if "GPT" not in m])
    u = noisy(-1, ["num_sets", "ecc", "lex_sim", "eigv"])
    errors = pd.DataFrame(
        {e: (rng.random(60) < 0.4) * rng.random(60).round(1) for e in T["T11"]}, names
    ).assign(CO=0.0)
    return q, u, errors


# Who takes which place
def test_the_released_form_comes_first_wherever_there_is_one():
    for ns in (ot.METHODS | ot.METRICS).values():
        assert len(ns) <= 2 and all(reg[n] for n in ns)
        assert ns[0].endswith("_he2024") == (
            f"{ns[-1].removesuffix('_he2024')}_he2024" in reg or ns[0] != ns[-1]
        ), ns


def test_two_names_of_the_paper_never_share_a_score():
    names = [n for ns in (ot.METHODS | ot.METRICS).values() for n in ns]
    assert len(set(names)) == len(names)


def test_a_score_that_ranks_nothing_is_not_replaced_and_one_never_computed_is(tmp_path):
    cells = pd.DataFrame(
        [(m, "rouge_l", 0.1, 0.02, 50) for m in ("msp", "mte")],
        columns=["method", "metric", "value", "se", "n"],
    )
    written(
        tmp_path,
        "bulletin--tiny-bart",
        cells,
        [("method", "mte_he2024", "the same for all texts")],
        [("msp_he2024", "processed_logp"), ("rde", "train_states")],
    )
    r = ot.read_results(tmp_path, ["bulletin--tiny-bart", "bulletin--tiny-llama"])
    assert list(r) == ["bulletin--tiny-bart"]
    u = ot.used(r, ot.STAND_INS).query("table=='T8'").set_index("name")
    assert (
        u.loc["MSP", ["ours", "form"]].tolist() == ["msp", "as defined"]
        and u.at["MTE", "ours"] == ""
        and u.at["MTE", "note"] == "mte_he2024: the same for all texts"
    )
    assert (
        u.at["RDE", "note"] == "rde not computed (lacks train_states)"
        and "judge_wo_relevance_he2024" in u.at["wo-GPT-3.5 (Relevance)", "note"]
    )
    assert list(ot.tables_of(u.reset_index(), r)["T8"]) == ["MSP"]


def test_the_cast_says_who_is_a_stand_in(bank):
    q, u, _ = bank
    r = {
        "bulletin--tiny-llama-api": ot.Result(
            prr_table(q.assign(judge_own_relevance=q["rouge_l"]), u), {}, {}
        )
    }
    got = ot.used(r, ot.STAND_INS).set_index(["table", "name"])
    assert (
        got.at[("T5", "wi-in-GPT-3.5 (Relevance)"), "form"] == "stand-in"
        and got.at[("T5", "wi-in-GPT-3.5 (Overall)"), "note"] == "judge_own_overall not computed"
    )
    assert not len(ot.used(r, ot.PAPER)) and set(got.index.unique("table")) == {
        "T5",
        "T6",
        "T9",
        "T10",
        "T11",
    }


# What the tables hold
@pytest.mark.parametrize("released", [True, False])
def test_every_cell_is_the_prr_it_is_named_for(bank, released):
    q, u, errors = bank
    under, by, flat = ot.with_errors(q, u, errors, released)
    assert flat == {"CO": "the same for all texts"} and "CO" not in under and "EI" in under
    r = {"bulletin--tiny-llama-api": ot.Result(prr_table(under, by), flat, {})}
    own = ot.tables_of(ot.used(r, ot.STAND_INS), r)
    assert (
        set(own) == {"T5", "T6", "T9", "T10", "T11"}
        and "CO" not in own["T11"]
        and own["T5"].equals(own["T6"])
    )
    assert (
        own["T9"].index.tolist() == [m for m in T["T9"].index if "GPT" not in m]
        and own["T5"].columns.tolist() == T["T5"].columns.tolist()
    )
    assert own["T5"].at["SummaC", "LexSim"] == pytest.approx(prr(q["summac_he2024"], u["lex_sim"]).value)
    assert own["T11"].at["ECC", "MR"] == pytest.approx(prr(-errors["MR"], u["ecc"]).value)
    assert own["T10"].at["CTC", "EI"] == pytest.approx(
        prr(-errors["EI"], (1 if released else -1) * q["ctc_he2024"]).value
    )


def test_texts_drawn_anew_are_texts_repeated(bank):
    q, u, errors = bank
    under, by, flat = ot.with_errors(q, u, errors)
    r = {"bulletin--tiny-llama-api": ot.Result(prr_table(under, by), flat, {})}
    copies = ot.bootstrapped(ot.used(r, ot.STAND_INS), {"bulletin--tiny-llama-api": (under, by)}, 3, seed=5)
    own = ot.tables_of(ot.used(r, ot.STAND_INS), r)
    assert {t: c.shape for t, c in copies.items()} == {t: (3, *d.shape) for t, d in own.items()}
    for k, times in enumerate(bootstrap_counts(60, 3, np.random.default_rng(5))):
        i = np.repeat(np.arange(60), times)

        def again(x, y):
            return prr(x.to_numpy()[i], y.to_numpy()[i]).value  # noqa: B023

        assert copies["T6"][k, own["T6"].index.get_loc("CTC"), 1] == pytest.approx(
            again(q["ctc_he2024"], u["ecc"])
        )
        assert copies["T11"][k, 2, own["T11"].columns.get_loc("RE")] == pytest.approx(
            again(-errors["RE"], u["lex_sim"])
        )


# Sentences
def test_sentences_about_the_paper_are_not_asked():
    stand, paper = ot.apart(ot.STAND_INS), ot.apart(ot.PAPER)
    assert (
        stand["5-01"] == stand["4.2-18"] == stand["C2.3-02"] == ot.FACT
        and stand["4.2-23"] == ot.NONE
        and stand["4.2-17"] == ""
    )
    assert (
        stand[stand == ot.TWIN].index.tolist()
        == [c.id for c in claims().itertuples() if "matrix agreement" in c.cells]
        and (paper[stand == ot.TWIN] == "").all()
    )


def test_the_printed_tables_have_the_printed_verdicts():
    b = ot.beside(PRINTED, ledger(T, draws=0), ot.apart(ot.PAPER), T)
    assert (
        b["same"].dropna().all()
        and b["same"].notna().sum() == (ot.apart(ot.PAPER) == "").sum()
        and b.loc[b["id"] == "4.2-17", "at_hand"].item() == "T7 16x9 of 16x9"
    )


def test_what_is_missing_is_named_and_stays_open():
    part = {"T7": T["T7"].drop(index="SummaC")}
    b = ot.beside(PRINTED, ledger(part, draws=0), ot.apart(ot.STAND_INS), part).set_index("id")
    assert (
        b.at["C1.3-02", "own"] == "not decidable"
        and "no row 'SummaC'" in b.at["C1.3-02", "note"]
        and b.at["C1.3-02", "same"] is None
    )
    assert b.at["4.2-17", "same"] and "table T5 is missing" in b.at["4.2-21", "note"]


@pytest.mark.parametrize("how", ["noise", "shuffle"])
def test_verdicts_on_copies_are_those_of_the_ledger(how):
    some = {t: T[t] for t in ("T3", "T5", "T7", "T9", "T11")}
    rng = np.random.default_rng(0)
    copies = (
        ot.relabelled(some, ot.places(ot.PAPER), 2, seed=2)
        if how == "shuffle"
        else {t: d.to_numpy() + 0.2 * rng.normal(size=(2, *d.shape)) for t, d in some.items()}
    )
    codes = ot.drawn(some, copies)
    for k in range(2):
        led = ledger(
            {t: pd.DataFrame(copies[t][k], d.index, d.columns) for t, d in some.items()}, draws=0
        ).set_index("id")["verdict"]
        asked = [i for i in codes.index if ot.apart(ot.PAPER)[i] == ""]
        assert VERDICTS[codes.loc[asked, k].astype(int)].tolist() == led[asked].tolist() and set(
            led[led != "not decidable"].index
        ) == set(codes.index)


def test_a_draw_without_a_value_decides_nothing_about_its_table():
    some = {t: T[t] for t in ("T5", "T7")}
    copies = {t: np.stack([d.to_numpy()] * 2) for t, d in some.items()}
    copies["T7"][1, 0, 0] = np.nan
    codes = ot.drawn(some, copies)
    assert codes.loc["4.2-17"].isna().tolist() == [False, True] and codes.loc["4.2-21"].notna().all()


def test_names_are_shuffled_alike_in_the_tables_of_a_bank():
    some = {"T3": T["T3"], "T4": T["T3"], "T5": T["T5"], "T11": T["T11"]}
    a, b = (ot.relabelled(some, ot.places(ot.STAND_INS), 50, seed=s) for s in (1, 2))
    assert (a["T3"] == a["T4"]).all() and not (a["T3"] == b["T3"]).all()
    for t, d in some.items():
        assert (np.sort(a[t].reshape(50, -1)) == np.sort(d.to_numpy().ravel())).all()
    order = [
        [T["T5"].iloc[0].tolist().index(v) for v in x[np.flatnonzero((x == T["T5"].iat[0, 0]).any(1))[0]]]
        for x in a["T5"]
    ]
    rows = [
        [
            T["T11"].iloc[:, 0].tolist().index(v)
            for v in x[:, np.flatnonzero((x == T["T11"].iat[0, 0]).any(0))[0]]
        ]
        for x in a["T11"]
    ]
    assert (
        order == rows and len(set(map(tuple, order))) > 15
    )  # the four methods move alike in T5 and T11, and in most of the 24 ways


def test_agreement_is_counted_over_what_both_decide():
    b = pd.DataFrame(
        dict(id=list("abcd"), printed=["holds", "fails", "holds", "partly"], same=[True, True, False, None])
    )
    null = pd.DataFrame([[2, 2, 0, 0], [0, 1, 1, np.nan], [2, 0, 0, np.nan]], index=list("abc"))
    a = ot.agreed(b, null, null)
    assert (a.share, a.n) == (2 / 3, 3) and a.null.tolist() == [1, 1 / 3, 0, 0] and a.p == 2 / 5
    assert (a.lo, a.hi) == tuple(np.quantile([1, 1 / 3, 0, 0], [0.025, 0.975]))
    assert ot.agreed(b.assign(same=None), null).n == 0


def test_a_run_whose_names_mean_nothing_is_no_surprise():
    "Shuffled tables in the place of a run: p is spread over [0,1]"
    some = {t: T[t] for t in ("T7", "T8")}
    at = ot.places(ot.STAND_INS)
    runs, null = ot.relabelled(some, at, 60, seed=11), ot.drawn(some, ot.relabelled(some, at, 300, seed=12))
    codes = ot.drawn(some, runs)
    b = ot.beside(PRINTED, ledger(some, draws=0), ot.apart(ot.PAPER), some).set_index("id")
    kept = b.index[b["same"].notna()]

    def one(k):
        return ot.agreed(
            b.loc[kept]
            .assign(same=VERDICTS[codes.loc[kept, k].astype(int)] == b.loc[kept, "printed"])
            .reset_index(),
            null,
        ).p

    p = np.array([one(k) for k in range(60)])
    assert stats.binom.sf((p <= 0.2).sum() - 1, 60, 0.2) > 0.001 and 0.3 < p.mean() < 0.75


# Against the printed numbers
def cell(v, t="T7"):
    return {t: pd.DataFrame([[v]], ["ROUGE-L"], [T[t].columns[0]])}


def test_a_difference_has_the_error_of_two_runs_and_of_rounding():
    r = ot.against(cell(T["T7"].iat[0, 0] + 0.05), cell(0.03), cell(ITEMS["AESLC"])).iloc[0]
    sd = np.sqrt(2 * 0.03**2 + (1e-4) ** 2 / 12)
    assert (r["sd"], r["z"], r["p"]) == pytest.approx((sd, 0.05 / sd, 2 * stats.norm.sf(0.05 / sd))) and r[
        "inside"
    ]
    few = ot.against(cell(T["T9"].iat[0, 0], "T9"), cell(0.03, "T9"), cell(50, "T9")).iloc[0]
    assert few["sd"] == pytest.approx(0.03 * 1.5**0.5, abs=1e-6)


@pytest.mark.parametrize("off", [0.5e-4, -0.5e-4, 2e-4])
def test_what_rounds_to_the_printed_number_is_no_deviation(off):
    r = ot.against(cell(T["T7"].iat[0, 0] + off), cell(0.0), cell(1906), exact=True).iloc[0]
    assert bool(r["inside"]) == (abs(off) <= 0.5e-4)


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
        cells, cover = ot.compare(
            ot.read_results(tmp_path / str(seed), ot.synthetic(tmp_path / str(seed), seed, noise=noise)),
            exact=exact,
        )
        assert cover["compared"].sum() == len(cells) == 960 and (cover["note"] == "").all()
        out, n = out + (~cells["inside"].astype(bool)).sum(), n + len(cells)
    lo, hi = stats.binom.interval(0.999, n, share)
    assert lo <= out <= hi


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_deviation_is_found_and_nothing_else(tmp_path, seed):
    where = ("T6", "UniEval (Fluency)", "ECC")
    cells, _ = ot.compare(
        ot.read_results(tmp_path, ot.synthetic(tmp_path, seed, {where: 8 * null_sd(ITEMS["XSUM"])}))
    )
    assert cells[cells["holm"] < 0.05][["table", "row", "column"]].values.tolist() == [list(where)]
    assert (
        cells.loc[cells["p"].idxmin(), "holm"] == pytest.approx(960 * cells["p"].min())
        and (cells["bh"] <= cells["holm"] + 1e-12).all()
    )


def test_what_was_not_run_is_counted_and_named(tmp_path):
    there = ot.synthetic(tmp_path, banks=["aeslc--bart-large-cnn", "xsum--gpt-3.5"])
    f = tmp_path / "tables" / "cross--xsum--gpt-3.5_prr.csv"
    d = pd.read_csv(f)
    d.loc[d["metric"] == "rouge_l", "se"] = np.nan
    d[(d["metric"] != "summac_he2024") & (d["method"] != "ecc")].to_csv(f, index=False)
    cells, cover = ot.compare(ot.read_results(tmp_path, there))
    assert (
        cover["compared"].to_dict() == dict(T3=0, T4=0, T5=0, T6=28 * 3, T7=144, T8=0, T9=0)
        and cover["printed"].sum() == 960
    )
    assert (
        cover.at["T3", "note"] == "the bank aeslc--llama-2-7b-chat was not run"
        and cover.at["T6", "note"] == "missing: SummaC, ECC"
        and cover.at["T7", "note"] == ""
    )
    lost = cells[cells["row"].eq("ROUGE-L") & cells["table"].eq("T6")]
    assert len(lost) == 3 and lost[["p", "holm", "bh"]].isna().all(axis=None) and lost["inside"].isna().all()
    with pytest.raises(ValueError, match="none of the banks aeslc--llama-2-7b-chat.*given are none"):
        ot.compare({})


def test_a_method_that_is_off_everywhere_is_found_as_a_whole(tmp_path):
    off = {
        (t, r, "RDE"): 4 * null_sd(ITEMS[table_settings().at[t, "dataset"]])
        for t in ("T3", "T4", "T7", "T8")
        for r in T[t].index
    }
    cells, _ = ot.compare(ot.read_results(tmp_path, ot.synthetic(tmp_path, 3, off)))
    g = ot.systematic(cells)
    first = g[g["kind"] == "column"].iloc[0]
    z = cells.loc[cells["column"] == "RDE", "z"]
    assert (
        (first["name"], first["n"]) == ("RDE", 94)
        and first["mean_z"] == pytest.approx(z.mean())
        and first["p"] == pytest.approx(2 * stats.norm.sf(z.mean()))
        and first["p_independent"] == pytest.approx(2 * stats.norm.sf(z.mean() * 94**0.5))
    )
    assert (
        first["holm"] == pytest.approx(14 * first["p"])
        and (g["p"] >= g["p_independent"]).all()
        and (g.loc[g["name"] != "RDE", "holm"] > 0.05).all()
    )
    assert g.groupby("kind")["n"].sum().to_dict() == dict(table=960, column=960, row=960)


def test_the_texts_say_how_much_of_a_group_is_one_error(bank):
    "Sums of cells over drawn texts; a bank copied into all cells of a row has the error of one cell"
    q, u, _ = bank
    one = q["rouge_l"]
    same = pd.DataFrame({ns[0]: one for m, ns in ot.METRICS.items() if m in T["T5"].index and "GPT" not in m})
    for quality in (q, same):
        r = {"aeslc--gpt-3.5": ot.Result(prr_table(quality, u).assign(n=ITEMS["AESLC"]), {}, {})}
        names = ot.used(r)
        cells, _ = ot.compare(r)
        copies = ot.bootstrapped(names, {"aeslc--gpt-3.5": (quality, u)}, 300, seed=1)
        g = ot.systematic(cells, copies).set_index("name")
        sd = copies["T5"][:, :, 1].mean(1).std(ddof=1) * 2**0.5
        assert g.at["ECC", "p_texts"] == pytest.approx(2 * stats.norm.sf(abs(g.at["ECC", "difference"]) / sd))
        assert g.at["T5", "p_texts"] == pytest.approx(
            2
            * stats.norm.sf(abs(g.at["T5", "difference"]) / (copies["T5"].mean((1, 2)).std(ddof=1) * 2**0.5))
        )
        first = g.loc[list(T["T5"]), "p_texts"].idxmin()
        assert g.at[first, "holm"] == pytest.approx(min(1, 4 * g.at[first, "p_texts"]))
    assert (
        sd == pytest.approx(copies["T5"][:, 0, 1].std(ddof=1) * 2**0.5)
        and ot.systematic(cells)["p_texts"].isna().all()
    )


def test_a_synthetic_run_depends_on_its_seed_only(tmp_path):
    def bytes_of(name, **kw):
        return [
            f.read_bytes()
            for b in ot.synthetic(tmp_path / name, **kw)
            for f in [tmp_path / name / "tables" / f"cross--{b}_prr.csv"]
        ]

    a = bytes_of("a")
    assert (
        a == bytes_of("b")
        and a != bytes_of("c", seed=1)
        and bytes_of("d", banks=["xsum--gpt-3.5"]) == [a[list(ot.places(ot.PAPER)).index("xsum--gpt-3.5")]]
    )


def test_the_page_reads_a_finished_paper_profile(tmp_path, monkeypatch):
    "A synthetic run in the folder of the profile: the page takes it for a run, names the deviation and what is missing"
    monkeypatch.setattr("uetrust.core.settings.out_dir", lambda name: tmp_path / name)
    ot.synthetic(
        tmp_path / "paper",
        1,
        {("T8", "CTC", "MTE"): 0.1},
        [b for b in ot.places(ot.PAPER) if not b.startswith("aeslc--llama")],
    )
    space = {}
    for c in nbformat.read(ROOT / "nbs/experiments/he2024/04_against_print.ipynb", 4).cells:
        if c.cell_type == "code":
            exec(c.source.replace("profile = 'smoke'", "profile = 'paper'"), space)
    said = json.loads((tmp_path / "paper" / "pages" / "against_print.json").read_text())
    text = " ".join(said["text"])
    assert (
        "SYNTHETIC" not in text + str(said["figures"])
        and "T3: the bank aeslc--llama-2-7b-chat was not run" in text
        and "T8 CTC, MTE" in text
        and "774 of 960 printed cells are compared" in text
    )
    assert (pd.read_csv(tmp_path / "paper" / "tables" / "against_print.csv")["table"] != "T3").all()
