"""Attention statistics: equal to a plain forward pass in any batch, and the model is left as it was."""

import copy
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from tests.helpers.toys import KINDS, PAIRS, V, tokenizer, toy
from uetrust.models.forward import Layout, attention_by, build_input, score_tokens
from uetrust.models.load import wrap_model
from uetrust.statistics import attention as at
from uetrust.statistics.attention import decoder_layers, elicited_attention
from uetrust.ue.attention import attention_score, csl, focus, rauq

NAMES = ("attention_previous", "attention_log_self", "attention_max")


def attentions(model, pairs, keep=(*NAMES, "prompt_log_self"), **options):
    return at.attention_statistics(model, pairs, keep=keep, **options)


@pytest.fixture(scope="module")
def toys():
    made = {}

    def get(kind, dtype=torch.float64, **k):
        return made.setdefault((kind, dtype, *k.items()), toy(kind, dtype, **k))

    return get


@torch.no_grad()
def maps(model, prompt, text):  # Of the whole model on one input, [layers,H,T,T], and where the text begins
    model = copy.deepcopy(model.model)
    model.set_attn_implementation("eager")
    if not model.config.is_encoder_decoder:
        return torch.cat(
            model(torch.tensor([prompt + text]), output_attentions=True).attentions
        ).numpy(), len(prompt)
    out = model(
        input_ids=torch.tensor([prompt]),
        decoder_input_ids=torch.tensor([(model.config.decoder_start_token_id, *text)]),
        output_attentions=True,
    )
    return torch.cat(out.decoder_attentions).numpy(), 1


def by_definition(model, prefix, text):  # One token and one head at a time
    item = build_input(model, prefix, text)
    weights, start = maps(model, item.prompt, item.text)
    layers, heads, length = *weights.shape[:2], len(item.text)
    previous, most = np.zeros((layers, length)), np.zeros((length, length))
    for layer in range(layers):
        each = [
            [weights[layer, head, start + token - 1, start + token - 1] for token in range(1, length)]
            for head in range(heads)
        ]  # while t is written the network stands at t-1
        previous[layer, 1:] = max(each, key=lambda x: np.mean(x) if x else 0)
    for token in range(1, length):
        for i in range(token):
            most[token, i] = max(
                weights[layer, head, start + token - 1, start + i]
                for layer in range(layers)
                for head in range(heads)
            )
    own = np.array(
        [
            np.mean([np.log(weights[layers // 2, head, k, k]) for head in range(heads)])
            for k in range(start + length)
        ]
    )
    return dict(
        attention_previous=previous,
        attention_log_self=own[start:],
        attention_max=most,
        prompt_log_self=own[:start].sum(),
    )


def far(first, second):
    return max(
        (np.abs(np.asarray(x[k]) - y[k]) / np.maximum(1, np.abs(y[k]))).max()
        for x, y in zip(first, second, strict=True)
        for k in (*NAMES, "prompt_log_self")
        if np.size(x[k])
    )


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_what_a_plain_pass_gives_one_text_at_a_time(toys, kind):
    model = toys(kind)
    got, want = attentions(model, PAIRS), [by_definition(model, *pair) for pair in PAIRS]
    assert far(want, got) < 2e-6
    assert all(
        set(found) == set(wanted)
        and all(found[k].dtype == np.float32 and found[k].shape == wanted[k].shape for k in NAMES)
        and isinstance(found["prompt_log_self"], float)
        for found, wanted in zip(got, want)
    )


@pytest.mark.parametrize("layers", [1, 3, 4])
def test_the_middle_layer_of_any_depth(toys, layers):
    model = toys("llama", num_hidden_layers=layers)
    assert far([by_definition(model, *pair) for pair in PAIRS[:4]], attentions(model, PAIRS[:4])) < 2e-6


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_order_change_nothing(toys, kind):
    model = toys(kind)
    got = attentions(model, PAIRS)
    for n in (1, 40, 10**6):
        assert far(got, attentions(model, PAIRS, batch_tokens=n)) < 1e-6
    mix = np.random.default_rng(0).permutation(len(PAIRS))
    assert far([got[i] for i in mix], attentions(model, [PAIRS[i] for i in mix])) < 1e-6
    assert far(got, attentions(toys(kind, torch.float32), PAIRS)) < 2e-3


def test_half_precision_gives_finite_arrays(toys):
    got = attentions(toys("llama", torch.bfloat16), PAIRS)
    assert all(found[k].dtype == np.float32 and np.isfinite(found[k]).all() for found in got for k in NAMES)


@pytest.mark.parametrize("kind", KINDS)
def test_it_fits_what_read_gives(toys, kind):
    "As many tokens as log-probabilities, for strings and for ids; scores can be computed."
    model = toys(kind)
    ids = [(list(build_input(model, *pair).prompt), list(build_input(model, *pair).text)) for pair in PAIRS]
    for reading, of_text, of_ids in zip(
        score_tokens(model, PAIRS), attentions(model, PAIRS), attentions(model, ids)
    ):
        assert far([of_text], [of_ids]) < 1e-6 and of_text["attention_previous"].shape[1] == len(reading.ids)
        assert (
            rauq(reading.logp, of_text["attention_previous"]) > 0
            and attention_score(of_text["attention_log_self"]) >= 0
        )
        assert focus(reading.entropy, np.ones(len(reading.ids), bool), of_text["attention_max"]) > 0


@pytest.mark.parametrize("kind", ["bart", "llama"])
def test_texts_of_no_and_one_token(toys, kind):
    model = toys(kind)
    none, one = attentions(model, [("w5 w6", []), ("w5 w6", [9])])
    assert [none[k].shape for k in NAMES] == [(2, 0), (0,), (0, 0)] and [one[k].shape for k in NAMES] == [
        (2, 1),
        (1,),
        (1, 1),
    ]
    assert (
        not one["attention_previous"].any()
        and not one["attention_max"].any()
        and one["attention_log_self"][0] < 0
    )
    assert none["prompt_log_self"] == pytest.approx(one["prompt_log_self"]) and attentions(model, []) == []


def test_the_prompt_of_an_encoder_decoder_is_its_start_token(toys):
    for kind in ("bart", "t5"):
        assert {arrays["prompt_log_self"] for arrays in attentions(toys(kind), PAIRS)} == {0}
    assert all(arrays["prompt_log_self"] < 0 for arrays in attentions(toys("llama"), PAIRS))


def test_weights_of_pairs_are_made_only_when_they_are_asked_for(toys, monkeypatch):
    model = toys("bart")
    whole = attentions(model, PAIRS)
    for keep in (("attention_max",), ("prompt_log_self", "attention_previous")):
        got = attentions(model, PAIRS, keep)
        assert all(
            tuple(found) == keep and all(np.array_equal(found[k], wanted[k]) for k in keep)
            for found, wanted in zip(got, whole, strict=True)
        )
    monkeypatch.setattr(
        at.AttentionSummary, "_update_largest", lambda *args: pytest.fail("pairs were looked at")
    )
    assert tuple(at.attention_statistics(model, PAIRS)[0]) == (
        "attention_previous",
        "attention_log_self",
        "prompt_log_self",
    )
    with pytest.raises(ValueError, match="lookback_ratio can be kept, not heads"):
        attentions(model, PAIRS, ("heads",))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("bart", "t5")])
def test_lookback_ratios_are_those_of_rows_that_write_a_token(toys, kind):
    model = toys(kind)
    got = attentions(model, PAIRS, ("lookback_ratio",))
    for (prefix, text), found in zip(PAIRS, got, strict=True):
        item = build_input(model, prefix, text)
        weights, start = maps(model, item.prompt, item.text)
        ratios = np.full((*weights.shape[:2], max(len(item.text) - 1, 0)), np.nan)
        for layer, head, i in np.ndindex(ratios.shape):
            row = weights[layer, head, start + i, : start + i + 1]
            context, new = row[:start].mean(), row[start:].mean()
            ratios[layer, head, i] = context / (context + new)
        want = ratios.mean(2).ravel() if ratios.size else np.full(weights.shape[0] * weights.shape[1], np.nan)
        np.testing.assert_allclose(found["lookback_ratio"], want, atol=1e-6)


def test_lookback_ratios_need_a_causal_model_and_change_nothing_else(toys):
    with pytest.raises(ValueError, match="attends to its source apart from its text: .* need a causal model"):
        attentions(toys("bart"), PAIRS, ("lookback_ratio",))
    model = toys("llama")
    more = attentions(model, PAIRS, (*NAMES, "prompt_log_self", "lookback_ratio"))
    for one, other in zip(attentions(model, PAIRS), more, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)


# The model is left as it was
def state(model):
    return model.model.config._attn_implementation, [
        len(layer._forward_hooks) for layer in decoder_layers(model)[1]
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["sdpa", "eager"])
def test_implementation_and_hooks_are_restored(toys, kind, how, monkeypatch):
    model = toy(kind)
    model.model.set_attn_implementation(how)
    before = state(model)
    assert before[0] == how
    attentions(model, PAIRS[:2])
    assert state(model) == before

    def fail(*args):
        raise KeyError("in between")

    monkeypatch.setattr(at.AttentionSummary, "add", fail)
    with pytest.raises(KeyError, match="in between"):
        attentions(model, PAIRS[:2])
    assert state(model) == before


def test_probabilities_after_the_pass_are_those_before(toys):
    model = toys("bart")
    before = score_tokens(model, PAIRS)
    attentions(model, PAIRS)
    assert all(np.array_equal(x.logp, y.logp) for x, y in zip(before, score_tokens(model, PAIRS)))


def test_only_the_writing_part_is_eager(toys, monkeypatch):
    model, seen = toy("bart"), []
    model.model.get_encoder().register_forward_hook(
        lambda *args: seen.append(model.model.config._attn_implementation)
    )
    model.model.get_decoder().register_forward_hook(
        lambda *args: seen.append(model.model.config._attn_implementation)
    )
    attentions(model, PAIRS[:1])
    assert seen == ["sdpa", "eager"]


def test_a_model_that_cannot_be_switched_is_an_error(toys, monkeypatch):
    model = toy("llama")
    monkeypatch.setattr(model.model, "set_attn_implementation", lambda how: None)
    with pytest.raises(ValueError, match="cannot be switched to eager"):
        attentions(model, PAIRS[:1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_is_gone_when_the_next_one_is_made(toys, kind):
    model, refs, alive = toys(kind, num_layers=4) if kind == "t5" else toys(kind), [], []
    add = at.AttentionSummary.add

    def see(layer, weights):
        alive.append(sum(reference() is not None for reference in refs))
        refs.append(weakref.ref(weights))
        add(at.AttentionSummary(1, 3, 0, True), layer, weights[0])

    with torch.inference_mode():
        at.attention_forward(model, [((5, 6, 7), (8, 9, 10))], see)
    assert len(alive) >= 2 and not any(alive)


def test_out_of_memory_halves_the_batch(toys, monkeypatch):
    model, whole, sizes = toys("llama"), at.attention_forward, []
    want = attentions(model, PAIRS[:8])

    def tight(model, rows, see):
        sizes.append(len(rows))
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(model, rows, see)

    monkeypatch.setattr(at, "attention_forward", tight)
    assert far(want, attentions(model, PAIRS[:8], batch_tokens=10**6)) < 1e-6 and sizes[0] == 8 and 2 in sizes


# What is refused
@pytest.fixture(scope="module")
def encoder():
    return wrap_model(
        BertModel(
            BertConfig(
                vocab_size=V, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
            )
        ),
        tokenizer("<s> $A </s>"),
        "toy encoder",
    )


def test_an_encoder_is_refused(encoder):
    with pytest.raises(ValueError, match="toy encoder is an encoder"):
        attentions(encoder, PAIRS[:1])
    with pytest.raises(ValueError, match="needs a causal model"):
        elicited_attention(encoder, PAIRS[:1], "w9")


def test_a_text_without_room_is_refused(toys):
    model = toys("bart")
    assert attentions(model, [("w5", [7] * 63)])[0]["attention_log_self"].shape == (63,)
    with pytest.raises(ValueError, match="64 positions, 1 too few"):
        attentions(model, [("w5", [7] * 64)])


def test_an_unknown_family_is_named(toys, monkeypatch):
    monkeypatch.setattr(at, "SELF_ATTENTION_NAMES", ("elsewhere",))
    with pytest.raises(ValueError, match="LlamaForCausalLM has no layer named elsewhere"):
        attentions(toys("llama"), PAIRS[:1])
    monkeypatch.setattr(at, "SELF_ATTENTION_NAMES", ("mlp",))
    with pytest.raises(ValueError, match="LlamaMLP gives no attention weights"):
        attentions(toys("llama"), PAIRS[:1])


# Asked about the text
ASK = "w9 w10 w11"


def asked(model, prefix, text, heads=None):
    item = build_input(model, prefix, text, Layout(window=61))
    weights, start = maps(model, item.prompt, item.text + (9, 10, 11))
    rows = [
        weights[layer, head, -1, start : start + len(item.text)]
        for layer in range(weights.shape[0])
        for head in range(weights.shape[1])
        if heads is None or (layer, head) in heads
    ]
    return np.mean(rows, axis=0)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("heads", [None, [(0, 1)], [(1, 0), (0, 1)], [(1, 0), (1, 1)]])
def test_a_question_looks_at_the_text(toys, kind, heads):
    model = toys(kind)
    got = elicited_attention(model, PAIRS, ASK, heads)
    for found, pair in zip(got, PAIRS, strict=True):
        np.testing.assert_allclose(found, asked(model, *pair, heads), atol=1e-6)
    for found, alone in zip(got, elicited_attention(model, PAIRS, ASK, heads, batch_tokens=1)):
        np.testing.assert_allclose(found, alone, atol=1e-6)
    assert all((found > 0).all() and found.sum() < 1 and found.dtype == np.float32 for found in got)
    assert all(csl(reading.logp, found) > 0 for reading, found in zip(score_tokens(model, PAIRS), got))


def test_the_question_is_never_cut(toys):
    model = toys("llama")
    long = ("w5 " * 80, "w7 w8")
    (got,) = elicited_attention(model, [long], ASK)
    np.testing.assert_allclose(got, asked(model, *long), atol=1e-6)
    assert len(build_input(model, *long, Layout(window=61)).prompt) == 59
    for layout in (Layout(), replace(Layout(), window=20)):
        assert len(elicited_attention(model, [long], ASK, layout=layout)[0]) == 2


@pytest.mark.parametrize(
    "options,says",
    [
        (dict(question_text=""), "0 tokens"),
        (dict(question_text="w5 " * 64), "leaves 0"),
        (dict(question_text=ASK, heads=[]), "got none"),
        (dict(question_text=ASK, heads=[(2, 0)]), r"layers below 2 and heads below 2; got \(2, 0\)"),
        (dict(question_text=ASK, heads=[(0, 2)]), r"got \(0, 2\)"),
    ],
)
def test_wrong_questions_are_answered(toys, options, says):
    with pytest.raises(ValueError, match=says):
        elicited_attention(toys("llama"), PAIRS[:1], **options)
    with pytest.raises(ValueError, match="needs a causal model"):
        elicited_attention(toys("bart"), PAIRS[:1], ASK)


def test_eager_nests(toys):
    model = toys("llama").model
    with attention_by(model, "eager"):
        with attention_by(model, "eager"):
            pass
        assert model.config._attn_implementation == "eager"
    assert model.config._attn_implementation == "sdpa"
