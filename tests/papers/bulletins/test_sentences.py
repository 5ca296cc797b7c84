"""Pages on banks and on He et al.: inputs are made once, tables and sentences say what a hand count says."""

import pandas as pd

from tests.helpers.banks_of_pages import BANK
from uetrust.papers.bulletins import sentences, tables


def test_without_the_truth_sentences_about_it_are_empty():
    assert sentences.metric_choice_sentence(None, None) == sentences.length_share_sentence(None) == ""
    assert sentences.best_method_sentence(None) == sentences.best_metrics_sentence(None, None, None, 8) == ""
    assert sentences.design_sentences(None) == [] and sentences.subsample_sentence(BANK, None) == ""


def test_tied_methods_share_the_first_place():
    ranks = pd.DataFrame(
        [
            ("truth", "a", 0.5, 1.5, 1.5, 1.5),
            ("truth", "b", 0.5, 1.5, 1.5, 2.0),
            ("truth", "c", 0.1, 3, 2, 3),
        ],
        columns=["judged_by", "method", "value", "rank", "rank_lo", "rank_hi"],
    )
    first = tables.first_ranked(ranks)
    assert first[["method", "could_be_first"]].values.tolist() == [["a", 2]]
    assert "a (0.50; rank 1.5 to 1.5, 2 methods could be first)" in sentences.first_sentence(first)
