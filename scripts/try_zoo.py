"""Try architectures of the installed transformers in small and write data/zoo.csv:
PYTHONPATH=. .venv/bin/python scripts/try_zoo.py [CLASS ...]. Each takes seconds, and there are over 200.
A class that is tried again replaces its row."""

import sys
import warnings

import numpy as np
import pandas as pd
import torch
import transformers

from tests.helpers.zoo import (
    NETWORKS,
    PROMPTS,
    TABLE,
    TEXTS,
    made,
    plain_logp,
    plain_previous,
    plain_texts,
    samples,
    small_network,
)
from uetrust.core.checks import BadCheckpoint
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import generate_texts
from uetrust.models.forward import score_tokens
from uetrust.models.load import check_writes
from uetrust.statistics.attention import attention_statistics

SETTINGS = Decoding(samples=0, max_new_tokens=8, prompt="{source}", top_k=0)


def said(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:160]


def reason(error):  # Of a refusal, without its frame
    return str(error).partition("used here: ")[2].partition(". Name a checkpoint of another")[0]


def attention_state(model):
    try:
        found = attention_statistics(model, [(PROMPTS[0], TEXTS[1])])[0]["attention_previous"]
    except ValueError:
        return "refused"
    plain = plain_previous(model, PROMPTS[0], TEXTS[1])
    if len(plain) != len(found):
        return "wrong"
    return "right" if all(np.allclose(a[1:], b, atol=1e-5) for a, b in zip(found, plain)) else "wrong"


@torch.inference_mode()
def wrong_shapes(network):  # What is said where the sizes of the network in small do not fit together
    ids = torch.tensor([[5, 9, 11]])
    both = dict(decoder_input_ids=ids) if network.config.is_encoder_decoder else {}
    try:
        network(input_ids=ids, **both)
    except RuntimeError as e:
        return said(e)
    except Exception:  # It needs more than a text: the library is to say so
        return ""
    return ""


def verdict(network):
    "(state, state of attention, why)"
    try:
        check_writes(network, network)
        small = small_network(network)
        if shapes := wrong_shapes(small):
            return "not built", "", shapes
        model = made(network)
        wanted = list(plain_texts(model))
    except BadCheckpoint as e:
        return "refused", "", reason(e)
    except Exception as e:
        return "not built", "", said(e)
    try:
        if [row["ids"] for row in generate_texts(model, samples(model), SETTINGS)] != wanted:
            return "wrong", "", "greedy texts"
        pairs = [(prompt, text) for prompt in PROMPTS for text in TEXTS]
        read = zip(score_tokens(model, pairs), pairs)
        if not all(np.allclose(own.logp, plain_logp(model, *pair), atol=1e-4) for own, pair in read):
            return "wrong", "", "log-probabilities"
    except BadCheckpoint as e:
        return "refused", "", reason(e)
    except Exception as e:
        return "wrong", "", said(e)
    try:
        return "right", attention_state(model), ""
    except Exception as e:
        return "right", "wrong", said(e)


def main(names):
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    kept = (
        pd.read_csv(TABLE, keep_default_na=False).set_index("network") if TABLE.exists() else pd.DataFrame()
    )
    rows = kept.to_dict("index")
    for name in names or NETWORKS:
        state, attention, why = verdict(name)
        rows[name] = dict(state=state, attention=attention, why=why, transformers=transformers.__version__)
        print(name, *rows[name].values(), flush=True)
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("network").sort_index()
        table.to_csv(TABLE)


if __name__ == "__main__":
    main(sys.argv[1:])
