"""Rankings of methods: which methods are as good as the winner within noise."""

import numpy as np
import pandas as pd

from tests.helpers.confidence_set import methods
from uetrust.papers.bulletins.methods import prr_by_method
from uetrust.papers.bulletins.tables import prr_facts


def test_a_ranking_names_the_methods_as_good_as_its_winner():
    quality, uncertainty, _ = methods()
    named = uncertainty.rename(columns=dict(a="msp", b="mte", c="perplexity")).assign(output_length=quality)
    rows = named.assign(sample=[f"s{i}" for i in range(240)]).melt("sample", var_name="name")
    table = prr_by_method(rows, quality.set_axis([f"s{i}" for i in range(240)]))
    assert set(table.loc[table["in_set"], "method"]) <= {"msp", "mte"} and table["in_set"].any()
    facts = prr_facts(table)  # The oracle is no method, and the length a baseline
    assert facts.methods == 3 and facts.best == "msp" and facts.baseline == "output_length"


def like_the_winner(quality, **uncertainty):
    "The methods of a ranking that the texts cannot distinguish from its winner."
    index = [f"s{i}" for i in range(len(quality))]
    wide = pd.DataFrame(uncertainty, index=index).rename_axis("sample").reset_index()
    ranking = prr_by_method(wide.melt("sample", var_name="name"), pd.Series(quality, index, dtype=float))
    return set(ranking.loc[ranking["in_set"], "method"])


def test_a_winner_is_compared_with_others_from_ten_texts_and_two_methods_on():
    "Ten texts that have every score, two methods that differ between texts, and a quality that does."
    n = np.arange(10.0)
    shuffled = n[[1, 0, 3, 2, 5, 4, 7, 6, 9, 8]]
    assert "msp" in like_the_winner(-n, msp=n, mte=shuffled)
    assert not like_the_winner(-n[:9], msp=n[:9], mte=shuffled[:9])
    assert not like_the_winner([*-n[:9], np.nan], msp=n, mte=shuffled)
    assert not like_the_winner(-n, msp=n) and not like_the_winner(-n, msp=n, mte=[1.0] * 10)
    assert not like_the_winner(-n, msp=n, output_length=shuffled)
    assert not like_the_winner([1.0] * 10, msp=n, mte=shuffled)


def test_a_method_with_many_gaps_is_not_compared_with_the_winner():
    "One text in a hundred may lack a score, or have an infinite one."
    n = np.arange(200.0)

    def lacking(count, by):
        return np.where(n < count, by, n)

    for by in (np.nan, np.inf):
        assert like_the_winner(-n, msp=n, mte=n, perplexity=lacking(2, by)) == {
            "msp",
            "mte",
            "perplexity",
        }
        assert like_the_winner(-n, msp=n, mte=n, perplexity=lacking(3, by)) == {"msp", "mte"}
