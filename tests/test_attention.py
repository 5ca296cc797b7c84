"""Attention maps: what a plain forward pass gives, whatever the batch, and a model that is left as it was."""

import copy
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_read import KINDS, PAIRS, V, tokenizer, toy
from transformers import BertConfig, BertModel

from uetrust.models.forward import Layout, lay, read
from uetrust.models.load import wrap
from uetrust.stats import attention as at
from uetrust.stats.attention import eager, elicited_attention, stack_of
from uetrust.ue.attention import attention_score, csl, focus, rauq

NAMES = ("attention_previous", "attention_log_self", "attention_max")


def attentions(m, pairs, keep=(*NAMES, "prompt_log_self"), **kw):
    return at.attentions(m, pairs, keep=keep, **kw)


@pytest.fixture(scope="module")
def toys():
    made = {}

    def get(kind, dtype=torch.float64, **k):
        return made.setdefault((kind, dtype, *k.items()), toy(kind, dtype, **k))

    return get


@torch.no_grad()
def maps(m, prompt, text):  # Of the whole model on one input, [layers,H,T,T], and where the text begins
    m = copy.deepcopy(m.model)
    m.set_attn_implementation("eager")
    if not m.config.is_encoder_decoder:
        return torch.cat(m(torch.tensor([prompt + text]), output_attentions=True).attentions).numpy(), len(
            prompt
        )
    out = m(
        input_ids=torch.tensor([prompt]),
        decoder_input_ids=torch.tensor([(m.config.decoder_start_token_id, *text)]),
        output_attentions=True,
    )
    return torch.cat(out.decoder_attentions).numpy(), 1


def by_definition(m, prefix, text):  # One token and one head at a time
    it = lay(m, prefix, text)
    w, start = maps(m, it.prompt, it.text)
    layers, heads, L = *w.shape[:2], len(it.text)
    previous, most = np.zeros((layers, L)), np.zeros((L, L))
    for l in range(layers):
        each = [
            [w[l, h, start + t - 1, start + t - 1] for t in range(1, L)] for h in range(heads)
        ]  # while t is written the network stands at t-1
        previous[l, 1:] = max(each, key=lambda x: np.mean(x) if x else 0)
    for t in range(1, L):
        for i in range(t):
            most[t, i] = max(w[l, h, start + t - 1, start + i] for l in range(layers) for h in range(heads))
    own = np.array(
        [np.mean([np.log(w[layers // 2, h, k, k]) for h in range(heads)]) for k in range(start + L)]
    )
    return dict(
        attention_previous=previous,
        attention_log_self=own[start:],
        attention_max=most,
        prompt_log_self=own[:start].sum(),
    )


def far(a, b):
    return max(
        (np.abs(np.asarray(x[k]) - y[k]) / np.maximum(1, np.abs(y[k]))).max()
        for x, y in zip(a, b, strict=True)
        for k in (*NAMES, "prompt_log_self")
        if np.size(x[k])
    )


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_what_a_plain_pass_gives_one_text_at_a_time(toys, kind):
    m = toys(kind)
    got, want = attentions(m, PAIRS), [by_definition(m, *p) for p in PAIRS]
    assert far(want, got) < 2e-6
    assert all(
        set(g) == set(w)
        and all(g[k].dtype == np.float32 and g[k].shape == w[k].shape for k in NAMES)
        and isinstance(g["prompt_log_self"], float)
        for g, w in zip(got, want)
    )


@pytest.mark.parametrize("layers", [1, 3, 4])
def test_the_middle_layer_of_any_depth(toys, layers):
    m = toys("llama", num_hidden_layers=layers)
    assert far([by_definition(m, *p) for p in PAIRS[:4]], attentions(m, PAIRS[:4])) < 2e-6


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_order_change_nothing(toys, kind):
    m = toys(kind)
    got = attentions(m, PAIRS)
    for n in (1, 40, 10**6):
        assert far(got, attentions(m, PAIRS, batch_tokens=n)) < 1e-6
    mix = np.random.default_rng(0).permutation(len(PAIRS))
    assert far([got[i] for i in mix], attentions(m, [PAIRS[i] for i in mix])) < 1e-6
    assert far(got, attentions(toys(kind, torch.float32), PAIRS)) < 2e-3


def test_half_precision_gives_finite_arrays(toys):
    got = attentions(toys("llama", torch.bfloat16), PAIRS)
    assert all(g[k].dtype == np.float32 and np.isfinite(g[k]).all() for g in got for k in NAMES)


@pytest.mark.parametrize("kind", KINDS)
def test_it_fits_what_read_gives(toys, kind):
    "As many tokens as log-probabilities, for strings and for ids; scores can be computed."
    m = toys(kind)
    ids = [(list(lay(m, *p).prompt), list(lay(m, *p).text)) for p in PAIRS]
    for r, a, b in zip(read(m, PAIRS), attentions(m, PAIRS), attentions(m, ids)):
        assert far([a], [b]) < 1e-6 and a["attention_previous"].shape[1] == len(r.ids)
        assert rauq(r.logp, a["attention_previous"]) > 0 and attention_score(a["attention_log_self"]) >= 0
        assert focus(r.entropy, np.ones(len(r.ids), bool), a["attention_max"]) > 0


@pytest.mark.parametrize("kind", ["bart", "llama"])
def test_texts_of_no_and_one_token(toys, kind):
    m = toys(kind)
    none, one = attentions(m, [("w5 w6", []), ("w5 w6", [9])])
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
    assert none["prompt_log_self"] == pytest.approx(one["prompt_log_self"]) and attentions(m, []) == []


def test_the_prompt_of_an_encoder_decoder_is_its_start_token(toys):
    for kind in ("bart", "t5"):
        assert {a["prompt_log_self"] for a in attentions(toys(kind), PAIRS)} == {0}
    assert all(a["prompt_log_self"] < 0 for a in attentions(toys("llama"), PAIRS))


def test_weights_of_pairs_are_made_only_when_they_are_asked_for(toys, monkeypatch):
    m = toys("bart")
    whole = attentions(m, PAIRS)
    for keep in (("attention_max",), ("prompt_log_self", "attention_previous")):
        got = attentions(m, PAIRS, keep)
        assert all(
            tuple(g) == keep and all(np.array_equal(g[k], w[k]) for k in keep)
            for g, w in zip(got, whole, strict=True)
        )
    monkeypatch.setattr(at.Kept, "_update_largest", lambda *a: pytest.fail("pairs were looked at"))
    assert tuple(at.attentions(m, PAIRS)[0]) == (
        "attention_previous",
        "attention_log_self",
        "prompt_log_self",
    )
    with pytest.raises(ValueError, match="attention_max can be kept, not heads"):
        attentions(m, PAIRS, ("heads",))


# The model is left as it was
def state(m):
    return m.model.config._attn_implementation, [len(l._forward_hooks) for l in stack_of(m)[1]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["sdpa", "eager"])
def test_implementation_and_hooks_are_restored(toys, kind, how, monkeypatch):
    m = toy(kind)
    m.model.set_attn_implementation(how)
    before = state(m)
    assert before[0] == how
    attentions(m, PAIRS[:2])
    assert state(m) == before

    def fail(*a):
        raise KeyError("in between")

    monkeypatch.setattr(at.Kept, "add", fail)
    with pytest.raises(KeyError, match="in between"):
        attentions(m, PAIRS[:2])
    assert state(m) == before


def test_probabilities_after_the_pass_are_those_before(toys):
    m = toys("bart")
    a = read(m, PAIRS)
    attentions(m, PAIRS)
    assert all(np.array_equal(x.logp, y.logp) for x, y in zip(a, read(m, PAIRS)))


def test_only_the_writing_part_is_eager(toys, monkeypatch):
    m, seen = toy("bart"), []
    m.model.get_encoder().register_forward_hook(lambda *a: seen.append(m.model.config._attn_implementation))
    m.model.get_decoder().register_forward_hook(lambda *a: seen.append(m.model.config._attn_implementation))
    attentions(m, PAIRS[:1])
    assert seen == ["sdpa", "eager"]


def test_a_model_that_cannot_be_switched_is_an_error(toys, monkeypatch):
    m = toy("llama")
    monkeypatch.setattr(m.model, "set_attn_implementation", lambda how: None)
    with pytest.raises(ValueError, match="cannot be switched to eager"):
        attentions(m, PAIRS[:1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_is_gone_when_the_next_one_is_made(toys, kind):
    m, refs, alive = toys(kind, num_layers=4) if kind == "t5" else toys(kind), [], []
    add = at.Kept.add

    def see(l, w):
        alive.append(sum(r() is not None for r in refs))
        refs.append(weakref.ref(w))
        add(at.Kept(1, 3, 0, True), l, w[0])

    with torch.inference_mode():
        at.forward(m, [((5, 6, 7), (8, 9, 10))], see)
    assert len(alive) >= 2 and not any(alive)


def test_out_of_memory_halves_the_batch(toys, monkeypatch):
    m, whole, sizes = toys("llama"), at.forward, []
    want = attentions(m, PAIRS[:8])

    def tight(m, rows, see):
        sizes.append(len(rows))
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(m, rows, see)

    monkeypatch.setattr(at, "forward", tight)
    assert far(want, attentions(m, PAIRS[:8], batch_tokens=10**6)) < 1e-6 and sizes[0] == 8 and 2 in sizes


# What is refused
@pytest.fixture(scope="module")
def encoder():
    return wrap(
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
    m = toys("bart")
    assert attentions(m, [("w5", [7] * 63)])[0]["attention_log_self"].shape == (63,)
    with pytest.raises(ValueError, match="64 positions, 1 too few"):
        attentions(m, [("w5", [7] * 64)])


def test_an_unknown_family_is_named(toys, monkeypatch):
    monkeypatch.setattr(at, "OWN", ("elsewhere",))
    with pytest.raises(ValueError, match="LlamaForCausalLM has no layer named elsewhere"):
        attentions(toys("llama"), PAIRS[:1])
    monkeypatch.setattr(at, "OWN", ("mlp",))
    with pytest.raises(ValueError, match="LlamaMLP gives no attention weights"):
        attentions(toys("llama"), PAIRS[:1])


# Asked about the text
ASK = "w9 w10 w11"


def asked(m, prefix, text, heads=None):
    it = lay(m, prefix, text, Layout(window=61))
    w, start = maps(m, it.prompt, it.text + (9, 10, 11))
    rows = [
        w[l, h, -1, start : start + len(it.text)]
        for l in range(w.shape[0])
        for h in range(w.shape[1])
        if heads is None or (l, h) in heads
    ]
    return np.mean(rows, axis=0)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("heads", [None, [(0, 1)], [(1, 0), (0, 1)], [(1, 0), (1, 1)]])
def test_a_question_looks_at_the_text(toys, kind, heads):
    m = toys(kind)
    got = elicited_attention(m, PAIRS, ASK, heads)
    for g, p in zip(got, PAIRS, strict=True):
        np.testing.assert_allclose(g, asked(m, *p, heads), atol=1e-6)
    for g, h in zip(got, elicited_attention(m, PAIRS, ASK, heads, batch_tokens=1)):
        np.testing.assert_allclose(g, h, atol=1e-6)
    assert all((g > 0).all() and g.sum() < 1 and g.dtype == np.float32 for g in got)
    assert all(csl(r.logp, g) > 0 for r, g in zip(read(m, PAIRS), got))


def test_the_question_is_never_cut(toys):
    m = toys("llama")
    long = ("w5 " * 80, "w7 w8")
    (got,) = elicited_attention(m, [long], ASK)
    np.testing.assert_allclose(got, asked(m, *long), atol=1e-6)
    assert len(lay(m, *long, Layout(window=61)).prompt) == 59
    for layout in (Layout(), replace(Layout(), window=20)):
        assert len(elicited_attention(m, [long], ASK, layout=layout)[0]) == 2


@pytest.mark.parametrize(
    "kw,says",
    [
        (dict(ask=""), "0 tokens"),
        (dict(ask="w5 " * 64), "leaves 0"),
        (dict(ask=ASK, heads=[]), "got none"),
        (dict(ask=ASK, heads=[(2, 0)]), r"layers below 2 and heads below 2; got \(2, 0\)"),
        (dict(ask=ASK, heads=[(0, 2)]), r"got \(0, 2\)"),
    ],
)
def test_wrong_questions_are_answered(toys, kw, says):
    with pytest.raises(ValueError, match=says):
        elicited_attention(toys("llama"), PAIRS[:1], **kw)
    with pytest.raises(ValueError, match="needs a causal model"):
        elicited_attention(toys("bart"), PAIRS[:1], ASK)


def test_eager_nests(toys):
    m = toys("llama").model
    with eager(m):
        with eager(m):
            pass
        assert m.config._attn_implementation == "eager"
    assert m.config._attn_implementation == "sdpa"
