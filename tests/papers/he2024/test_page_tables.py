"""Tables of the pages on He et al.: a finished run is taken for one."""

from uetrust.papers.he2024 import own_tables, page_tables
from uetrust.papers.he2024 import sentences as paper_sentences


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
