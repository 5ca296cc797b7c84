"""What the tests of density share."""

import numpy as np

FULL = ("wellposed_d8", "wellposed_d8_float64", "small_train_n30_d5_rde")
# Fewer states than dimensions: the distances of the other library are made by its jitter
THIN = "rank_deficient_d32_n20"


def numbers(x):
    return np.array(x, float)


class Case:
    "States and recorded outputs of one case"

    def __init__(self, case, arrays):
        prefix, x = case["inputs"]["npz_prefix"], case["inputs"]
        self.states, self.train, self.background = (
            arrays[prefix + key]
            for key in (
                "embeddings_decoder",
                "train_embeddings_decoder",
                "background_train_embeddings_decoder",
            )
        )
        self.logp, self.train_perplexity = (
            x["greedy_log_likelihoods"],
            numbers([-np.mean(value) for value in x["train_greedy_log_likelihoods"]]),
        )
        self.out = {key: numbers(value) for key, value in case["outputs"].items()}

    @property
    def items(self):
        return list(self.states)


def cloud(seed, n, size, scale=None):
    return np.random.default_rng(seed).normal(size=(n, size)) * (1 if scale is None else scale)
