"""Published tables: cells and means as recorded, rows of the figures, closed-form null standard deviation."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.papers.he2024.claim_language import rank_correlations
from uetrust.papers.he2024.published import (
    _printed_means,
    check_printed_means,
    correlation_figures,
    figure_table,
    figure_variants,
    human_error_types,
    metric_dimension,
    normal_null_sd,
    paper_facts,
    printed_claims,
    printed_tables,
    short_metric_name,
    table_null_sd,
    table_settings,
)

TABLES = printed_tables()


def test_tables_equal_the_recorded_ones(oracle):
    "Every cell, label and order of Tables 3 to 11, and every printed mean"
    recorded = oracle("evaluation.json")["he2024_tables"]
    printed = _printed_means().set_index(["table", "entity"])["printed"]
    assert {f"T{k}" for k in recorded} == set(TABLES)
    for k, table in recorded.items():
        rows = {row[0].replace("BARTSCORE", "BARTScore"): row[1:] for row in table["rows"]}
        want = pd.DataFrame(rows, index=table["columns"]).T
        means = want.pop("RowMean") if "RowMean" in want else want.loc["Col Mean"]
        pd.testing.assert_frame_equal(
            TABLES[f"T{k}"], want.drop(index="Col Mean", errors="ignore"), check_names=False, rtol=0, atol=0
        )
        assert printed[f"T{k}"].to_dict() == means.to_dict()


def test_tables_are_copies():
    mine = printed_tables()["T3"]
    mine.iloc[0, 0] = 9
    assert printed_tables()["T3"].iloc[0, 0] == 0.2107


def test_all_printed_means_follow_from_the_cells():
    means = check_printed_means()
    assert (len(means), means["equal"].sum()) == (61, 61)
    assert means.groupby("kind").size().to_dict() == dict(col_mean=42, row_mean=19)
    assert (means["difference"] == means["printed"] - means["recomputed"]).all()
    assert 0.4e-4 < means["difference"].abs().max() <= 0.5e-4 + 1e-12


def test_a_wrong_mean_is_found(monkeypatch):
    import uetrust.papers.he2024.published as module

    means = _printed_means()
    off = means.assign(printed=means["printed"].where(means.index != 7, means["printed"] + 1e-4))
    monkeypatch.setattr(module, "_printed_means", lambda: off)
    assert check_printed_means()["equal"].tolist() == [i != 7 for i in range(61)]


def test_settings():
    settings = table_settings()
    assert settings["slug"].to_dict() == dict(
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
    assert settings["n"].tolist() == [1906, 11334] * 3 + [100] * 3
    assert settings["kind"].tolist() == ["UE-NLG"] * 7 + ["NLG-HUM", "UE-HUM"]


def test_every_metric_has_a_dimension_and_its_own_short_name():
    names = TABLES["T3"].index
    assert pd.Series(map(metric_dimension, names)).value_counts().to_dict() == dict(
        relevance=8, consistency=8, coherence=5, fluency=5, overall=5
    )
    assert len({short_metric_name(metric) for metric in names}) == 31
    assert [
        short_metric_name(metric)
        for metric in ("Kendall-Tau", "ROUGE-L", "wi-ingt-GPT-3.5 (Overall)", "UniEval (Relevance)")
    ] == ["Kendall", "ROUGE-L", "wi-ingt (Ove)", "UniEval (Rel)"]
    assert max(len(short_metric_name(metric)) for metric in names) == len("UniEval (Rel)")
    with pytest.raises(ValueError, match="no metric 'BLEU'; they have ROUGE-L"):
        metric_dimension("BLEU")


def counts(fig, reading):
    figure = figure_table(fig, reading)
    return figure.table.shape if figure.between == "rows" else figure.table.shape[::-1]


@pytest.mark.parametrize("fig", correlation_figures().index)
def test_labels_and_observations_of_a_figure(fig):
    "Both selections of rows have the recorded counts"
    about = correlation_figures().loc[fig]
    assert counts(fig, "primary") == (about["n_labels"], about["n_observations"])
    if not about["alternative_variant"]:
        assert len(figure_variants(fig)) == 1
        with pytest.raises(ValueError, match="no reading 'alternative'"):
            figure_table(fig, "alternative")
    else:
        labels, n = about["alternative_variant"].split("(")[1].rstrip(")").split(" labels, n=")
        assert counts(fig, "alternative") == (int(labels), int(n))
        assert counts(fig, about["alternative_variant"].split()[0]) == counts(fig, "alternative")


def test_file_names_of_figures():
    selections = ((8,), (8, "all_rows"), (4, "alternative"), (16,), (16, "as_captioned"), (39,))
    assert [figure_table(*selection).stem for selection in selections] == [
        "fig08",
        "fig08_all",
        "fig04_all",
        "fig16",
        "fig16_captioned",
        "fig39",
    ]
    stems = [
        figure_table(fig, variant).stem
        for fig in correlation_figures().index
        for variant in figure_variants(fig)
    ]
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
    figure = figure_table(fig, reading)
    rows = figure.table.to_numpy() if figure.between == "rows" else figure.table.to_numpy().T
    return int((rank_correlations(rows)[np.triu_indices(len(rows), 1)] >= 0.5).sum())


@pytest.mark.parametrize("figs", STRONG)
def test_strong_cells_of_the_figures(figs):
    assert sum(map(strong, figs)) == STRONG[figs]


@pytest.mark.parametrize("fig", STRONG_ALL)
def test_strong_cells_with_all_metrics(fig):
    assert strong(fig, "all_rows") == STRONG_ALL[fig]


def test_a_figure_of_another_run():
    other = {name: -table for name, table in TABLES.items()}
    assert figure_table(40, given=other).table.loc["EigV", "SOAF"] == 1.1169
    with pytest.raises(ValueError, match="needs table T11; given are"):
        figure_table(40, given={"T3": TABLES["T3"]})
    with pytest.raises(ValueError, match="T5 does not have: UniEval"):
        figure_table(16, given={"T5": TABLES["T5"].drop(index="UniEval (Relevance)")})
    with pytest.raises(ValueError, match="figures are 3 to 41, got 2"):
        figure_table(2)
    with pytest.raises(ValueError, match="no reading 'drawn'; it has"):
        figure_table(8, "drawn")


def test_null_sd_equals_recorded_values(oracle):
    recorded = [
        record
        for record in oracle("evaluation.json")["prr_null"]["monte_carlo_error_alpha1000"]
        if record["dist"] == "normal"
    ]
    assert {record["N"] for record in recorded} == {100, 1906, 11334}
    for record in recorded:
        assert normal_null_sd(record["N"]) == pytest.approx(record["mean_null_sd"], rel=0.002)


def test_null_sd_values():
    assert [round(normal_null_sd(n), digits) for n, digits in ((1906, 4), (11334, 4), (100, 2))] == [
        0.0253,
        0.0104,
        0.11,
    ]


@pytest.mark.parametrize("n", [3, 12])
def test_null_sd_equals_shuffles(n):
    "Standard deviation of the PRR of random rankings, from the definition, against the closed form"
    from scipy.stats import norm

    risk = norm.ppf((np.arange(n) + 0.5) / n)

    def area(risks):  # Mean over k of the mean risk of the k most certain
        return (risks.cumsum(-1) / np.arange(1, n + 1)).mean(-1)

    shuffled = np.random.default_rng(0).permuted(np.tile(risk, (40000, 1)), axis=1)
    prr = -area(shuffled) / (risk.mean() - area(risk))
    assert prr.std() == pytest.approx(normal_null_sd(n), rel=0.015)


@given(st.integers(2, 400))
def test_null_sd_shrinks_with_n(n):
    assert 0 < normal_null_sd(n + 1) < normal_null_sd(n)


def test_null_band():
    for name, table in TABLES.items():
        band = table_null_sd(name)
        assert band.index.equals(table.index) and band.columns.equals(table.columns)
    assert (table_null_sd("T4") == normal_null_sd(11334)).all(axis=None)
    assert table_null_sd("T10").loc["CTC"].to_dict() == human_error_types()["null_sd"].to_dict()
    assert table_null_sd("T11").iloc[-1].to_dict() == dict(
        EI=0.25, NMS=0.39, RE=0.41, MR=0.43, TME=0.72, CO=0.73, SOAF=0.78
    )
    assert human_error_types()["affected_per_100"].to_dict() == dict(
        EI=19.1, NMS=7.5, RE=7.2, MR=6.1, TME=2.0, CO=1.8, SOAF=1.5
    )
    with pytest.raises(ValueError, match="no table 'T2'"):
        table_null_sd("T2")


def test_row_mean_under_human_annotations():
    "A mean over seven error types has a null SD of about 0.21, so LexSim's 0.2095 is one of them"
    sd = np.sqrt((table_null_sd("T11").iloc[0] ** 2).sum()) / 7
    assert sd == pytest.approx(0.21, abs=0.005)
    assert TABLES["T11"].loc["LexSim"].mean() / sd == pytest.approx(1, abs=0.03)


def released():
    from uetrust.core.settings import mirror

    if mirror() is None:
        pytest.skip("UETRUST_MIRROR is not at hand")
    return pd.concat(
        [pd.read_csv(path) for path in sorted((mirror() / "tofueval").glob("*_factual_eval_*.csv"))]
    )


def test_facts_about_tofueval():
    sentences = released()
    five, stated = sentences[sentences["model_name"] != "Model-Extra"], paper_facts()["value"]
    who = ["doc_id", "topic", "model_name"]
    assert sentences["doc_id"].nunique() == stated["tofueval_dialogues"]
    assert (sentences.groupby("doc_id")["topic"].nunique() == stated["tofueval_topics_per_dialogue"]).all()
    assert sentences["model_name"].nunique() == stated["tofueval_systems"]
    assert len(five[who].drop_duplicates()) == stated["tofueval_annotated_summaries"]
    assert len(sentences[who].drop_duplicates()) == stated["tofueval_annotated_summaries_with_extra"]
    assert (sentences.groupby(["doc_id", "topic"])["model_name"].nunique() >= 5).sum() == 298


def test_prevalence_and_null_sd_of_error_types():
    "Share of summaries with the error, and closed-form null SD on one random summary of each dialogue"
    from uetrust.evaluation.weights import rank_weights, sum_of_squares

    sentences, recorded = released().query("model_name!='Model-Extra'"), human_error_types()
    words = sentences["summ_sent"].str.split().str.len()
    bad = pd.DataFrame(
        {
            k: words * sentences["type"].fillna("").str.contains(name, regex=False)
            for k, name in recorded["name"].items()
        }
    )
    summary = [sentences[k] for k in ("doc_id", "topic", "model_name")]
    ratio = (bad.groupby(summary).sum()).div(words.groupby(summary).sum(), axis=0)
    risk, document = ratio.to_numpy(), ratio.index.get_level_values("doc_id")
    rows_of = [np.flatnonzero(document == name) for name in ratio.index.unique("doc_id")]
    assert len(rows_of) == 100
    assert ((risk > 0).mean(0) * 100).round(1).tolist() == recorded["affected_per_100"].tolist()
    rng, weights = np.random.default_rng(0), rank_weights(100)
    pick = [risk[[rng.choice(k) for k in rows_of]] for _ in range(2000)]

    def closed_form(drawn):
        return np.sqrt(sum_of_squares(weights) * sum_of_squares(drawn) / 99) / (
            drawn.mean(0) - weights @ np.sort(drawn, axis=0)
        )

    with np.errstate(divide="ignore", invalid="ignore"):
        sd = np.array([closed_form(drawn) for drawn in pick])
    assert np.allclose(np.nanmedian(sd, 0), recorded["null_sd"], atol=0.02)


def test_claims_and_facts_have_no_gaps():
    printed = printed_claims()
    assert printed["id"].is_unique and len(printed) == 154
    assert (printed["claim"] != "").all() and (printed["section"] != "").all()
    assert not printed["cells"].str.contains("BARTSCORE").any()
    assert paper_facts()["source"].notna().all()
