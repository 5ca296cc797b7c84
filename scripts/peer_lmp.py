"""Time the estimators of LM-Polygraph.

Run by `uetrust.dev.bench.methods` with the python of the bench environment, never imported.

peer_lmp.py estimators FOLDER   statistics.json and statistics.npz -> result.json and result.npz
peer_lmp.py whole FOLDER        asked.json (checkpoints, sources, settings) -> result.json and result.npz
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from lm_polygraph import estimators as E
from lm_polygraph.stat_calculators.semantic_classes import SemanticClassesCalculator
from peer import fastest, hand_back, timed

LABELS = ("contra", "neutral", "entail")
FITTED = ("train_", "background_")
FEW = 16  # Items of the call that warms up, and fits what is fitted


def make(pair):
    return getattr(E, pair["peer"])(**pair["options"])


def clusters(s):  # As its manager would have them
    return s | dict(
        semantic_classes_entail=SemanticClassesCalculator()(s | dict(entailment_id=2), [], None)[
            "semantic_classes_entail"
        ]
    )


def typed(j, arrays):  # In the types in which its own calculators hand them over
    s = j["lists"] | dict(arrays)
    for name in ("greedy_log_likelihoods", "entropy"):
        s[name] = [list(np.array(x)) for x in s[name]]
    for name in (
        "token_similarity",
        "sample_sentence_similarity",
        "greedy_sentence_similarity",
        "sample_embeddings",
    ):
        s[name] = [np.array(x) for x in s[name]]
    s["sample_token_similarity"] = [[np.array(y) for y in x] for x in s["sample_token_similarity"]]
    s["greedy_tokens_alternatives"] = [
        [list(zip(*step)) for step in x] for x in s["greedy_tokens_alternatives"]
    ]
    s["greedy_tokens_alternatives_nli"] = [
        [matrix(*step) for step in x] for x in s["greedy_tokens_alternatives_nli"]
    ]
    return s


def matrix(forward, backward):  # Classes between the first word and the others; no others are read
    m = [[None] * len(forward) for _ in forward]
    m[0] = [LABELS[c] for c in forward]
    for i, c in enumerate(backward):
        m[i][0] = LABELS[c]
    return m


def estimators(folder):
    j = json.loads((folder / "statistics.json").read_text())
    s = typed(j, np.load(folder / "statistics.npz"))
    few = clusters({k: v if k.startswith(FITTED) else v[:FEW] for k, v in s.items()})
    s, seconds, fit, values = clusters(s), {}, {}, {}
    for pair in j["pairs"]:
        e = make(pair)
        fit[pair["ours"]], _ = timed(e, few)
        seconds[pair["ours"]], values[pair["ours"]] = fastest(e, s)
    return dict(seconds=seconds, fit=fit), values


class Compared:  # What its calculators ask of an NLI model, around any checkpoint
    def __init__(self, folder, batch):
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self.deberta, self.deberta_tokenizer = (
            AutoModelForSequenceClassification.from_pretrained(folder).eval(),
            AutoTokenizer.from_pretrained(folder),
        )
        self.deberta.config.label2id = {k.upper(): v for k, v in self.deberta.config.label2id.items()}
        self.batch_size, self.device = batch, "cpu"


STEPS = dict(
    texts=(
        "GreedyProbsCalculator",
        "SamplingGenerationCalculator",
        "EntropyCalculator",
        "InitialStateCalculator",
    ),
    alternatives=("GreedyAlternativesNLICalculator",),
    nli=("SemanticMatrixCalculator", "GreedySemanticMatrixCalculator", "SemanticClassesCalculator"),
)


class Clocked:  # A calculator of statistics, and what it spends
    def __init__(self, calculator, spent):
        self.calculator, self.spent = calculator, spent

    def __call__(self, *args):
        name = type(self.calculator).__name__
        t, got = timed(self.calculator, *args)
        self.spent[next(s for s, names in STEPS.items() if name in names)] += t
        return got


def whole(folder):
    from lm_polygraph import Dataset, UEManager, WhiteboxModel
    from lm_polygraph.defaults.register_default_stat_calculators import register_default_stat_calculators
    from lm_polygraph.utils.builder_enviroment_stat_calculator import BuilderEnvironmentStatCalculator
    from lm_polygraph.utils.generation_parameters import GenerationParameters
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    torch.manual_seed(0)
    j = json.loads((folder / "asked.json").read_text())
    net = AutoModelForSeq2SeqLM.from_pretrained(j["model"]).eval()
    m = WhiteboxModel(
        net,
        AutoTokenizer.from_pretrained(j["model"]),
        j["model"],
        "Seq2SeqLM",
        GenerationParameters(top_k=j["top_k"], max_new_tokens=j["max_new_tokens"]),
    )
    env = BuilderEnvironmentStatCalculator(m)
    env.nli_model = Compared(j["nli"], j["nli_batch"])

    def manager(sources):
        known = register_default_stat_calculators(
            "Whitebox", output_attentions=False, output_hidden_states=False
        )  # Half of what it would do by itself, and not needed
        data = Dataset(sources, [""] * len(sources), j["batch"])
        return UEManager(
            data,
            m,
            [make(p) for p in j["pairs"]],
            env,
            known,
            [],
            [],
            [],
            ignore_exceptions=False,
            verbose=False,
            max_new_tokens=j["max_new_tokens"],
        )

    manager(j["sources"][:2])()  # Imports, and whatever is made on first use
    spent, run = dict.fromkeys(STEPS, 0.0), manager(j["sources"])
    run.stat_calculators = [Clocked(c, spent) for c in run.stat_calculators]
    seconds, _ = timed(run)
    names = {str(make(p)): p["ours"] for p in j["pairs"]}
    return dict(
        seconds=spent | dict(scores=seconds - sum(spent.values())), texts=run.stats["greedy_texts"]
    ), {names[n]: np.array(v) for (_, n), v in run.estimations.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, folder = sys.argv[1], Path(sys.argv[2])
    hand_back(folder, *dict(estimators=estimators, whole=whole)[what](folder))
