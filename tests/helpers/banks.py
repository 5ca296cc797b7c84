"""A bank of texts that nothing had to write."""

import pandas as pd

from uetrust.generation.bank import bank_provenance, bank_row

SAMPLES = pd.DataFrame(
    dict(id=[f"s{i}" for i in range(7)], source=[f"Source number {i}." for i in range(7)], split="test")
)
ABOUT = bank_provenance(
    "toy", "echo", "echo-model", "r1", dict(seed=1, temperature=0.7), dict(greedy=1, sample=2)
)


def echo(part):
    made = []
    for sample in part.itertuples():
        made.append(
            bank_row(sample.id, "greedy", 0, sample.source, [1, 2, 3], 0, "stop", [-0.1, -0.25, -3.0])
        )
        made += [bank_row(sample.id, "sample", k, sample.source * k, [k], 5, "length") for k in range(2)]
    return made
