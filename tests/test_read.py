"""The reading pass: recorded log-probabilities of peers, and what must not change a number: batches, order, sharing, chunks."""

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BartModel,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from uetrust.core.settings import oracles, root
from uetrust.data.bulletins import bulletins
from uetrust.models import forward as reading
from uetrust.models.encode import embed, nli
from uetrust.models.forward import FFLM, WIDE, Layout, Member, fflm_passes, lay, read, token_stats
from uetrust.models.load import batches, halving, load, pad, wrap

# Toy models: 300 words, random weights, every family whose details differ
V = 300


def tokenizer(around):
    t = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(
            models.WordLevel({"<s>": 0, "</s>": 1, "<pad>": 2, **{f"w{i}": i for i in range(3, V)}}, "<pad>")
        ),
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        model_max_length=64,
    )
    t.backend_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if around:
        t.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=around, special_tokens=[("<s>", 0), ("</s>", 1)]
        )
    return t


IDS = dict(vocab_size=V, bos_token_id=0, eos_token_id=1, pad_token_id=2)
MAKE = dict(
    bart=lambda **k: BartForConditionalGeneration(
        BartConfig(
            **IDS,
            **(
                dict(
                    d_model=16,
                    encoder_layers=2,
                    decoder_layers=2,
                    encoder_attention_heads=2,
                    decoder_attention_heads=2,
                    encoder_ffn_dim=32,
                    decoder_ffn_dim=32,
                    max_position_embeddings=64,
                    decoder_start_token_id=1,
                    forced_eos_token_id=1,
                    init_std=0.4,
                    dropout=0.1,
                )
                | k
            ),
        )
    ),
    t5=lambda **k: T5ForConditionalGeneration(
        T5Config(
            **IDS,
            **(
                dict(
                    d_model=16,
                    d_kv=8,
                    d_ff=32,
                    num_layers=2,
                    num_heads=2,
                    decoder_start_token_id=2,
                    dropout_rate=0.1,
                )
                | k
            ),
        )
    ),
    gpt2=lambda **k: GPT2LMHeadModel(
        GPT2Config(**IDS, **(dict(n_embd=16, n_layer=2, n_head=2, n_positions=64, initializer_range=0.4) | k))
    ),
    llama=lambda **k: LlamaForCausalLM(
        LlamaConfig(
            **IDS,
            **(
                dict(
                    hidden_size=16,
                    intermediate_size=32,
                    num_hidden_layers=2,
                    num_attention_heads=2,
                    max_position_embeddings=64,
                    initializer_range=0.4,
                )
                | k
            ),
        )
    ),
)
KINDS = list(MAKE)


def toy(kind, dtype=torch.float64, **k):
    torch.manual_seed(1)
    m = MAKE[kind](**k).to(dtype)
    if kind == "bart":
        m.final_logits_bias.copy_(torch.randn(1, V, dtype=dtype))
    return wrap(m, tokenizer({"bart": "<s> $A </s>", "t5": "$A </s>"}.get(kind)), f"toy {kind}")


@pytest.fixture(scope="module")
def toys():
    made = {}

    def get(kind, dtype=torch.float64):
        return made.setdefault((kind, dtype), toy(kind, dtype))

    return get


def sentence(g, n):
    return " ".join(f"w{i}" for i in g.integers(3, V, n))


def some_pairs(seed=0):
    g = np.random.default_rng(seed)
    sources = [sentence(g, n) for n in (5, 31, 12, 12, 1, 24)]
    return [(s, sentence(g, n)) for s in sources for n in (1, 9, 4, 17)]


PAIRS = some_pairs()


def off(a, b, k="logp"):
    return max(np.abs(getattr(x, k) - getattr(y, k)).max() for x, y in zip(a, b))


# A slow reading from the definition: the whole model on one input at a time
def naive(m, prefix, text):
    it = lay(m, prefix, text)
    with torch.no_grad():
        if m.kind == "causal":
            z = m.model(torch.tensor([it.prompt + it.text])).logits[0, len(it.prompt) - 1 : -1]
        else:
            z = m.model(
                input_ids=torch.tensor([it.prompt]),
                decoder_input_ids=torch.tensor([(m.model.config.decoder_start_token_id, *it.text[:-1])]),
            ).logits[0]
    lp = z.double().log_softmax(-1)
    return lp, torch.tensor(it.text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reading_is_what_the_whole_model_says(toys, kind):
    m = toys(kind)
    got = read(m, PAIRS, topk=7)
    for r, (s, t) in zip(got, PAIRS):
        lp, y = naive(m, s, t)
        assert r.ids.tolist() == y.tolist()
        np.testing.assert_allclose(r.logp, lp.gather(1, y[:, None])[:, 0], atol=2e-6)
        np.testing.assert_allclose(r.entropy, -(lp.exp() * lp).sum(1), atol=2e-6)
        top = lp.topk(7)
        assert r.top_ids.tolist() == top.indices.tolist()
        np.testing.assert_allclose(r.top_logp, top.values, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_batches_order_sharing_and_chunks_change_nothing(toys, kind, dtype):
    m, tol = toys(kind, dtype), 2e-6
    got = read(m, PAIRS, hidden=reading.HIDDEN[m.kind])
    one_by_one = [read(m, [p])[0] for p in PAIRS]
    assert max(off(got, one_by_one), off(got, one_by_one, "entropy")) <= tol
    for kw in (
        dict(share=False),
        dict(batch_tokens=1),
        dict(batch_tokens=60),
        dict(chunk=1),
        dict(chunk=7),
        dict(chunk=10**6),
    ):
        again = read(m, PAIRS, hidden=reading.HIDDEN[m.kind], **kw)
        assert off(got, again) <= tol, kw
        assert (
            max(np.abs(a.hidden[k] - b.hidden[k]).max() for a, b in zip(got, again) for k in a.hidden) <= tol
        )
    mix = np.random.default_rng(2).permutation(len(PAIRS))
    again = read(m, [PAIRS[i] for i in mix])
    assert all(np.array_equal(again[k].logp, got[i].logp) for k, i in enumerate(mix))


@pytest.mark.parametrize("name", ["bart", "t5", "llama", "unieval", "nli", "encoder"])
def test_what_stands_beside_a_text_does_not_round_its_sums(name):
    "Networks that ship amplify a last digit to 4e-5 where rectangles have the width of their longest row; sums of more than 192 terms are still cut in another place on some processors"
    m, b = load(root() / "data" / "models" / f"tiny-{name}"), bulletins("test", 8)

    def of(pairs, **kw):
        if name == "nli":
            return nli(m, pairs, **kw)[0].ravel()
        if name == "encoder":
            return embed(m, [s for s, _ in pairs], **kw)[0].ravel()
        return np.concatenate([r.logp for r in read(m, pairs, **kw)])

    for pairs, tol in (
        ([*zip(b["source"], b["reference"])], 2e-6),
        ([*zip(b["source"], b["reference"]), *zip(b["reference"], b["source"])], 2e-5),
    ):
        assert np.abs(of(pairs) - of(pairs, batch_tokens=1)).max() <= tol


def test_batches_do_not_depend_on_the_order_of_the_pairs(toys, monkeypatch):
    calls, whole = [], reading._text_states

    def note(m, state, rows, texts):
        calls.append((tuple(rows), tuple(texts)))
        return whole(m, state, rows, texts)

    monkeypatch.setattr(reading, "_text_states", note)

    def batched(pairs):
        calls.clear()
        read(toys("bart"), pairs, batch_tokens=200)
        return list(calls)

    g, want = np.random.default_rng(2), batched(PAIRS)
    assert len(want) > 2 and all(
        batched([PAIRS[i] for i in g.permutation(len(PAIRS))]) == want for _ in range(5)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_prefix_is_computed_once(toys, kind):
    m = toys(kind)
    lengths = [len(lay(m, s, "").prompt) for s in dict(PAIRS)]
    got, apart = read(m, PAIRS + PAIRS), read(m, PAIRS, share=False)
    assert (got.prefix_tokens, apart.prefix_tokens) == (sum(lengths), 4 * sum(lengths))
    assert (
        got.text_tokens == apart.text_tokens == sum(len(r.ids) for r in apart)
    )  # a repeated pair is not read again
    assert read(m, PAIRS, batch_tokens=30).prefix_tokens == sum(
        lengths
    )  # nor is a prefix whose texts need several batches


def test_the_vocabulary_meets_a_chunk_at_a_time(toys):
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            seen.extend(
                t.numel() // V
                for t in (out if isinstance(out, tuple | list) else [out])
                if isinstance(t, torch.Tensor) and t.ndim == 2 and t.shape[-1] == V
            )
            return out

    def widest(m, **kw):
        seen.clear()
        with Watch():
            read(m, PAIRS, **kw)
        return max(seen)

    for kind in KINDS:
        m = toys(kind)
        n = read(m, PAIRS).text_tokens
        assert n > 170 and [widest(m, chunk=c) for c in (1, 7, 50)] == [1, 7, 50]
    assert widest(toys("bart"), chunk=7, members=[1, 2]) == 7
    assert widest(toys("bart"), chunk=7, logits="processed", generation=dict(no_repeat_ngram_size=3)) == 7


def test_a_uniform_model_has_entropy_log_v():
    m = toy("llama")
    m.model.lm_head.weight.data.zero_()
    r = read(m, PAIRS[:4])
    assert all(
        np.abs(x.entropy - np.log(V)).max() < 1e-6 and np.abs(x.logp + np.log(V)).max() < 1e-6 for x in r
    )


def test_impossible_tokens_have_no_entropy():
    lp = torch.tensor([[0.0, 0, -np.inf, -np.inf], [0, -np.inf, -np.inf, -np.inf]]).log_softmax(1)
    s = token_stats(lp, torch.tensor([2, 0]))
    assert s["logp"].tolist() == [-np.inf, 0] and s["entropy"].tolist() == pytest.approx([np.log(2), 0])


# Layouts and cuts
def test_the_closing_of_a_prompt_is_never_cut(toys):
    text, sep = sentence(np.random.default_rng(0), 9), " w7 w8 "
    long = sentence(np.random.default_rng(1), 200)
    for kind, joined in (("llama", True), ("llama", False), ("gpt2", True), ("bart", False), ("t5", False)):
        m = toys(kind)
        it = lay(m, long, text, Layout(sep=sep, joined=joined))
        ids = m.tokenizer(text, add_special_tokens=False).input_ids
        closing = it.prompt[-2:] if m.kind == "causal" else it.prompt[-3:-1]
        room = 64 - (1 + 2 + 9) if m.kind == "causal" else 64 - (2 + 2 if kind == "bart" else 2 + 1)
        assert (
            closing == (7, 8)
            and (it.cut, it.text_cut) == (200 - room, 0)
            and [i for i in it.text if i > 2] == ids
        )
        assert m.kind == "causal" or it.prompt[-1] == 1  # the encoder's end token stays
        assert np.isfinite(read(m, [(long, text)], Layout(sep=sep, joined=joined))[0].logp).all()


def test_a_text_over_the_window_is_cut_and_counted(toys):
    long = sentence(np.random.default_rng(1), 100)
    a, b = read(toys("llama"), [("w5 w6", long), ("w5 w6", "w9")])
    assert (a.cut, a.text_cut, len(a.logp), b.text_cut) == (2, 37, 63, 0)
    a = read(toys("llama"), [("w5 w6", long)], Layout(cut="text"))[0]
    assert (a.cut, a.text_cut, len(a.logp)) == (0, 39, 61)
    a = read(toys("bart"), [("w5", long)])[0]
    assert (a.cut, a.text_cut, a.ids[-1], len(a.logp)) == (0, 38, 1, 64)


def test_ids_are_taken_as_they_are(toys):
    for kind in ("bart", "llama"):
        m = toys(kind)
        it = lay(m, *PAIRS[1])
        a, b = read(m, [PAIRS[1], (list(it.prompt), list(it.text))])
        assert np.array_equal(a.logp, b.logp) and np.array_equal(a.ids, b.ids)
    assert lay(toys("llama"), [5], [6]).prompt == (5,) and lay(toys("llama"), "w5", [6]).prompt == (
        0,
        5,
    )  # no start token of ours before given ids
    assert lay(toys("bart"), [0, *range(3, 103), 1], "w3").prompt == (0, *range(3, 65), 1)


def test_special_tokens_are_marked_or_left_out(toys):
    m = toys("bart")
    a, b = read(m, [PAIRS[1]])[0], read(m, [PAIRS[1]], Layout(special=False))[0]
    assert (
        a.special.tolist() == [True] + [False] * 9 + [True]
        and a.ids[1:-1].tolist() == b.ids.tolist()
        and not b.special.any()
    )
    g = toys("gpt2")
    assert read(g, [PAIRS[1]], Layout(eos=True))[0].ids[-1] == 1 and len(read(g, [PAIRS[1]])[0].ids) == 9
    assert lay(g, "<s> w5", "w6").prompt == lay(g, "w5", "w6").prompt == (0, 5)


def test_an_empty_text_has_an_empty_reading(toys):
    r = read(toys("llama"), [("w5", ""), ("w5", "w6")], topk=3)
    assert [len(x.logp) for x in r] == [0, 1] and r[0].top_ids.shape == (0, 3)
    assert read(toys("llama"), []).prefix_tokens == 0


# Hidden states
def test_hidden_states_are_those_of_the_whole_model(toys):
    s, t = PAIRS[5]
    for kind in ("bart", "llama"):
        m = toys(kind)
        got = read(m, PAIRS, hidden=reading.HIDDEN[m.kind])[5].hidden
        it = lay(m, s, t)
        with torch.no_grad():
            if kind == "llama":
                h = m.model.model(torch.tensor([it.prompt + it.text[:-1]])).last_hidden_state[
                    0
                ]  # the last token has no state of its own
                want = dict(decoder_mean=h.mean(0), decoder_last=h[-1])
            else:
                out = m.model.model(
                    input_ids=torch.tensor([it.prompt]), decoder_input_ids=torch.tensor([(1, *it.text[:-1])])
                )
                e, h = out.encoder_last_hidden_state[0], out.last_hidden_state[0]
                want = dict(
                    encoder_mean=e.mean(0), encoder_last=e[-1], decoder_mean=h.mean(0), decoder_last=h[-1]
                )
        assert set(got) == set(want) and all(v.dtype == np.float32 for v in got.values())
        for k in want:
            np.testing.assert_allclose(got[k], want[k], atol=2e-6)


# Processed logits
RULES = [
    dict(),
    dict(no_repeat_ngram_size=2),
    dict(min_new_tokens=6),
    dict(forced_bos_token_id=0, forced_eos_token_id=1, no_repeat_ngram_size=3, min_length=4),
    dict(suppress_tokens=[5, 6], begin_suppress_tokens=[9]),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rules", RULES, ids=lambda r: "+".join(r) or "none")
def test_processed_logits_are_those_of_generate(kind, rules):
    "`generate` records what its processors made of the logits; reading its output must give the same numbers."
    m = toy(kind, **(dict(forced_eos_token_id=None) if kind == "bart" else {}))
    it = [lay(m, s, "").prompt for s in dict(PAIRS)]
    for p in it:
        out = m.model.generate(
            torch.tensor([p]),
            attention_mask=torch.ones(1, len(p), dtype=int),
            do_sample=False,
            max_new_tokens=9,
            output_scores=True,
            return_dict_in_generate=True,
            **rules,
        )
        ids = out.sequences[0, (1 if m.kind == "seq2seq" else len(p)) :].tolist()
        want = torch.cat(out.scores).double().log_softmax(-1)
        r = read(m, [(list(p), ids)], logits="processed", generation=dict(max_new_tokens=9, **rules))[0]
        assert len(r.logp) == len(want)
        np.testing.assert_allclose(r.logp, want[range(len(ids)), ids], atol=2e-6)
        np.testing.assert_allclose(r.entropy, torch.special.entr(want.exp()).sum(1), atol=2e-6)


def test_raw_logits_ignore_the_generation_config():
    m = toy("bart")
    before = read(m, PAIRS[:4])
    m.model.generation_config.no_repeat_ngram_size, m.model.generation_config.forced_bos_token_id = 1, 0
    assert off(before, read(m, PAIRS[:4])) == 0
    assert read(m, PAIRS[:4], logits="processed")[1].logp[0] == 0  # <s> is forced


# Members
DROPS = ["bart", "t5", "gpt2"]


@pytest.mark.parametrize("kind", DROPS)
def test_a_member_is_one_network(toys, kind):
    "Its seed decides; batch, order, length and sharing do not."
    m = toys(kind)
    a = read(m, PAIRS, members=[1, 2, 3])
    logp = lambda rs: [r.members["logp"] for r in rs]
    for b in (
        read(m, PAIRS, members=[1, 2, 3], share=False),
        [read(m, [p], members=[1, 2, 3])[0] for p in PAIRS],
        read(m, PAIRS[::-1], members=[1, 2, 3], batch_tokens=40)[::-1],
    ):
        assert max(np.abs(x - y).max() for x, y in zip(logp(a), logp(b))) <= 2e-6
    b = read(m, PAIRS, members=[3, 9])
    assert max(np.abs(x[2] - y[0]).max() for x, y in zip(logp(a), logp(b))) <= 2e-6
    assert min(np.abs(x[2] - y[1]).max() for x, y in zip(logp(a), logp(b))) > 1e-3
    assert min(np.abs(x[0] - x[1]).max() for x in logp(a)) > 1e-3
    assert a.prefix_tokens == 3 * read(m, PAIRS).prefix_tokens  # each member encodes for itself
    assert not m.model.training and off(read(m, PAIRS), read(m, PAIRS)) == 0


def members_by_hand(m, s, t, seeds, rate=None):
    "Log-probability rows of each member, [M, L, V], from whole forward passes under its masks"
    rows, it = [], lay(m, s, t)
    for seed in seeds:
        member = Member(seed, rate)
        with torch.no_grad(), member:
            if m.kind == "causal":
                member.begin(1)
                z = m.model(torch.tensor([it.prompt + it.text])).logits[0, len(it.prompt) - 1 : -1]
            else:
                member.begin(0)
                e = m.model.get_encoder()(input_ids=torch.tensor([it.prompt]))
                member.begin(1)
                z = m.model(
                    encoder_outputs=e,
                    decoder_input_ids=torch.tensor([(m.model.config.decoder_start_token_id, *it.text[:-1])]),
                ).logits[0]
        rows.append(z.float().double().log_softmax(-1).numpy())
    return np.array(rows), np.array(it.text)


@pytest.mark.parametrize("kind", DROPS)
@pytest.mark.parametrize("chunk", [3, 512])
def test_members_are_reduced_to_the_statistics_of_the_ensemble(toys, kind, chunk):
    m, seeds = toys(kind), [1, 2, 3, 4]
    for (s, t), r in zip(PAIRS[:6], read(m, PAIRS[:6], members=seeds, chunk=chunk, topk=2)):
        lp, y = members_by_hand(m, s, t, seeds)
        p, own, H = np.exp(lp), lp[:, range(len(y)), y], lambda q: -(q * np.log(q)).sum(-1)
        got = r.members
        np.testing.assert_allclose(got["logp"], own, atol=2e-6)
        np.testing.assert_allclose(got["entropy"], H(p), atol=2e-6)
        for k in ("pe", "ep"):
            w = (
                np.full((4, len(y)), 1 / 4)
                if k == "pe"
                else np.array(
                    [
                        [np.exp(own[a, :i].sum()) / np.exp(own[:, :i].sum(1)).sum() for i in range(len(y))]
                        for a in range(4)
                    ]
                )
            )
            q = (w[..., None] * p).sum(0)
            tu, du, ce = H(q), H(p).mean(0), -(q * lp.mean(0)).sum(-1)
            for n, v in dict(tu=tu, mi=tu - du, epkl=ce - du, rmi=ce - tu).items():
                np.testing.assert_allclose(got[f"{k}_{n}"], v, atol=4e-6, err_msg=f"{k}_{n}")
            assert (got[f"{k}_rmi"] > -1e-12).all() and np.allclose(got["du"], du, atol=2e-6)
            if k == "pe":
                np.testing.assert_allclose(r.logp, np.log(q[range(len(y)), y]), atol=2e-6)
                np.testing.assert_allclose(r.entropy, tu, atol=2e-6)
        assert (got["pe_mi"] > 0).all() and r.top_ids.shape == (len(y), 2)


def test_one_member_has_nothing_to_disagree_about(toys):
    "The release reads a single member, so its mutual information is rounding noise; here it is zero."
    r = read(toys("bart"), PAIRS, members=[2])
    assert (
        max(
            np.abs(x.members[f"{k}_{n}"]).max()
            for x in r
            for k in ("pe", "ep")
            for n in ("mi", "epkl", "rmi")
        )
        < 1e-12
    )


def test_members_may_give_processed_scores_beside_raw_ones(toys):
    kw = dict(logits="processed", generation=dict(forced_bos_token_id=0, max_new_tokens=50))
    a, b = read(toys("bart"), PAIRS[:3], members=[1, 2], **kw), read(toys("bart"), PAIRS[:3], members=[1, 2])
    for x, y in zip(a, b):
        assert (
            np.array_equal(x.members["logp"], y.members["logp"])
            and (x.members["logp_processed"][:, 0] == 0).all()
        )
        np.testing.assert_allclose(x.members["logp_processed"][:, 1:], x.members["logp"][:, 1:], atol=2e-6)


def test_dropout_masks_features_at_the_rate(toys):
    x = torch.ones(2, 3, 20_000)
    with Member(5, 0.3) as d:
        d.begin(0)
        a = torch.nn.functional.dropout(x, 0.1, False)
        attention = torch.nn.functional.dropout(torch.ones(1, 1, 4, 4), 0.1, False)
        d.begin(1)
        decoder = torch.nn.functional.dropout(x, 0.1, False)
    assert not torch.equal(a, decoder)  # an encoder's first layer is not a decoder's
    assert (
        a.unique().tolist() == pytest.approx([0, 1 / 0.7])
        and abs((a == 0).double().mean() - 0.3) < 0.01
        and (a == a[0, 0]).all()
        and (attention == 1).all()
    )


def test_members_of_a_model_without_dropout_are_refused(toys):
    with pytest.raises(ValueError, match="no dropout layer with a rate above 0"):
        read(toys("llama"), PAIRS[:1], members=[1])


# Memory, batches, masks
def test_out_of_memory_halves_the_batch_and_goes_on(toys, monkeypatch):
    m, whole, tried = toys("bart"), reading._prefix_state, []

    def small(m, prompts):
        tried.append(len(prompts))
        if len(prompts) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(m, prompts)

    want = read(m, PAIRS)
    monkeypatch.setattr(reading, "_prefix_state", small)
    got = read(m, PAIRS)
    assert off(want, got) <= 2e-6 and max(tried) == 6 and got.prefix_tokens >= want.prefix_tokens
    monkeypatch.setattr(reading, "_prefix_state", whole)
    half, most = reading._text_states, []

    def few(m, state, rows, texts):
        if len(texts) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        most.append(len(texts))
        return half(m, state, rows, texts)

    monkeypatch.setattr(reading, "_text_states", few)
    assert (
        off(want[4:8], read(m, PAIRS[4:8])) <= 2e-6 and max(most) == 2
    )  # texts of one prefix are halved too
    with pytest.raises(RuntimeError, match="shapes"):
        halving(lambda x: torch.ones(2, 3) @ torch.ones(2, 3), [1, 2])  # other errors are not swallowed
    with pytest.raises(MemoryError, match="single item"):
        halving(lambda x: torch.empty(2**50), [1, 2])


def test_batches_cover_everything_within_the_budget():
    g = np.random.default_rng(0)
    for _ in range(50):
        n, rows = g.integers(1, 40, 30).tolist(), g.integers(1, 5, 30).tolist()
        out = batches(n, 100, rows)
        assert sorted(i for b in out for i in b) == list(range(30))
        assert all(len(b) == 1 or max(n[i] for i in b) * sum(rows[i] for i in b) <= 100 for b in out)
        assert all(n[a[-1]] >= n[b[0]] for a, b in zip(out, out[1:]))
    assert batches([], 10) == []


def test_masks_have_the_shape_of_the_ids():
    for left in (False, True):
        ids, mask = pad([[4, 5], [6]], left=left)
        assert ids.shape == mask.shape == (2, 2) and mask.dtype == torch.long and (ids * mask == ids).all()


# Loading
def saved(path, model, tok=None, **kw):
    model.save_pretrained(path, **kw)
    if tok:
        tok.save_pretrained(path)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_reads_the_same(kind, tmp_path):
    m = toy(kind, torch.float32)
    again = load(saved(tmp_path, m.model, m.tokenizer), device="cpu")
    assert (again.kind, again.dtype, again.id) == (
        m.kind,
        torch.float32,
        str(tmp_path),
    ) and not again.model.training
    assert off(read(m, PAIRS), read(again, PAIRS)) == 0
    assert load(tmp_path, device="cpu", dtype="bfloat16").dtype == torch.bfloat16


def test_a_half_precision_model_reads_finite_numbers(toys):
    a, b = read(toys("llama", torch.float32), PAIRS), read(toys("llama", torch.bfloat16), PAIRS)
    assert all(np.isfinite(r.logp).all() for r in b) and 0.001 < off(a, b) < 2


def test_loading_refuses(tmp_path):
    m, enc = (
        toy("bart", torch.float32),
        BertModel(
            BertConfig(
                vocab_size=V, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
            )
        ),
    )
    with pytest.raises(FileNotFoundError, match="no model folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no config.json"):
        load(tmp_path / "empty")
    saved(tmp_path / "pickled", m.model, m.tokenizer)
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save(m.model.state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    with pytest.raises(ValueError, match="Pickled weights can run code"):
        load(tmp_path / "pickled")
    with pytest.raises(ValueError, match="has no tokenizer"):
        load(saved(tmp_path / "mute", m.model))
    with pytest.raises(OSError, match="offline, not in the local cache"):
        load("nobody/nothing-of-that-name")
    e = load(saved(tmp_path / "encoder", enc, m.tokenizer))
    with pytest.raises(ValueError, match="is an encoder and gives no token probabilities"):
        read(e, PAIRS)


def test_a_missing_weight_is_not_drawn_at_random(tmp_path):
    from safetensors.torch import load_file, save_file

    m = toy("bart", torch.float32)
    p = saved(tmp_path, m.model, m.tokenizer) / "model.safetensors"
    w = load_file(p)
    save_file({k: v for k, v in w.items() if "fc1" not in k}, p, metadata={"format": "pt"})
    with pytest.raises(ValueError, match="lacks weights of BartForConditionalGeneration.*fc1"):
        load(tmp_path)


def test_a_bare_bart_is_a_language_model(tmp_path):
    "facebook/bart-large is published as a BartModel; its head is its embedding."
    m = toy("bart", torch.float32)
    saved(tmp_path, BartModel(m.model.config), m.tokenizer)
    assert load(tmp_path).kind == "seq2seq"


def test_an_unknown_step_to_the_logits_is_an_error():
    m = toy("llama")
    m.model.lm_head.register_forward_hook(
        lambda mod, x, z: z + x[0].sum()
    )  # a hook is part of the head, so it is seen
    assert wrap(m.model, m.tokenizer).kind == "causal"
    plain = m.model.forward
    m.model.forward = lambda *a, **k: (lambda o: o.__class__(logits=o.logits * 2))(plain(*a, **k))
    with pytest.raises(ValueError, match="off by"):
        wrap(m.model, m.tokenizer)


@pytest.mark.parametrize(
    "kw,says",
    [
        (dict(hidden=["middle"]), "has no hidden state middle"),
        (dict(logits="cooked"), "not 'cooked'"),
        (dict(members=[]), "at least one seed"),
        (dict(members=[1], hidden=["decoder_mean"]), "belong to one network"),
        (dict(layout=Layout(cut="both")), "not 'both'"),
        (dict(logits="processed", generation=dict(min_lenght=3)), "min_lenght"),
    ],
)
def test_wrong_requests_are_answered(toys, kw, says):
    with pytest.raises(ValueError, match=says):
        read(toys("bart"), PAIRS, **kw)


def test_logits_that_are_not_numbers_are_an_error(toys):
    m = toy("llama")
    m.model.lm_head.weight.data[3] = np.nan
    with pytest.raises(ValueError, match="not numbers"):
        read(m, PAIRS[:1])


# Parity with recorded numbers
@pytest.fixture(scope="module")
def recorded():
    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    seen = {}

    def get(path, dtype="float32"):
        if (path, dtype) not in seen:
            seen[path, dtype] = (
                json.loads((oracles() / path).read_text())
                if path.endswith(".json")
                else load(oracles() / path, device="cpu", dtype=dtype)
            )
        return seen[path, dtype]

    return get


SIDES = dict(
    src_to_hyp=("source", "summary"),
    hyp_to_src=("summary", "source"),
    ref_to_hyp=("reference", "summary"),
    hyp_to_ref=("summary", "reference"),
)


@pytest.fixture(scope="module")
def texts(recorded):
    return {r["id"]: r for r in recorded("seed_systems/pairs.json")}


def close(got, want, tol=2e-5):
    np.testing.assert_allclose(got, want, rtol=0, atol=tol)


def means(rs):
    return [r.logp.mean() for r in rs]


def test_bartscore_token_by_token(recorded):
    rec, m = recorded("metrics/bartscore.json"), recorded("metrics/models/tiny_bart")
    docs = {t["id"]: t for t in recorded("metrics/triples.json")["triples"]}
    got = read(m, [(docs[i]["source"], docs[i]["hypothesis"]) for i in rec["detail"]])
    for r, (i, d) in zip(got, rec["detail"].items()):
        it = lay(m, docs[i]["source"], docs[i]["hypothesis"])
        assert (list(it.prompt), r.ids.tolist()) == (d["source_ids"], d["target_ids"])
        close(r.logp, d["target_logprobs"])


@pytest.mark.parametrize(
    "name,a,b,window",
    [
        ("src_to_hyp", "source", "hypothesis", 1024),
        ("ref_to_hyp", "reference", "hypothesis", 1024),
        ("hyp_to_ref", "hypothesis", "reference", 1024),
        ("src_to_hyp_maxlen256", "source", "hypothesis", 256),
        ("he_rh_maxlen256", "hypothesis", "reference", 256),
    ],
)
def test_bartscore_in_every_direction(recorded, name, a, b, window):
    want = recorded("metrics/bartscore.json")["scores"][name]
    docs = {t["id"]: t for t in recorded("metrics/triples.json")["triples"]}
    got = read(
        recorded("metrics/models/tiny_bart"), [(docs[i][a], docs[i][b]) for i in want], Layout(window=window)
    )
    close(means(got), list(want.values()))
    assert window == 1024 or any(r.cut for r in got)


@pytest.mark.parametrize("name,model", [("bartscore", "tiny_bart"), ("t5score", "tiny_t5")])
@pytest.mark.parametrize("side", SIDES)
def test_seq2seq_scores(recorded, texts, name, model, side):
    want, (a, b) = recorded("seed_systems/s2s_likelihoods.json")[name]["values"][side], SIDES[side]
    close(
        means(
            read(
                recorded(f"seed_systems/models/{model}"),
                [(texts[i][a], texts[i][b]) for i in want],
                Layout(window=1024),
            )
        ),
        list(want.values()),
    )


def test_cop_and_harim_token_by_token(recorded, texts):
    rec, m = recorded("seed_systems/s2s_likelihoods.json"), recorded("seed_systems/models/tiny_bart")
    n = 0
    for q, h in zip(rec["cop_bart"]["records"], rec["harim_bart"]["records"]):
        x, y = texts[q["id"]]["source"], texts[q["id"]]["summary"]
        s2s, prefix, empty = read(m, [(x, y), (f"{y} {x}", y), ("", y)])
        close([s2s.logp.mean(), prefix.logp.mean()], [q["s2s"], q["prefix"]])
        if q["token_loss_s2s"]:
            close([-s2s.logp, -prefix.logp], [q["token_loss_s2s"], q["token_loss_prefix"]])
            n += 1
        close([np.exp(s2s.logp), np.exp(empty.logp)], [h["p_s2s"], h["p_lm_empty_source"]])
    assert n == 9


def test_coco_from_two_readings(recorded, texts):
    "The first piece of each word, with the document and with a masked one."
    m, n = recorded("seed_systems/models/tiny_bart"), 0
    for q in recorded("seed_systems/s2s_likelihoods.json")["coco_bart"]["records"]:
        y = texts[q["id"]]["summary"]
        full, *masked = read(
            m,
            [
                (x, y)
                for x in (texts[q["id"]]["source"], *(v["masked_document"] for v in q["variants"].values()))
            ],
        )
        pieces = m.tokenizer.convert_ids_to_tokens(full.ids)
        first = [
            k for k, p in enumerate(pieces) if k == 1 or (p.startswith("Ġ") and p != "Ġ")
        ]  # a lone blank is lost in CoCo's merging
        words = q["merged_words"]
        assert len(first) == len(words)
        close(np.exp(full.logp[first]), q["merged_first_piece_prob_source"])
        used = [k for k, w in zip(first, words) if w in q["masked_token_list"]]
        for r, v in zip(masked, q["variants"].values()):
            close(np.mean(np.exp(full.logp[used]) - np.exp(r.logp[used])) if used else 0, v["coco"])
            n += 1
    assert n == 32


FLAN = dict(
    plain=("{source}", ""),
    template_ref_to_hyp=("{reference}", " In other words , "),
    prefix_summarize=("Summarize: {source}", ""),
)


@pytest.mark.parametrize("name", FLAN)
def test_gptscore_of_a_seq2seq_model(recorded, texts, name):
    want, (prefix, sep) = (
        recorded("seed_systems/s2s_likelihoods.json")["gptscore_flan"]["values"][name],
        FLAN[name],
    )
    got = read(
        recorded("seed_systems/models/tiny_t5"),
        [(prefix.format(**texts[i]), texts[i]["summary"]) for i in want],
        Layout(sep=sep, window=1024),
    )
    close(means(got), list(want.values()))


GPT2 = dict(
    in_other_words_ref_to_hyp=("reference", " In other words , ", "summary"),
    in_other_words_hyp_to_ref=("summary", " In other words , ", "reference"),
    tldr_src_to_hyp=("source", " TL;DR: ", "summary"),
)


@pytest.mark.parametrize("name", GPT2)
def test_gptscore_of_a_causal_model(recorded, texts, name):
    "The original scorer drops the first token of the target, so one-token targets have no score."
    rec, (a, sep, b) = recorded("seed_systems/s2s_likelihoods.json")["gptscore_gpt2"], GPT2[name]
    want = rec["values"][name]
    got = read(
        recorded("seed_systems/models/tiny_gpt2"),
        [(texts[i][a], texts[i][b]) for i in want],
        Layout(first=None, sep=sep, joined=True),
    )
    for r, w in zip(got, want.values()):
        if w is None:
            assert len(r.logp) == 1
        else:
            close(r.logp[1:].mean(), w)
    if name == "tldr_src_to_hyp":
        assert [(len(r.ids)) for r in got] == [q["n_target_tokens"] for q in rec["scored_tokens"]]


PASS = dict(
    s2s="s2s_tok_list",
    lm="lm_tok_list",
    prefix="prefix_tok_list",
    s2s_doc="s2s_tok_list_1",
    lm_doc="lm_tok_list_1",
)


@pytest.fixture(scope="module")
def five(recorded, texts):
    rec = recorded("seed_systems/fflm_records.json")["records"]
    return list(
        zip(
            rec,
            fflm_passes(
                recorded("seed_systems/models/tiny_llama"),
                [(texts[r["id"]]["source"], texts[r["id"]]["summary"]) for r in rec],
            ),
        )
    )


def test_fflm_token_probabilities(five):
    for r, got in five:
        for k, name in PASS.items():
            want = r["token_probs_float32"][name]
            if isinstance(want, dict):  # abridged for the long source
                assert len(got[k]) == want["n"]
                close([*got[k][:8], *got[k][-8:]], want["first8"] + want["last8"])
                close(got[k].sum(), want["sum"])
            else:
                close(got[k], np.atleast_1d(want))
                close(np.log(got[k]), np.log(np.atleast_1d(want)))
    assert {"p08", "p09", "p13_long"} <= {r["id"] for r, _ in five}


def test_fflm_components_follow_from_the_lists(five):
    def part(p, q):
        return np.mean(np.exp(1 - p) * (np.log(p) - np.log(q)))

    for r, g in five:
        want = r["official_float32"]
        got = dict(
            delta_Y_prior=part(g["s2s"], g["lm"]),
            delta_Y_cond=part(g["s2s"], g["prefix"]),
            delta_X_prior=part(g["s2s_doc"], g["lm_doc"]),
            cop=np.mean(np.log(g["s2s"]) - np.log(g["prefix"])),
        )
        for k, v in got.items():
            assert v == pytest.approx(want[k], abs=2e-5), (r["id"], k)
        assert 0.25 * got["delta_Y_prior"] + 0.25 * got["delta_X_prior"] + 0.5 * got[
            "delta_Y_cond"
        ] == pytest.approx(want["fflm"], abs=2e-5)


def test_fflm_inputs_are_laid_out_as_recorded(recorded, texts):
    m, rec = recorded("seed_systems/models/tiny_llama"), recorded("seed_systems/fflm_records.json")
    assert (FFLM.first, FFLM.sep, FFLM.window) == (
        rec["prepended_token_id"],
        rec["separator"],
        rec["max_len"],
    )
    from dataclasses import replace

    for r in rec["records"]:
        x, y = texts[r["id"]]["source"], texts[r["id"]]["summary"]
        alone, doc = replace(FFLM, sep=""), replace(FFLM, cut="text")
        for k, args in dict(
            s2s=(x, y, FFLM),
            lm=("", y, alone),
            prefix=(f"{y} {x}", y, FFLM),
            s2s_doc=(y, x, doc),
            lm_doc=("", x, alone),
        ).items():
            it, want = lay(m, *args), r["layout"][k]
            assert (len(it.prompt + it.text), len(it.text), len(it.prompt) - 1) == (
                want["n_input"],
                want["n_scored"],
                want["start_idx"],
            ), (r["id"], k)
            if "input_ids" in want:
                assert list(it.prompt + it.text) == want["input_ids"]


@pytest.mark.parametrize("model", ["tiny_bart", "tiny_t5", "tiny_gpt2", "tiny_llama"])
def test_recorded_models_read_alike_in_any_batch(recorded, texts, model):
    "Means agree to 2e-6 in float32; in float64 every token does."
    pairs = [(t["source"], t[k]) for t in texts.values() for k in ("summary", "reference")]
    for dtype in ("float32", "float64"):
        m = recorded(f"seed_systems/models/{model}", dtype)
        a, b = read(m, pairs), [read(m, [p])[0] for p in pairs]
        close(means(a), means(b), 2e-6)
        assert off(a, b) <= (2e-6 if dtype == "float64" else 2e-5)


def test_numbers_over_the_vocabulary_are_those_of_the_peers(oracle):
    pooled = dict(
        RenyiNeg=lambda r: r["renyi"].mean() - 2 * np.log(r["V"]),
        FisherRao=lambda r: r["fisher_rao"].mean(),
        SelfCertainty=lambda r: -r["self_certainty"].mean(),
        BoostedProbSequence=lambda r: -r["dominant"].mean(),
    )
    seen = 0
    for c in (c for c in oracle("uncertainty.json")["information"] if "greedy_log_probs" in c["inputs"]):
        tol = 2e-6 if "float32" in c["name"] else 1e-9
        for i, (rows, y) in enumerate(zip(c["inputs"]["greedy_log_probs"], c["inputs"]["greedy_tokens"])):
            if not rows:
                continue
            lp = torch.tensor([[float(v) for v in r] for r in rows], dtype=torch.float64)
            got = {
                k: v.numpy() for k, v in token_stats(lp, torch.tensor(y), wide=tuple(WIDE)).items()
            } | dict(V=lp.shape[1])
            for k, f in pooled.items():
                assert f(got) == pytest.approx(float(c["outputs"][k][i]), abs=tol), (c["name"], k)
                seen += 1
    assert seen == 48


def test_further_numbers_come_with_each_text_and_not_with_members():
    m = toy("bart")
    a, b = read(m, PAIRS[:4]), read(m, PAIRS[:4], wide=("renyi", "allowed"))
    assert all(
        np.array_equal(x.logp, y.logp)
        and list(y.wide) == ["renyi", "allowed"]
        and y.wide["renyi"].shape == y.logp.shape
        and (y.wide["allowed"] == V).all()
        for x, y in zip(a, b)
    )
    with pytest.raises(ValueError, match="there is no reny of a row"):
        read(m, PAIRS[:1], wide=("reny",))
    with pytest.raises(ValueError, match="one network"):
        read(m, PAIRS[:1], wide=("renyi",), members=[1])
