"""Rankings of methods: who cannot be told from the winner."""

from tests.helpers.confidence_set import methods
from uetrust.papers.bulletins.methods import prr_by_method
from uetrust.papers.bulletins.sentences import best_method_sentence


def test_a_ranking_names_who_cannot_be_told_from_its_winner():
    quality, uncertainty, _ = methods()
    named = uncertainty.rename(columns=dict(a="msp", b="mte", c="perplexity")).assign(output_length=quality)
    rows = named.assign(sample=[f"s{i}" for i in range(240)]).melt("sample", var_name="name")
    table = prr_by_method(rows, quality.set_axis([f"s{i}" for i in range(240)]))
    assert set(table.loc[table["in_set"], "method"]) <= {"msp", "mte"} and table["in_set"].any()
    said = best_method_sentence(table)
    assert "of 3 cannot be told from it" in said or "no other of the 3 methods" in said
