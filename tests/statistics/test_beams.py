"""Beams: hypotheses of a search and of members, equal to whole passes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.helpers.prompted import THREE, D, asked_of, plain
from tests.helpers.writers import SAMPLES, S, tiny
from uetrust.generation.local import beam_hypotheses, checkpoint_settings, decode_batch, render_prompts
from uetrust.models.forward import DropoutMask
from uetrust.statistics.beams import compute_beams, ensemble_forward
from uetrust.statistics.table import read_statistics


@torch.no_grad()
def by_members(model, prompt, text, seeds, rate):  # log p [M,L,V] by whole passes over one text
    ids, start, out = torch.tensor([prompt]), model.model.config.decoder_start_token_id, []
    for seed in seeds:
        member = DropoutMask(seed, rate)
        member.begin(0)
        with member:
            states = model.model.get_encoder()(input_ids=ids)
        member.begin(1)
        with member:
            out.append(
                model.model(
                    encoder_outputs=states,
                    attention_mask=torch.ones_like(ids),
                    decoder_input_ids=torch.tensor([[start, *text[:-1]]]),
                )
                .logits[0]
                .double()
                .log_softmax(-1)
                .numpy()
            )
    return np.stack(out)


def test_hypotheses_have_the_score_of_the_search_and_the_terms_of_whole_passes(bart, tmp_path):
    model, bank = bart
    got, asked = (
        read_statistics(
            compute_beams(tmp_path / "x", bank, THREE, model, D, beams=4, members=3, progress=False)
        ),
        asked_of(model),
    )
    assert got.groupby("sample").size().tolist() == [4] * 3
    for hypothesis in got.itertuples():
        logp = by_members(model, asked[hypothesis.sample], hypothesis.ids, [1, 2, 3], 0.1)
        mixture, own = np.exp(logp).mean(0), logp[:, np.arange(len(hypothesis.ids)), hypothesis.ids]
        entropy = -(mixture * np.log(mixture)).sum(-1)
        np.testing.assert_allclose(hypothesis.pe_tu, entropy, atol=1e-5)
        np.testing.assert_allclose(hypothesis.pe_rmi, -(mixture * logp.mean(0)).sum(-1) - entropy, atol=1e-5)
        free = (
            slice(None, -1) if len(hypothesis.ids) == D.max_new_tokens else slice(None)
        )  # The last token is forced there
        np.testing.assert_allclose(hypothesis.member_logp[:, free], own[:, free], atol=1e-4)
        assert hypothesis.length == len(hypothesis.ids) + 1 and hypothesis.score == pytest.approx(
            np.log(np.exp(own).mean(0))[free].sum() / hypothesis.length, abs=1e-4
        )


@pytest.mark.parametrize("kind", ["bart", "t5", "llama"])
@pytest.mark.parametrize("penalty", [None, 0.0, 2.0])
def test_members_that_drop_nothing_search_as_the_network_does(kind, penalty):
    model = tiny(kind)
    model.model.generation_config.length_penalty = penalty
    settings = replace(checkpoint_settings(model, S), beams=3)
    asked = [ids for ids, _ in render_prompts(model, list(SAMPLES["source"][:5]), settings)]
    got = beam_hypotheses(
        model, asked, settings, lambda ids, mask: ensemble_forward(model, ids, mask, 3, [1, 2], 0.0)
    )
    assert [[ids for ids, _ in found] for found in got] == decode_batch(model, asked, settings)
    for i, found in enumerate(got):
        for ids, score in found:
            logp = plain_of(model, asked[i], ids)
            free = logp[:-1] if kind == "bart" and len(ids) == S.max_new_tokens else logp
            assert score == pytest.approx(
                free.sum() / (len(ids) + 1) ** (1 if penalty is None else penalty), rel=1e-4
            )


def plain_of(model, prompt, text):
    return plain(model, list(prompt), list(text))[0][np.arange(len(text)), text]


def test_members_search_for_something_else_than_the_network():
    model = tiny("bart")
    settings = replace(checkpoint_settings(model, S), beams=3)
    asked = [ids for ids, _ in render_prompts(model, list(SAMPLES["source"][:5]), settings)]

    def found(seeds):
        return [
            texts[0][0]
            for texts in beam_hypotheses(
                model, asked, settings, lambda ids, mask: ensemble_forward(model, ids, mask, 3, seeds, 0.3)
            )
        ]

    assert (
        found([1]) != found([2])
        and found([1, 2]) not in (found([1]), found([2]))
        and found([1, 2]) == found([2, 1])
    )
    assert "forward" not in vars(model.model), "it answers for itself again"
