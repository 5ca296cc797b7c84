"""Claims as LM-Polygraph 0.7.0 and uqlm 0.6.7 score them, written once in the environment of `make bench`:

make runs/.bench/.ready
PYTHONPATH=runs/.uqlm runs/.bench/bin/python scripts/claim_cases.py > tests/fixtures/claims.json

uqlm imports packages that its numbers do not need: where they are not installed, they are empty here.
"""

import importlib.machinery
import json
import sys
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from unittest.mock import MagicMock

import networkx as nx
import numpy as np
import torch
from boostedprob import calculate_boostedprob


class Empty:
    "Modules that uqlm imports and its numbers do not need"

    names = ("langchain", "optuna", "bert_score", "datasets", "sentence_transformers", "ipywidgets")

    def find_spec(self, name, path=None, target=None):
        if name.startswith(self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return MagicMock(__spec__=spec, __path__=[])

    def exec_module(self, module):
        pass


sys.meta_path.append(Empty())  # Asked last: only for what is not installed

CLAIMS = [[0, 1, 2], [3, 5, 6], [4, 8, 9, 10, 11]]  # Tokens of each claim of a text of 12 tokens
L, V, K = 12, 9, 4
STOP = "the"


def rounded(x):
    return np.round(np.asarray(x, float), 6)


def classes(rng, shape):
    "Probabilities of contradiction, neutral and entailment that sum to 1 as they are written."
    p = rounded(0.01 + 0.97 * rng.dirichlet(np.ones(3), shape))
    p[..., 1] = rounded(1 - p[..., 0] - p[..., 2])
    return p


def estimator(module, name, **options):
    return getattr(import_module(f"lm_polygraph.estimators.claim.{module}"), name)(**options)


def text(rng):
    "Numbers of one text, as LM-Polygraph stores them."
    logp = rounded(np.log(rng.dirichlet(np.ones(V) / 2, L) + 1e-4))
    ids = logp.argmax(1)
    relations = rng.choice(["entail", "neutral", "contra"], (L, 3, 3))
    words = [STOP if i % 4 == 1 else f"w{i}" for i in range(L)]
    top = np.argsort(-logp, 1)[:, :3]
    return dict(
        greedy_log_probs=logp,
        greedy_tokens=ids,
        greedy_log_likelihoods=logp.max(1),
        greedy_lm_log_likelihoods=rounded(-rng.exponential(2, L)),
        entropy=rounded(rng.random(L) * 2),
        token_similarity=rounded(rng.random(L)),
        forwardpass_attention_weights=rounded(rng.dirichlet(np.ones(L), (4, 3, L)) + 1e-3),
        alternatives=top,
        alternatives_nli=relations,
        words=words,
        p_true_claim=rounded(-rng.exponential(1, len(CLAIMS))),
        nli_to_sample_texts=classes(rng, (len(CLAIMS), K)),
        token_focus=rounded(1 + rng.exponential(1, L)),
    )


def statistics(one):
    "The same in the shapes in which its estimators take them: a batch of one text."
    claims = [SimpleNamespace(aligned_token_ids=tokens) for tokens in CLAIMS]
    logp = one["greedy_log_probs"]
    alternatives = [
        [(one["words"][i] if j == 0 else f"a{i}{j}", logp[i, token]) for j, token in enumerate(row)]
        for i, row in enumerate(one["alternatives"])
    ]
    kinds = ("contra", "neutral", "entail")
    return {name: [value] for name, value in one.items()} | dict(
        claims=[claims],
        p_true_claim=one["p_true_claim"],
        greedy_lm_log_likelihoods=[one["greedy_lm_log_likelihoods"].copy()],
        greedy_tokens_alternatives=[alternatives],
        greedy_tokens_alternatives_nli=[one["alternatives_nli"].tolist()],
        nli_to_sample_texts=[[[dict(zip(kinds, p)) for p in claim] for claim in one["nli_to_sample_texts"]]],
    )


def attention_score():
    made = import_module("lm_polygraph.estimators.claim.attention_score").AttentionScoreClaim
    found = made.__new__(made)
    found.layer = 2  # Of four
    return found


def focus(one):
    module = import_module("lm_polygraph.estimators.claim.focus")
    module.token_level_focus_scores = lambda *_: ([one["token_focus"].tolist()], None)
    found = module.FocusClaim.__new__(module.FocusClaim)
    found.idf_stats = found.p = found.gamma = None
    return found


def lm_polygraph_claims(one):
    "Name of an estimator -> a number for each claim; CCP also without stop words."
    ccp = "claim_conditioned_probability", "ClaimConditionedProbabilityClaim"
    made = dict(
        AttentionScoreClaim=attention_score(),
        ClaimConditionedProbabilityClaim=estimator(*ccp, is_stopword=lambda word: word == STOP),
        ccp_without_stop_words=estimator(*ccp, is_stopword=lambda word: False),
        FocusClaim=focus(one),
        FrequencyScoringClaim=estimator("frequency_scoring", "FrequencyScoringClaim"),
        MaximumClaimProbability=estimator("max_probability", "MaximumClaimProbability"),
        PTrueClaim=estimator("p_true", "PTrueClaim"),
        PerplexityClaim=estimator("perplexity", "PerplexityClaim"),
        PointwiseMutualInformationClaim=estimator(
            "pointwise_mutual_information", "PointwiseMutualInformationClaim"
        ),
        RandomBaselineClaim=estimator("random_baseline", "RandomBaselineClaim"),
        SelfCertaintyClaim=estimator("self_certainty", "SelfCertaintyClaim"),
        MaxTokenEntropyClaim=estimator("token_entropy", "MaxTokenEntropyClaim"),
        TokenSARClaim=estimator("token_sar", "TokenSARClaim"),
    )
    return {name: np.asarray(found(statistics(one))[0], float).tolist() for name, found in made.items()}


def boosted(one):
    "Boosted probability of claims: it fails for tokens in a list of texts, and takes those of one text bare."
    found = estimator("boostedprob_score", "BoostedProbClaim")
    try:
        found(statistics(one))
    except RuntimeError as error:
        bare = found(statistics(one) | dict(greedy_tokens=one["greedy_tokens"]))
        return dict(error=str(error), bare=np.asarray(bare[0], float).tolist())


def graph_scorer():
    "Graphs of uqlm, without its NLI model."
    scorer = import_module("uqlm.longform.graph.graph_scorer").GraphScorer
    return scorer.__new__(scorer)


def graph(entails):
    "Six centralities of claims by uqlm, before it rounds them to 5 digits; PageRank also to the end."
    scorer, (claims, responses) = graph_scorer(), entails.shape
    network = scorer._construct_bipartite_graph(entails, claims, responses, 0.5)
    case = dict(entails=entails.tolist())
    try:
        found = scorer._calculate_claim_node_graph_metrics(network, claims, responses)
    except ZeroDivisionError as error:
        return case | dict(error=str(error))
    exact = nx.pagerank(network, weight="weight", tol=1e-16, max_iter=10_000)
    lists = {name: [float(values[i]) for i in range(claims)] for name, values in found.items()}
    return case | lists | dict(page_rank_exact=[exact[i] for i in range(claims)])


def graphs(rng):
    "Random graphs, graphs in parts, and graphs at the edge."
    yield from (rounded(rng.random(shape)) for shape in ((5, 4), (3, 6), (8, 3), (1, 3), (6, 6)))
    yield np.ones((3, 3))
    yield np.array([[0.9, 0.8, 0.1], [0.7, 0.6, 0.2], [0.0, 0.3, 0.95]])
    yield np.array([[0.9, 0.8], [0.1, 0.2], [0.5, 0.4999]])
    yield np.array([[0.1, 0.2], [0.3, 0.4]])
    yield np.array([[0.9], [0.6]])


class Stored:
    "In place of an NLI model, an encoder and BERTScore: numbers of (response or sentence, claim)"

    def __init__(self, numbers):
        self.numbers = numbers

    def predict_batch(self, pairs):
        return np.array([self.numbers[pair] for pair in pairs])

    def _compute_score(self, claim, sentences):  # A cosine as its scorer returns it, or a BERTScore
        return [self.numbers[sentence, claim] for sentence in sentences]


def scorer(module, name, matched):
    made = getattr(import_module(f"uqlm.longform.luq.{module}"), name)
    found = made.__new__(made)
    found.matched_claim, found.progress_bar = matched, None
    found.cosine_scorer = found.bert_scorer = None
    return found


def unit_response(rng):
    "Scores of three claims against four responses."
    probabilities = classes(rng, (3, K))
    claims, responses = [f"c{i}" for i in range(3)], [f"r{k}" for k in range(K)]
    found = scorer("unit_response", "UnitResponseScorer", matched=False)
    found.nli = Stored(
        {(r, c): probabilities[i, k] for i, c in enumerate(claims) for k, r in enumerate(responses)}
    )
    return dict(probabilities=probabilities.tolist(), scores=of_claims(found, [claims], [responses]))


def of_claims(found, claims, responses):
    return {name: values[0] for name, values in found.evaluate(claims, responses).to_dict().items()}


def matched_unit(rng, sizes=(2, 1, 3)):
    "Scores of two claims against three responses of several sentences."
    claims, sentences = ["c0", "c1"], [[f"r{k}s{s}" for s in range(size)] for k, size in enumerate(sizes)]
    pairs = [(sentence, claim) for claim in claims for of_one in sentences for sentence in of_one]
    probabilities = dict(zip(pairs, classes(rng, len(pairs))))
    cosines = dict(zip(pairs, rounded(rng.uniform(-1, 1, len(pairs)))))
    bertscores = dict(zip(pairs, rounded(rng.uniform(0.5, 1, len(pairs)))))
    found = scorer("matched_unit", "MatchedUnitScorer", matched=True)
    found.nli = Stored(probabilities)
    found.cosine_scorer = Stored({pair: 0.5 + cosine / 2 for pair, cosine in cosines.items()})
    found.bert_scorer = SimpleNamespace(_compute_score=lambda claim, one: bertscores[one[0], claim])

    def nested(numbers):
        return [[[np.asarray(numbers[s, c]).tolist() for s in one] for one in sentences] for c in claims]

    scores = of_claims(found, [claims], [sentences])
    given = dict(probabilities=nested(probabilities), cosines=nested(cosines), bertscores=nested(bertscores))
    return given | dict(scores=scores)


def main():
    rng = np.random.default_rng(0)
    one = text(rng)
    dominant = calculate_boostedprob(
        torch.tensor(one["greedy_log_probs"]), torch.tensor(one["greedy_tokens"])
    )
    print(
        json.dumps(
            dict(
                versions={
                    name: version(name) for name in ("lm-polygraph", "networkx", "numpy", "boostedprob")
                }
                | dict(uqlm="0.6.7"),
                command="PYTHONPATH=runs/.uqlm runs/.bench/bin/python scripts/claim_cases.py "
                "> tests/fixtures/claims.json",
                claims=CLAIMS,
                stop=STOP,
                text={name: np.asarray(value).tolist() for name, value in one.items()}
                | dict(greedy_dominant=dominant.numpy().tolist()),
                lm_polygraph=lm_polygraph_claims(one),
                boosted=boosted(one),
                graphs=[graph(entails) for entails in graphs(rng)],
                unit_response=unit_response(rng),
                matched_unit=matched_unit(rng),
            )
        )
    )


if __name__ == "__main__":
    main()
