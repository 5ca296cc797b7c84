"""Scores of replies as uqlm 0.6.7 computes them, written once in the environment of `make bench`:

make runs/.bench/.ready
PYTHONPATH=runs/.uqlm:scripts runs/.bench/bin/python scripts/reply_cases.py > tests/fixtures/replies.json
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version

import numpy as np
from claim_cases import rounded  # The import also stands in for packages that uqlm imports

K = 5


def tokens(rng, n, short=()):
    "Tokens of a reply as a server writes them; those at `short` list fewer than K."
    p = -np.sort(-rng.dirichlet(np.full(12, 0.3), n))
    logp = rounded(np.log(p + 1e-6))
    return [
        dict(
            logprob=float(at[0]), top_logprobs=[dict(logprob=float(x)) for x in at[: 3 if t in short else K]]
        )
        for t, at in enumerate(logp)
    ]


def case(rng, n, short=()):
    "One text with three drawn texts, and what uqlm says of it."
    text, drawn = tokens(rng, n, short), [tokens(rng, n + k) for k in range(3)]
    top = import_module("uqlm.white_box.top_logprobs").TopLogprobsScorer(top_k_logprobs=K)
    sampled = import_module("uqlm.white_box.sampled_logprobs").SampledLogprobsScorer()
    vectors = rounded(rng.normal(size=(4, 3)))
    cosine = import_module("uqlm.black_box.cosine").CosineScorer
    sampled._cosine_scorer = cosine.__new__(cosine)
    sampled._cosine_scorer.max_length = 2000
    sampled._cosine_scorer._get_embeddings = lambda *_: (vectors[[0, 0, 0]], vectors[1:])
    texts = ["Paris", ["Paris", "Lyon", "paris"]]
    match = import_module("uqlm.black_box.match").MatchScorer._compute_score(*texts)
    return dict(
        logp=[at["logprob"] for at in text],
        top=[[one["logprob"] for one in at["top_logprobs"]] for at in text],
        drawn=[[at["logprob"] for at in one] for one in drawn],
        vectors=vectors.tolist(),
        texts=texts,
        exact_match=float(match),
        cosine_sim=float(np.mean(sampled._cosine_scorer._compute_score(*texts))),
        consistency_and_confidence=sampled.compute_consistency_confidence([texts[0]], [texts[1]], [text])[0],
        monte_carlo_probability=float(sampled.monte_carlo_probability([texts[0]], [text], [drawn])[0]),
        **{name: float(values[0]) for name, values in top.evaluate([text]).items()},
    )


def main():
    rng = np.random.default_rng(0)
    cases = [case(rng, n, short) for n, short in ((6, ()), (9, (2,)), (1, ()), (12, (0, 11)))]
    json.dump(dict(versions=dict(uqlm=version("uqlm")), cases=cases), sys.stdout)


if __name__ == "__main__":
    main()
