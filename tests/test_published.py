"""The printed tables are the printed tables, figures show what their register says, and chance has its closed form."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.papers.he2024.claim_language import rank_corr
from uetrust.papers.he2024.published import (
    check_means,
    claims,
    dimension,
    error_types,
    facts,
    figure_table,
    figures,
    null_band,
    null_sd,
    printed_means,
    readings,
    short,
    table_settings,
    tables,
)

T = tables()


def test_tables_equal_the_recorded_ones(oracle):
    "Every cell, label and order of Tables 3 to 11, and every printed mean"
    recorded, printed = (
        oracle("evaluation.json")["he2024_tables"],
        printed_means().set_index(["table", "entity"])["printed"],
    )
    assert {f"T{k}" for k in recorded} == set(T)
    for k, r in recorded.items():
        want = pd.DataFrame(
            {row[0].replace("BARTSCORE", "BARTScore"): row[1:] for row in r["rows"]}, index=r["columns"]
        ).T
        means = want.pop("RowMean") if "RowMean" in want else want.loc["Col Mean"]
        pd.testing.assert_frame_equal(
            T[f"T{k}"], want.drop(index="Col Mean", errors="ignore"), check_names=False, rtol=0, atol=0
        )
        assert printed[f"T{k}"].to_dict() == means.to_dict()


def test_tables_are_copies():
    mine = tables()["T3"]
    mine.iloc[0, 0] = 9
    assert tables()["T3"].iloc[0, 0] == 0.2107


def test_all_printed_means_follow_from_the_cells():
    m = check_means()
    assert (len(m), m["equal"].sum()) == (61, 61)
    assert m.groupby("kind").size().to_dict() == dict(col_mean=42, row_mean=19)
    assert (m["difference"] == m["printed"] - m["recomputed"]).all()
    assert 0.4e-4 < m["difference"].abs().max() <= 0.5e-4 + 1e-12


def test_a_wrong_mean_is_found(monkeypatch):
    import uetrust.papers.he2024.published as p

    off = printed_means().assign(printed=lambda d: d["printed"].where(d.index != 7, d["printed"] + 1e-4))
    monkeypatch.setattr(p, "printed_means", lambda: off)
    assert check_means()["equal"].tolist() == [i != 7 for i in range(61)]


def test_settings():
    s = table_settings()
    assert s["slug"].to_dict() == dict(
        T3="aeslc--llama-2",
        T4="xsum--llama-2",
        T5="aeslc--gpt-3.5",
        T6="xsum--gpt-3.5",
        T7="aeslc--bart",
        T8="xsum--bart",
        T9="tofueval--gpt-3.5",
        T10="tofueval--gpt-3.5",
        T11="tofueval--gpt-3.5",
    )
    assert s["n"].tolist() == [1906, 11334] * 3 + [100] * 3
    assert s["kind"].tolist() == ["UE-NLG"] * 7 + ["NLG-HUM", "UE-HUM"]


def test_every_metric_has_a_dimension_and_its_own_short_name():
    names = T["T3"].index
    assert pd.Series(map(dimension, names)).value_counts().to_dict() == dict(
        relevance=8, consistency=8, coherence=5, fluency=5, overall=5
    )
    assert len({short(m) for m in names}) == 31
    assert [
        short(m) for m in ("Kendall-Tau", "ROUGE-L", "wi-ingt-GPT-3.5 (Overall)", "UniEval (Relevance)")
    ] == ["Kendall", "ROUGE-L", "wi-ingt (Ove)", "UniEval (Rel)"]
    assert max(len(short(m)) for m in names) == len("UniEval (Rel)")
    with pytest.raises(ValueError, match="no metric 'BLEU'; they have ROUGE-L"):
        dimension("BLEU")


def counts(fig, reading):
    f = figure_table(fig, reading)
    return f.table.shape if f.between == "rows" else f.table.shape[::-1]


@pytest.mark.parametrize("fig", figures().index)
def test_labels_and_observations_of_a_figure(fig):
    "Both readings have the counts of the register"
    f = figures().loc[fig]
    assert counts(fig, "primary") == (f["n_labels"], f["n_observations"])
    if not f["alternative_variant"]:
        assert len(readings(fig)) == 1
        with pytest.raises(ValueError, match="no reading 'alternative'"):
            figure_table(fig, "alternative")
    else:
        labels, n = f["alternative_variant"].split("(")[1].rstrip(")").split(" labels, n=")
        assert counts(fig, "alternative") == (int(labels), int(n))
        assert counts(fig, f["alternative_variant"].split()[0]) == counts(fig, "alternative")


def test_file_names_of_figures():
    assert [
        figure_table(*a).stem
        for a in ((8,), (8, "all_rows"), (4, "alternative"), (16,), (16, "as_captioned"), (39,))
    ] == ["fig08", "fig08_all", "fig04_all", "fig16", "fig16_captioned", "fig39"]
    stems = [figure_table(f, r).stem for f in figures().index for r in readings(f)]
    assert len(set(stems)) == len(stems) == 39 + 28


# cells with rho >= 0.5, counted over the pairs of each figure when the figures were first recomputed
STRONG = {
    (3,): 39,
    (9,): 43,
    (4,): 40,
    (10,): 25,
    (5,): 48,
    (11,): 32,
    (6,): 13,
    (12,): 28,
    (39,): 3,
    (40,): 1,
    (41,): 46,
    (15, 18, 27, 30): 12,
    (16, 19, 21, 23, 25, 28, 31, 33, 35, 37): 66,
    (17, 20, 22, 24, 26, 29, 32, 34, 36, 38): 65,
}
STRONG_ALL = {7: 3, 13: 3, 8: 3, 14: 10}


def strong(fig, reading="primary"):
    f = figure_table(fig, reading)
    x = f.table.to_numpy() if f.between == "rows" else f.table.to_numpy().T
    return int((rank_corr(x)[np.triu_indices(len(x), 1)] >= 0.5).sum())


@pytest.mark.parametrize("figs", STRONG)
def test_strong_cells_of_the_figures(figs):
    assert sum(map(strong, figs)) == STRONG[figs]


@pytest.mark.parametrize("fig", STRONG_ALL)
def test_strong_cells_with_all_metrics(fig):
    assert strong(fig, "all_rows") == STRONG_ALL[fig]


def test_a_figure_of_another_run():
    other = {t: -d for t, d in T.items()}
    assert figure_table(40, given=other).table.loc["EigV", "SOAF"] == 1.1169
    with pytest.raises(ValueError, match="needs table T11; given are"):
        figure_table(40, given={"T3": T["T3"]})
    with pytest.raises(ValueError, match="T5 lacks: UniEval"):
        figure_table(16, given={"T5": T["T5"].drop(index="UniEval (Relevance)")})
    with pytest.raises(ValueError, match="figures are 3 to 41, got 2"):
        figure_table(2)
    with pytest.raises(ValueError, match="no reading 'drawn'; it has"):
        figure_table(8, "drawn")


def test_null_sd_equals_recorded_values(oracle):
    rec = [
        r
        for r in oracle("evaluation.json")["prr_null"]["monte_carlo_error_alpha1000"]
        if r["dist"] == "normal"
    ]
    assert {r["N"] for r in rec} == {100, 1906, 11334}
    for r in rec:
        assert null_sd(r["N"]) == pytest.approx(r["mean_null_sd"], rel=0.002)


def test_null_sd_values():
    assert [round(null_sd(n), d) for n, d in ((1906, 4), (11334, 4), (100, 2))] == [0.0253, 0.0104, 0.11]


@pytest.mark.parametrize("n", [3, 12])
def test_null_sd_equals_shuffles(n):
    "A random ranking's PRR, from the definition (mean over k of the mean risk of the k most certain), varies as the closed form says"
    from scipy.stats import norm

    risk = norm.ppf((np.arange(n) + 0.5) / n)
    area = lambda r: (r.cumsum(-1) / np.arange(1, n + 1)).mean(-1)
    shuffled = np.random.default_rng(0).permuted(np.tile(risk, (40000, 1)), axis=1)
    prr = -area(shuffled) / (risk.mean() - area(risk))
    assert prr.std() == pytest.approx(null_sd(n), rel=0.015)


@given(st.integers(2, 400))
def test_null_sd_shrinks_with_n(n):
    assert 0 < null_sd(n + 1) < null_sd(n)


def test_null_band():
    for t, d in T.items():
        b = null_band(t)
        assert b.index.equals(d.index) and b.columns.equals(d.columns)
    assert (null_band("T4") == null_sd(11334)).all(axis=None)
    assert null_band("T10").loc["CTC"].to_dict() == error_types()["null_sd"].to_dict()
    assert null_band("T11").iloc[-1].to_dict() == dict(
        EI=0.25, NMS=0.39, RE=0.41, MR=0.43, TME=0.72, CO=0.73, SOAF=0.78
    )
    assert error_types()["affected_per_100"].to_dict() == dict(
        EI=19.1, NMS=7.5, RE=7.2, MR=6.1, TME=2.0, CO=1.8, SOAF=1.5
    )
    with pytest.raises(ValueError, match="no table 'T2'"):
        null_band("T2")


def test_row_mean_under_human_marks():
    "A mean over seven error types has a chance SD of about 0.21, so LexSim's 0.2095 is one of them"
    sd = np.sqrt((null_band("T11").iloc[0] ** 2).sum()) / 7
    assert sd == pytest.approx(0.21, abs=0.005)
    assert T["T11"].loc["LexSim"].mean() / sd == pytest.approx(1, abs=0.03)


def released():
    from uetrust.core.settings import mirror

    if mirror() is None:
        pytest.skip("UETRUST_MIRROR is not at hand")
    return pd.concat([pd.read_csv(f) for f in sorted((mirror() / "tofueval").glob("*_factual_eval_*.csv"))])


def test_facts_about_tofueval():
    d = released()
    five, n = d[d["model_name"] != "Model-Extra"], facts()["value"]
    who = ["doc_id", "topic", "model_name"]
    assert d["doc_id"].nunique() == n["tofueval_dialogues"]
    assert (d.groupby("doc_id")["topic"].nunique() == n["tofueval_topics_per_dialogue"]).all()
    assert d["model_name"].nunique() == n["tofueval_systems"]
    assert len(five[who].drop_duplicates()) == n["tofueval_annotated_summaries"]
    assert len(d[who].drop_duplicates()) == n["tofueval_annotated_summaries_with_extra"]
    assert (d.groupby(["doc_id", "topic"])["model_name"].nunique() >= 5).sum() == 298


def test_prevalence_and_null_sd_of_error_types():
    "Recomputed: share of summaries with a sentence of the type, and the closed-form SD on one random summary of each dialogue"
    from uetrust.evaluation.weights import rank_weights, spread

    d, e = released().query("model_name!='Model-Extra'"), error_types()
    words = d["summ_sent"].str.split().str.len()
    bad = pd.DataFrame(
        {k: words * d["type"].fillna("").str.contains(name, regex=False) for k, name in e["name"].items()}
    )
    by = [d[k] for k in ("doc_id", "topic", "model_name")]
    ratio = (bad.groupby(by).sum()).div(words.groupby(by).sum(), axis=0)
    risk, of = (
        ratio.to_numpy(),
        [np.flatnonzero(ratio.index.get_level_values("doc_id") == k) for k in ratio.index.unique("doc_id")],
    )
    assert len(of) == 100
    assert ((risk > 0).mean(0) * 100).round(1).tolist() == e["affected_per_100"].tolist()
    rng, w = np.random.default_rng(0), rank_weights(100)
    pick = [risk[[rng.choice(k) for k in of]] for _ in range(2000)]
    with np.errstate(divide="ignore", invalid="ignore"):
        sd = np.array(
            [np.sqrt(spread(w) * spread(r) / 99) / (r.mean(0) - w @ np.sort(r, axis=0)) for r in pick]
        )
    assert np.allclose(np.nanmedian(sd, 0), e["null_sd"], atol=0.02)


def test_claims_and_facts_have_no_gaps():
    c = claims()
    assert c["id"].is_unique and len(c) == 154
    assert (c["claim"] != "").all() and (c["section"] != "").all()
    assert not c["cells"].str.contains("BARTSCORE").any()
    assert facts()["source"].notna().all()
