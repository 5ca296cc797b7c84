"""Tables and facts of the pages on He et al."""

# ruff: noqa: F811

import numpy as np
import pandas as pd
import pytest

from tests.helpers.banks_of_pages import (
    paired_scores_of_the_toy,
    toy_bank,  # noqa: F401
)
from uetrust.evaluation.prr import prr_table
from uetrust.papers.bulletins import inputs
from uetrust.papers.he2024 import own_tables, page_tables
from uetrust.papers.he2024.claims import claim_ledger


def test_a_finished_run_is_compared_and_none_is_made_up(tmp_path):
    banks = [bank for bank in page_tables.printed_banks() if not bank.startswith("aeslc--llama")]
    own_tables.write_synthetic_run(tmp_path, 1, {("T8", "CTC", "MTE"): 0.1}, banks)
    results, real = page_tables.paper_results(tmp_path, banks)
    cells, cover = own_tables.compare_with_print(results)
    facts = page_tables.print_facts(cells, cover)
    assert real and cover.at["T3", "note"] == "the bank aeslc--llama-2-7b-chat was not run"
    assert (facts.printed, facts.compared) == (960, 774)  # Table 3 has 186 cells
    assert facts.furthest == "T8, CTC, MTE" and facts.holm >= 1 and facts.bh >= facts.holm
    assert facts.inside == round(facts.share * facts.compared) and 0.9 < facts.share < 0.98
    shift = facts.furthest_own - facts.furthest_printed
    assert shift == pytest.approx(0.1, abs=0.06) and 0.8 < facts.same_sign < 1
    assert page_tables.banks_with_scores(tmp_path, results) == []


def test_cells_without_a_test_are_not_compared():
    columns = dict(table="T7", row=["CTC", "CTC", "CTC"], column=["MSP", "MTE", "MD"], printed=0.1, own=-0.1)
    cells = pd.DataFrame(columns | dict(inside=[True, False, None], p=[0.5, 0.04, np.nan], holm=1.0, bh=0.04))
    facts = page_tables.print_facts(cells, pd.DataFrame(dict(printed=[3])))
    assert facts == (3, 2, 1, 0.5, 0, 2, 0.0, "T7, CTC, MTE", 0.1, -0.1)


def test_an_own_run_is_laid_out_in_the_names_of_the_paper(toy_bank):
    banks_of_tables = own_tables.bank_of_table(own_tables.STAND_IN_MODELS)
    bank, scores = banks_of_tables["T7"], paired_scores_of_the_toy()
    prr = inputs.cross_prr(scores)
    errors = pd.DataFrame(dict(EI=np.tile([0.0, 0.5], 6), MR=0.0), scores.quality.index)
    run = page_tables.own_run(
        own_tables.STAND_IN_MODELS,
        {bank: own_tables.BankResult(prr, {}, {})},
        {bank: (scores.quality, scores.uncertainty)},
        {bank: errors},
    )
    assert run.errors == {bank: ["EI"]} and "MR" in run.results[bank].left
    value = prr.set_index(["metric", "method"])["value"]
    assert run.tables["T7"].at["ROUGE-L", "MSP"] == value["rouge_l", "msp"]
    (filled,) = page_tables.filled_places(run, banks_of_tables).itertuples(index=False)
    assert (filled.generator, filled.tables, filled.places) == ("tiny-bart", "T7, T8", 50)
    assert filled.filled == (run.names["ours"] != "").sum() > 0


def test_claims_that_hold_are_counted_separately_from_those_that_do_not():
    claims = pd.DataFrame(
        [
            ("holds", "supported", 4, 0.6, False, 0.9),
            ("holds", "supported", 4, 0.2, True, 0.4),
            ("holds", "fragile", 16, 0.9, None, 0.5),
            ("holds", "fact", None, 0.9, None, None),
            ("holds", "never testable", 16, 0.9, False, 1.0),
            ("partly", "partly", 16, 0.9, False, 0.1),
            ("fails", "fails", 4, 0.9, True, 0.9),
            ("not decidable", "not decidable", None, None, None, None),
        ],
        columns=["verdict", "standing", "n_obs", "shuffle_share", "threshold_sensitive", "stability"],
    ).astype(dict(threshold_sensitive="boolean"))
    verdicts = dict(claims=8, holds=5, partly=1, fails=1, undecided=1, threshold_sensitive=2)
    standing = dict(supported=2, unspecific=1, fragile=1, untestable=1, facts=1)
    assert page_tables.claim_facts(claims)._asdict() == verdicts | standing
    few = page_tables.few_methods_facts(claims)
    assert (few.methods, few.claims, few.holds) == (4, 3, 2) and few.smallest_p == pytest.approx(1 / 12)
    assert page_tables.noise_facts(claims) == (8, 6, 2)
    fact_like = claims.assign(standing="supported", shuffle_share=0.9)  # Facts rest on no observations
    assert page_tables.claim_facts(fact_like).unspecific == 6


def test_the_facts_about_correlations_are_those_of_the_evidence():
    columns = "verdict correlation_cells weak_cells joint_p shuffle_share significant_cells equivalence"
    rows = [
        ("holds", 2, 2, None, 0.9, 0, "out of reach"),
        ("holds", 2, 2, None, 0.01, 1, "shown"),
        ("holds", 2, 0, 0.01, 0.04, 0, ""),
        ("holds", 2, 0, 0.30, 0.05, 0, ""),
        ("holds", 2, 0, 0.01, 0.30, 2, ""),
        ("holds", 0, 0, None, 0.90, None, ""),
        ("fails", 2, 2, 0.01, 0.90, 0, "shown"),
    ]
    facts = page_tables.correlation_facts(pd.DataFrame(rows, columns=columns.split()))
    alone = dict(none_significant=3, weak_among_these=1, strong_among_these=2, jointly=1)
    assert facts._asdict() == dict(claims=5, weak=2, shown=1, out_of_reach=1, common=3) | alone


def test_claims_that_no_run_decides_are_left_out_of_the_share():
    why = [own_tables.ABOUT_PAPER, own_tables.ONE_BANK_FOR_TWO, own_tables.UNDECIDED, "", "", "", ""]
    both = pd.DataFrame(dict(apart=why, same=[None, None, None, True, False, None, None]))
    assert page_tables.applicable_facts(both) == (7, 1, 1, 1, 4, 2, 0.5)


def test_agreement_counts_equal_shares_of_the_shuffles():
    verdicts = dict(printed=["holds", "holds", "holds", "fails"], own=["holds", "partly", "fails", "fails"])
    done = pd.DataFrame(verdicts | dict(same=[True, False, False, True], stability=[1.0, 0.2, 0.4, 0.6]))
    null = np.array([0.25, 0.5, 0.75, 0.5 - 1e-12])
    agreed = own_tables.VerdictAgreement(share=0.5, n=4, lo=0.3, hi=0.7, null=null, p=0.8)
    facts = page_tables.verdict_facts(done, agreed)
    assert (facts.claims, facts.same, facts.share, facts.lo, facts.hi) == (4, 2, 0.5, 0.3, 0.7)
    assert (facts.as_many, facts.shuffles, facts.p, facts.stability) == (3, 4, 0.8, 0.5)
    assert (facts.held, facts.holds, facts.partly, facts.fails) == (3, 1, 1, 1)
    assert facts.by_chance == pytest.approx(0.5)


def test_the_first_place_of_a_table_is_that_of_its_mean():
    together, alone = "mean, errors shared by all rows", "mean, errors independent between rows"
    rows = [(together, "a", 2, 1), (together, "b", 1, 1), (together, "c", 3, 2), (alone, "a", 1, 1)]
    ranks = pd.DataFrame(rows, columns=["judged_by", "method", "rank", "rank_lo"])
    facts = page_tables.table_facts(pd.DataFrame(dict(inside=[True, False, True, True, False])), ranks)
    assert facts == (5, 3, 0.6, "b", 2, 3)


def test_figures_are_counted_together_and_the_second_reading_is_named():
    columns = dict(pairs=6, strong=[1, 2, 3], alone=[4, 5, 6], adjusted=[0, 1, 2], shuffled=[1.5, None, 2.5])
    counts = pd.DataFrame(dict(figure=[8, 3, 8]) | columns)
    assert page_tables.figure_totals(counts) == (3, 18, 6, 15, 3)
    titles = page_tables.shuffled_figures(counts)["title"].tolist()
    assert titles == ["Figure 8", "Figure 8 in its second reading"]


def test_of_methods_that_are_first_equally_often_the_first_is_named():
    places = pd.DataFrame(dict(first=[1, 3, 3], surely_first=[1, 0, 2], metrics=[7, 7, 7]), ["a", "b", "c"])
    assert page_tables.first_place_facts(places) == (7, "b", 3, 0)


@pytest.fixture(scope="module")
def drawn_run():
    "Tables 5, 6 and 9 of forty texts, whose scores know a little of the truth"
    rng, names = np.random.default_rng(3), [f"s{i}" for i in range(40)]
    truth = rng.random(40)

    def noisy(sign, scores):
        return pd.DataFrame({name: sign * truth + rng.normal(size=40) for name in scores}, names)

    metrics = [scores[0] for name, scores in own_tables.REGISTERED_METRICS.items() if "GPT" not in name]
    quality, uncertainty = noisy(1, metrics), noisy(-1, ["num_sets", "ecc", "lex_sim", "eigv"])
    bank = own_tables.bank_of_table(own_tables.STAND_IN_MODELS)["T5"]
    results = {bank: own_tables.BankResult(prr_table(quality, uncertainty), {}, {})}
    return page_tables.own_run(own_tables.STAND_IN_MODELS, results, {bank: (quality, uncertainty)}, {})


def test_a_verdict_is_as_stable_as_the_texts_drawn_with_the_stated_seed_say(drawn_run):
    both = page_tables.own_verdicts(drawn_run)
    tested = page_tables.tested_verdicts(drawn_run, both, draws=2, shuffles=5)
    done, tables = page_tables.decided_claims(tested.both).set_index("id"), drawn_run.tables
    copies = own_tables.bootstrap_tables(drawn_run.names, drawn_run.frames, 2, seed=42)
    same = [
        claim_ledger(
            {
                name: pd.DataFrame(copies[name][k], tables[name].index, tables[name].columns)
                for name in tables
            },
            draws=0,
            shuffles=0,
        ).set_index("id")["verdict"]
        == both.set_index("id")["own"]
        for k in range(2)
    ]
    assert 0 < done["stability"].mean() < 1
    assert done["stability"].tolist() == np.mean([one[done.index] for one in same], axis=0).tolist()
    assert tested.both.drop(columns="stability").equals(both) and len(tested.agreed.null) == 5
    named = own_tables.permute_names(tables, own_tables.bank_of_table(drawn_run.cast), 5, seed=42)
    null = own_tables.verdict_agreement(both, own_tables.verdict_codes(tables, named)).null
    assert tested.agreed.null.tolist() == null.tolist()


def test_without_texts_to_draw_there_is_agreement_and_no_stability(drawn_run):
    alone = drawn_run._replace(frames={})
    both = page_tables.own_verdicts(alone)
    tested = page_tables.tested_verdicts(alone, both, draws=2, shuffles=5)
    assert tested.both.equals(both) and "stability" not in tested.both
    assert 0 <= tested.agreed.share <= 1 and np.isnan(tested.agreed.lo) and len(tested.agreed.null) == 5
