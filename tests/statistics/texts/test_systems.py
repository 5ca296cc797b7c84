"""Embeddings of an answer and of those of other systems."""

import numpy as np

from uetrust.statistics.entry import compute_entry
from uetrust.statistics.texts import STATISTICS


def test_embeddings_are_those_of_the_answer_and_then_of_the_others(monkeypatch):
    "A text that several systems gave is handed over every time; the encoder reads it once."
    asked = []

    def embed_texts(model, part):
        asked.extend(part)
        return np.array([[len(text), 1] for text in part], float), np.array([len(text) > 4 for text in part])

    monkeypatch.setattr("uetrust.models.encode.embed_texts", embed_texts)
    given = dict(hypothesis=["Rome", "Paris"], other_texts=[["Paris", "in"], []])
    entry = STATISTICS["other_embeddings"]
    found, cut = compute_entry(entry, None, given, ["other_vectors"])
    assert asked == ["Rome", "Paris", "in", "Paris"] and cut["other_vectors"].tolist() == [1, 1]
    assert [vectors[:, 0].tolist() for vectors in found["other_vectors"]] == [[4, 5, 2], [5]]
