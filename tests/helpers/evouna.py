"""Answers to the questions of EVOUNA NQ with values computed elsewhere; slow definitions of words and F1."""

import json
import string
from functools import cache

import pandas as pd
import pytest
from hypothesis import strategies as st

from uetrust.core.settings import mirror, oracles

SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
FILE = mirror() and mirror() / "evouna" / "NQ.json"
WANTED = oracles() and oracles() / "evouna_nq.json"
evouna = pytest.mark.skipif(
    not (FILE and FILE.exists() and WANTED and WANTED.exists()), reason="EVOUNA NQ is not at hand"
)


@cache
def wanted():
    return json.loads(WANTED.read_text())


@cache
def answers(system):
    "Proper questions that the system answers and people judge: answer, others, golds, human"
    rows = [row for row in json.loads(FILE.read_text()) if not row["improper"]]
    others = [f"answer_{name}" for name in SYSTEMS if name != system]
    return pd.DataFrame(
        dict(
            id=str(i),
            hypothesis=row[f"answer_{system}"],
            others=[row[name] for name in others if row[name] is not None],
            references=[text for text in row["golden_answer"].split("/") if text.strip()],
            human=float(row[f"judge_{system}"]),
        )
        for i, row in enumerate(rows)
        if row[f"answer_{system}"] is not None and isinstance(row[f"judge_{system}"], bool)
    )


words = st.sampled_from(["a", "The", "the", "an", "pier", "Pier!", "old", "-", "olds", "x.y", "ÜBER", "–"])
texts = st.lists(words, max_size=6).map(" ".join)


def slow_words(text):
    kept = "".join("" if c in string.punctuation else c for c in text.lower())
    return [word for word in kept.split() if word not in "a an the".split()]


def slow_f1(a, b):
    left, common = list(b), 0
    for word in a:
        if word in left:
            left.remove(word)
            common += 1
    if not a and not b:
        return 1.0
    precision, recall = (common / max(len(x), 1) for x in (a, b))
    return 2 * precision * recall / (precision + recall) if common else 0.0
