"""Time the scorers of uqlm that need no model.

Run by `uetrust.dev.bench.replies` with the python of the bench environment, never imported.

peer_uqlm.py scorers FOLDER   replies.json and claims.npz -> result.json and result.npz
"""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runs" / ".uqlm"))
from claim_cases import graph_scorer  # The import also stands in for packages that uqlm imports
from peer import fastest, hand_back

GRAPH = "degree betweenness closeness harmonic page_rank laplacian".split()


def listed(logp, top):  # A reply as uqlm takes it
    return [
        dict(logprob=at, top_logprobs=[dict(logprob=one) for one in likely]) for at, likely in zip(logp, top)
    ]


def graphs(documents):  # Six centralities of the claims of each document
    scorer, found = graph_scorer(), {name: [] for name in GRAPH}
    for entails in documents:
        network = scorer._construct_bipartite_graph(entails, *entails.shape, 0.5)
        values = scorer._calculate_claim_node_graph_metrics(network, *entails.shape)
        for name in GRAPH:
            own = values[name if name in values else f"{name}_centrality"]
            found[name] += [own[i] for i in range(len(entails))]
    return found


def scorers(folder):
    given = json.loads((folder / "replies.json").read_text())
    texts, drawn = given["texts"], given["drawn"]
    replies = [listed(*one) for one in zip(given["logp"], given["top"])]
    samples = [[[dict(logprob=at) for at in text] for text in own] for own in given["sample_logp"]]
    top = import_module("uqlm.white_box.top_logprobs").TopLogprobsScorer(
        top_k_logprobs=len(given["top"][0][0])
    )
    sampled = import_module("uqlm.white_box.sampled_logprobs").SampledLogprobsScorer()
    match = import_module("uqlm.black_box.match").MatchScorer
    entails = list(np.load(folder / "claims.npz")["entails"])
    calls = dict(
        listed=lambda: top.evaluate(replies),
        drawn=lambda: dict(monte_carlo=sampled.monte_carlo_probability(texts, replies, samples)),
        texts=lambda: dict(exact_match=[match._compute_score(*one) for one in zip(texts, drawn)]),
        claims=lambda: graphs(entails),
    )
    seconds, values = {}, {}
    for name, call in calls.items():
        seconds[name], found = fastest(call)
        values |= found
    return dict(seconds=seconds), values


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    hand_back(folder, *dict(scorers=scorers)[sys.argv[1]](folder))
