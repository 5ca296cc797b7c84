"""Tables of the pages on He et al.: a finished run is taken for one."""

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.prr import prr_table
from uetrust.papers.he2024 import own_tables, page_tables
from uetrust.papers.he2024 import sentences as paper_sentences
from uetrust.papers.he2024.claims import claim_ledger


def test_the_comparison_takes_a_finished_run_for_one(tmp_path):
    banks = [bank for bank in page_tables.printed_banks() if not bank.startswith("aeslc--llama")]
    own_tables.write_synthetic_run(tmp_path, 1, {("T8", "CTC", "MTE"): 0.1}, banks)
    results, real = page_tables.paper_results(tmp_path, banks)
    cells, cover = own_tables.compare_with_print(results)
    tested = cells.dropna(subset="p")
    assert (
        real
        and "T3: the bank aeslc--llama-2-7b-chat was not run"
        in paper_sentences.compared_cells_sentence(tested, cover)
    )
    assert "T8 CTC, MTE (printed" in paper_sentences.inside_sentence(tested)
    assert page_tables.banks_with_scores(tmp_path, results) == []


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
