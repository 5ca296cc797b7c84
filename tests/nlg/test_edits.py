"""Edits: of several references the best counts, whichever way better is."""

import pytest

from tests.helpers.edits import TEXTS, values
from uetrust.nlg.edits import ter


def test_of_several_references_the_best_counts_whichever_way_better_is():
    references = [["It snowed.", "Rain fell."], ["It snowed hard.", "A b c d e f."]]
    texts = TEXTS.drop(columns="reference").assign(references=references)
    found = values(texts, ["rouge_l", "ter"])
    assert found["sample"].tolist() == list("abab") and list(found.index) == [0, 1, 2, 3]
    nearest = [min(ter(TEXTS["hypothesis"][i], text) for text in references[i]) for i in (0, 1)]
    assert found["value"].tolist() == pytest.approx([1, 0.8, *nearest])
