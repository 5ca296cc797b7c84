"""What the tests of prompted share."""

from dataclasses import replace

import torch

from tests.helpers.writers import S
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import read_bank
from uetrust.generation.local import checkpoint_settings, render_prompts

D = replace(S, samples=2, max_new_tokens=40, prompt="Summarize the bulletin: {source}", document="{source}")
THREE = load_samples("bulletin:test:3")


@torch.no_grad()
def plain(model, prompt, text):
    # The model on one text: log p [L,V], states [L,D], attention [layers,H,T,T], positions before the text
    if model.kind == "causal":
        out, start = (
            model.model(torch.tensor([[*prompt, *text]]), output_hidden_states=True, output_attentions=True),
            len(prompt),
        )
    else:
        out, start = (
            model.model(
                input_ids=torch.tensor([prompt]),
                decoder_input_ids=torch.tensor([[model.model.config.decoder_start_token_id, *text]]),
                output_hidden_states=True,
                output_attentions=True,
            ),
            1,
        )
    rows = slice(start - 1, start - 1 + len(text))
    state = (out.hidden_states if model.kind == "causal" else out.decoder_hidden_states)[-1][0, rows]
    return (
        out.logits[0, rows].log_softmax(-1).double().numpy(),
        state.numpy(),
        out.attentions if model.kind == "causal" else out.decoder_attentions,
        start,
    )


def asked_of(model):
    return dict(
        zip(
            THREE["id"],
            (ids for ids, _ in render_prompts(model, list(THREE["source"]), checkpoint_settings(model, D))),
        )
    )


def kind_of(bank, kind):
    return read_bank(bank).query(f"kind=={kind!r}").set_index("sample")
