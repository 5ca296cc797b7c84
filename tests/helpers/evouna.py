"""Answers of five systems to the questions of EVOUNA NQ, and values that were computed of them elsewhere."""

import json
from functools import cache

import pandas as pd
import pytest

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
