"""Token log-probabilities: recorded ones of peers, and independence of batches, order, sharing, chunks."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.helpers.forward import saved
from tests.helpers.toys import KINDS, PAIRS, V, sentence, toy
from uetrust.core.settings import oracles, root
from uetrust.data.bulletins import bulletins
from uetrust.models import forward
from uetrust.models.classifiers import nli_pairs
from uetrust.models.encode import embed_texts
from uetrust.models.forward import (
    EXTRA_TOKEN_STATS,
    FFLM_LAYOUT,
    DropoutMask,
    Layout,
    _token_stats,
    build_input,
    fflm_passes,
    score_tokens,
)
from uetrust.models.load import halve_when_out_of_memory, load_model


@pytest.fixture(scope="module")
def toys():
    made = {}

    def get(kind, dtype=torch.float64):
        return made.setdefault((kind, dtype), toy(kind, dtype))

    return get


def off(left, right, field="logp"):
    return max(np.abs(getattr(x, field) - getattr(y, field)).max() for x, y in zip(left, right))


# Token log-probabilities from the definition: the whole model on one input at a time
def naive(model, prefix, text):
    item = build_input(model, prefix, text)
    with torch.no_grad():
        if model.kind == "causal":
            logits = model.model(torch.tensor([item.prompt + item.text])).logits[0, len(item.prompt) - 1 : -1]
        else:
            logits = model.model(
                input_ids=torch.tensor([item.prompt]),
                decoder_input_ids=torch.tensor(
                    [(model.model.config.decoder_start_token_id, *item.text[:-1])]
                ),
            ).logits[0]
    log_probs = logits.double().log_softmax(-1)
    return log_probs, torch.tensor(item.text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reading_is_what_the_whole_model_says(toys, kind):
    model = toys(kind)
    got = score_tokens(model, PAIRS, topk=7)
    for reading, (source, text) in zip(got, PAIRS):
        log_probs, y = naive(model, source, text)
        assert reading.ids.tolist() == y.tolist()
        np.testing.assert_allclose(reading.logp, log_probs.gather(1, y[:, None])[:, 0], atol=2e-6)
        np.testing.assert_allclose(reading.entropy, -(log_probs.exp() * log_probs).sum(1), atol=2e-6)
        top = log_probs.topk(7)
        assert reading.top_ids.tolist() == top.indices.tolist()
        np.testing.assert_allclose(reading.top_logp, top.values, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_batches_order_sharing_and_chunks_change_nothing(toys, kind, dtype):
    model, tol = toys(kind, dtype), 2e-6
    got = score_tokens(model, PAIRS, hidden=forward.HIDDEN_STATES[model.kind])
    one_by_one = [score_tokens(model, [pair])[0] for pair in PAIRS]
    assert max(off(got, one_by_one), off(got, one_by_one, "entropy")) <= tol
    for options in (
        dict(share_prefix=False),
        dict(batch_tokens=1),
        dict(batch_tokens=60),
        dict(chunk=1),
        dict(chunk=7),
        dict(chunk=10**6),
    ):
        again = score_tokens(model, PAIRS, hidden=forward.HIDDEN_STATES[model.kind], **options)
        assert off(got, again) <= tol, options
        assert (
            max(
                np.abs(left.hidden[k] - right.hidden[k]).max()
                for left, right in zip(got, again)
                for k in left.hidden
            )
            <= tol
        )
    mix = np.random.default_rng(2).permutation(len(PAIRS))
    again = score_tokens(model, [PAIRS[i] for i in mix])
    assert all(np.array_equal(again[k].logp, got[i].logp) for k, i in enumerate(mix))


@pytest.mark.parametrize("name", ["bart", "t5", "llama", "unieval", "nli", "encoder"])
def test_what_stands_beside_a_text_does_not_round_its_sums(name):
    # Shipped networks amplify a last digit to 4e-5 where batches are padded to their longest row; sums of
    # more than 192 terms are still split at another place on some processors
    model, docs = load_model(root() / "data" / "models" / f"tiny-{name}"), bulletins("test", 8)

    def numbers(pairs, **options):
        if name == "nli":
            return nli_pairs(model, pairs, **options)[0].ravel()
        if name == "encoder":
            return embed_texts(model, [source for source, _ in pairs], **options)[0].ravel()
        return np.concatenate([reading.logp for reading in score_tokens(model, pairs, **options)])

    for pairs, tolerance in (
        ([*zip(docs["source"], docs["reference"])], 2e-6),
        ([*zip(docs["source"], docs["reference"]), *zip(docs["reference"], docs["source"])], 2e-5),
    ):
        assert np.abs(numbers(pairs) - numbers(pairs, batch_tokens=1)).max() <= tolerance


def test_batches_do_not_depend_on_the_order_of_the_pairs(toys, monkeypatch):
    calls, whole = [], forward._text_states

    def note(model, state, rows, texts):
        calls.append((tuple(rows), tuple(texts)))
        return whole(model, state, rows, texts)

    monkeypatch.setattr(forward, "_text_states", note)

    def batched(pairs):
        calls.clear()
        score_tokens(toys("bart"), pairs, batch_tokens=200)
        return list(calls)

    rng, want = np.random.default_rng(2), batched(PAIRS)
    assert len(want) > 2 and all(
        batched([PAIRS[i] for i in rng.permutation(len(PAIRS))]) == want for _ in range(5)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_prefix_is_computed_once(toys, kind):
    model = toys(kind)
    lengths = [len(build_input(model, source, "").prompt) for source in dict(PAIRS)]
    got, separate = score_tokens(model, PAIRS + PAIRS), score_tokens(model, PAIRS, share_prefix=False)
    assert (got.prefix_tokens, separate.prefix_tokens) == (sum(lengths), 4 * sum(lengths))
    assert (
        got.text_tokens == separate.text_tokens == sum(len(reading.ids) for reading in separate)
    )  # a repeated pair is not read again
    assert score_tokens(model, PAIRS, batch_tokens=30).prefix_tokens == sum(
        lengths
    )  # nor is a prefix whose texts need several batches


def test_the_vocabulary_meets_a_chunk_at_a_time(toys):
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            seen.extend(
                tensor.numel() // V
                for tensor in (out if isinstance(out, tuple | list) else [out])
                if isinstance(tensor, torch.Tensor) and tensor.ndim == 2 and tensor.shape[-1] == V
            )
            return out

    def widest(model, **options):
        seen.clear()
        with Watch():
            score_tokens(model, PAIRS, **options)
        return max(seen)

    for kind in KINDS:
        model = toys(kind)
        n = score_tokens(model, PAIRS).text_tokens
        assert n > 170 and [widest(model, chunk=chunk) for chunk in (1, 7, 50)] == [1, 7, 50]
    assert widest(toys("bart"), chunk=7, members=[1, 2]) == 7
    assert widest(toys("bart"), chunk=7, logits="processed", generation=dict(no_repeat_ngram_size=3)) == 7


def test_a_uniform_model_has_entropy_log_v():
    model = toy("llama")
    model.model.lm_head.weight.data.zero_()
    readings = score_tokens(model, PAIRS[:4])
    assert all(
        np.abs(reading.entropy - np.log(V)).max() < 1e-6 and np.abs(reading.logp + np.log(V)).max() < 1e-6
        for reading in readings
    )


def test_impossible_tokens_have_no_entropy():
    log_probs = torch.tensor([[0.0, 0, -np.inf, -np.inf], [0, -np.inf, -np.inf, -np.inf]]).log_softmax(1)
    stats = _token_stats(log_probs, torch.tensor([2, 0]))
    assert stats["logp"].tolist() == [-np.inf, 0] and stats["entropy"].tolist() == pytest.approx(
        [np.log(2), 0]
    )


# Layouts and cuts
def test_the_closing_of_a_prompt_is_never_cut(toys):
    text, sep = sentence(np.random.default_rng(0), 9), " w7 w8 "
    long = sentence(np.random.default_rng(1), 200)
    for kind, joined in (("llama", True), ("llama", False), ("gpt2", True), ("bart", False), ("t5", False)):
        model = toys(kind)
        item = build_input(model, long, text, Layout(sep=sep, joined=joined))
        ids = model.tokenizer(text, add_special_tokens=False).input_ids
        closing = item.prompt[-2:] if model.kind == "causal" else item.prompt[-3:-1]
        room = 64 - (1 + 2 + 9) if model.kind == "causal" else 64 - (2 + 2 if kind == "bart" else 2 + 1)
        assert (
            closing == (7, 8)
            and (item.cut, item.text_cut) == (200 - room, 0)
            and [i for i in item.text if i > 2] == ids
        )
        assert model.kind == "causal" or item.prompt[-1] == 1  # the encoder's end token stays
        assert np.isfinite(score_tokens(model, [(long, text)], Layout(sep=sep, joined=joined))[0].logp).all()


def test_a_text_over_the_window_is_cut_and_counted(toys):
    long = sentence(np.random.default_rng(1), 100)
    first, second = score_tokens(toys("llama"), [("w5 w6", long), ("w5 w6", "w9")])
    assert (first.cut, first.text_cut, len(first.logp), second.text_cut) == (2, 37, 63, 0)
    first = score_tokens(toys("llama"), [("w5 w6", long)], Layout(cut="text"))[0]
    assert (first.cut, first.text_cut, len(first.logp)) == (0, 39, 61)
    first = score_tokens(toys("bart"), [("w5", long)])[0]
    assert (first.cut, first.text_cut, first.ids[-1], len(first.logp)) == (0, 38, 1, 64)


def test_ids_are_taken_as_they_are(toys):
    for kind in ("bart", "llama"):
        model = toys(kind)
        item = build_input(model, *PAIRS[1])
        from_text, from_ids = score_tokens(model, [PAIRS[1], (list(item.prompt), list(item.text))])
        assert np.array_equal(from_text.logp, from_ids.logp) and np.array_equal(from_text.ids, from_ids.ids)
    assert build_input(toys("llama"), [5], [6]).prompt == (5,) and build_input(
        toys("llama"), "w5", [6]
    ).prompt == (
        0,
        5,
    )  # no start token of ours before given ids
    assert build_input(toys("bart"), [0, *range(3, 103), 1], "w3").prompt == (0, *range(3, 65), 1)


def test_special_tokens_are_marked_or_left_out(toys):
    bart = toys("bart")
    marked, bare = score_tokens(bart, [PAIRS[1]])[0], score_tokens(bart, [PAIRS[1]], Layout(special=False))[0]
    assert (
        marked.special.tolist() == [True] + [False] * 9 + [True]
        and marked.ids[1:-1].tolist() == bare.ids.tolist()
        and not bare.special.any()
    )
    gpt2 = toys("gpt2")
    assert (
        score_tokens(gpt2, [PAIRS[1]], Layout(eos=True))[0].ids[-1] == 1
        and len(score_tokens(gpt2, [PAIRS[1]])[0].ids) == 9
    )
    assert build_input(gpt2, "<s> w5", "w6").prompt == build_input(gpt2, "w5", "w6").prompt == (0, 5)


def test_an_empty_text_has_an_empty_reading(toys):
    readings = score_tokens(toys("llama"), [("w5", ""), ("w5", "w6")], topk=3)
    assert [len(reading.logp) for reading in readings] == [0, 1] and readings[0].top_ids.shape == (0, 3)
    assert score_tokens(toys("llama"), []).prefix_tokens == 0


# Hidden states
def test_hidden_states_are_those_of_the_whole_model(toys):
    source, text = PAIRS[5]
    for kind in ("bart", "llama"):
        model = toys(kind)
        got = score_tokens(model, PAIRS, hidden=forward.HIDDEN_STATES[model.kind])[5].hidden
        item = build_input(model, source, text)
        with torch.no_grad():
            if kind == "llama":
                states = model.model.model(torch.tensor([item.prompt + item.text[:-1]])).last_hidden_state[
                    0
                ]  # the last token has no state of its own
                first = len(item.prompt) - 1  # The last token of the prompt
                want = dict(decoder_mean=states.mean(0), decoder_first=states[first], decoder_last=states[-1])
                want["decoder_states"] = states[first:]
            else:
                out = model.model.model(
                    input_ids=torch.tensor([item.prompt]),
                    decoder_input_ids=torch.tensor([(1, *item.text[:-1])]),
                )
                encoded, states = out.encoder_last_hidden_state[0], out.last_hidden_state[0]
                want = dict(
                    encoder_mean=encoded.mean(0),
                    encoder_last=encoded[-1],
                    decoder_mean=states.mean(0),
                    decoder_first=states[0],
                    decoder_last=states[-1],
                    decoder_states=states,
                )
        assert set(got) == set(want) and all(value.dtype == np.float32 for value in got.values())
        for name in want:
            np.testing.assert_allclose(got[name], want[name], atol=2e-6)


# Processed logits
RULES = [
    dict(),
    dict(no_repeat_ngram_size=2),
    dict(min_new_tokens=6),
    dict(forced_bos_token_id=0, forced_eos_token_id=1, no_repeat_ngram_size=3, min_length=4),
    dict(suppress_tokens=[5, 6], begin_suppress_tokens=[9]),
    dict(repetition_penalty=1.7, no_repeat_ngram_size=1, min_length=6, min_new_tokens=2),
    dict(forced_bos_token_id=0, begin_suppress_tokens=[9, 10, 11]),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "+".join(rules) or "none")
def test_processed_logits_are_those_of_generate(kind, rules):
    # `generate` records what its processors made of the logits; scoring its output must give the same numbers
    model = toy(kind, **(dict(forced_eos_token_id=None) if kind == "bart" else {}))
    prompts = [build_input(model, source, "").prompt for source in dict(PAIRS)]
    for prompt in prompts:
        out = model.model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=int),
            do_sample=False,
            max_new_tokens=9,
            output_scores=True,
            return_dict_in_generate=True,
            **rules,
        )
        ids = out.sequences[0, (1 if model.kind == "seq2seq" else len(prompt)) :].tolist()
        want = torch.cat(out.scores).double().log_softmax(-1)
        reading = score_tokens(
            model, [(list(prompt), ids)], logits="processed", generation=dict(max_new_tokens=9, **rules)
        )[0]
        assert len(reading.logp) == len(want)
        np.testing.assert_allclose(reading.logp, want[range(len(ids)), ids], atol=2e-6)
        np.testing.assert_allclose(reading.entropy, torch.special.entr(want.exp()).sum(1), atol=2e-6)


def test_raw_logits_ignore_the_generation_config():
    model = toy("bart")
    before = score_tokens(model, PAIRS[:4])
    model.model.generation_config.no_repeat_ngram_size, model.model.generation_config.forced_bos_token_id = (
        1,
        0,
    )
    assert off(before, score_tokens(model, PAIRS[:4])) == 0
    assert score_tokens(model, PAIRS[:4], logits="processed")[1].logp[0] == 0  # <s> is forced


# Members
DROPS = ["bart", "t5", "gpt2"]


@pytest.mark.parametrize("kind", DROPS)
def test_a_member_is_one_network(toys, kind):
    "Its seed decides; batch, order, length and sharing do not."
    model = toys(kind)
    readings = score_tokens(model, PAIRS, members=[1, 2, 3])
    logp = lambda found: [reading.members["logp"] for reading in found]
    for again in (
        score_tokens(model, PAIRS, members=[1, 2, 3], share_prefix=False),
        [score_tokens(model, [pair], members=[1, 2, 3])[0] for pair in PAIRS],
        score_tokens(model, PAIRS[::-1], members=[1, 2, 3], batch_tokens=40)[::-1],
    ):
        assert max(np.abs(x - y).max() for x, y in zip(logp(readings), logp(again))) <= 2e-6
    again = score_tokens(model, PAIRS, members=[3, 9])
    assert max(np.abs(x[2] - y[0]).max() for x, y in zip(logp(readings), logp(again))) <= 2e-6
    assert min(np.abs(x[2] - y[1]).max() for x, y in zip(logp(readings), logp(again))) > 1e-3
    assert min(np.abs(x[0] - x[1]).max() for x in logp(readings)) > 1e-3
    assert (
        readings.prefix_tokens == 3 * score_tokens(model, PAIRS).prefix_tokens
    )  # each member encodes for itself
    assert not model.model.training and off(score_tokens(model, PAIRS), score_tokens(model, PAIRS)) == 0


def members_by_hand(model, source, text, seeds, rate=None):
    "Log-probability rows of each member, [M, L, V], from whole forward passes under its masks"
    rows, item = [], build_input(model, source, text)
    for seed in seeds:
        member = DropoutMask(seed, rate)
        with torch.no_grad(), member:
            if model.kind == "causal":
                member.begin(1)
                logits = model.model(torch.tensor([item.prompt + item.text])).logits[
                    0, len(item.prompt) - 1 : -1
                ]
            else:
                member.begin(0)
                encoded = model.model.get_encoder()(input_ids=torch.tensor([item.prompt]))
                member.begin(1)
                logits = model.model(
                    encoder_outputs=encoded,
                    decoder_input_ids=torch.tensor(
                        [(model.model.config.decoder_start_token_id, *item.text[:-1])]
                    ),
                ).logits[0]
        rows.append(logits.float().double().log_softmax(-1).numpy())
    return np.array(rows), np.array(item.text)


@pytest.mark.parametrize("kind", DROPS)
@pytest.mark.parametrize("chunk", [3, 512])
def test_members_are_reduced_to_the_statistics_of_the_ensemble(toys, kind, chunk):
    model, seeds = toys(kind), [1, 2, 3, 4]
    for (source, text), reading in zip(
        PAIRS[:6], score_tokens(model, PAIRS[:6], members=seeds, chunk=chunk, topk=2)
    ):
        log_probs, y = members_by_hand(model, source, text, seeds)
        probs, own, entropy = (
            np.exp(log_probs),
            log_probs[:, range(len(y)), y],
            lambda mixed: -(mixed * np.log(mixed)).sum(-1),
        )
        got = reading.members
        np.testing.assert_allclose(got["logp"], own, atol=2e-6)
        np.testing.assert_allclose(got["entropy"], entropy(probs), atol=2e-6)
        for mixture in ("pe", "ep"):
            weights = (
                np.full((4, len(y)), 1 / 4)
                if mixture == "pe"
                else np.array(
                    [
                        [
                            np.exp(own[member, :i].sum()) / np.exp(own[:, :i].sum(1)).sum()
                            for i in range(len(y))
                        ]
                        for member in range(4)
                    ]
                )
            )
            mixed = (weights[..., None] * probs).sum(0)
            total, data, cross = entropy(mixed), entropy(probs).mean(0), -(mixed * log_probs.mean(0)).sum(-1)
            for measure, value in dict(
                tu=total, mi=total - data, epkl=cross - data, rmi=cross - total
            ).items():
                np.testing.assert_allclose(
                    got[f"{mixture}_{measure}"], value, atol=4e-6, err_msg=f"{mixture}_{measure}"
                )
            assert (got[f"{mixture}_rmi"] > -1e-12).all() and np.allclose(got["du"], data, atol=2e-6)
            if mixture == "pe":
                np.testing.assert_allclose(reading.logp, np.log(mixed[range(len(y)), y]), atol=2e-6)
                np.testing.assert_allclose(reading.entropy, total, atol=2e-6)
        assert (got["pe_mi"] > 0).all() and reading.top_ids.shape == (len(y), 2)


def test_one_member_has_nothing_to_disagree_about(toys):
    "The release reads a single member, so its mutual information is rounding noise; here it is zero."
    readings = score_tokens(toys("bart"), PAIRS, members=[2])
    assert (
        max(
            np.abs(reading.members[f"{mixture}_{measure}"]).max()
            for reading in readings
            for mixture in ("pe", "ep")
            for measure in ("mi", "epkl", "rmi")
        )
        < 1e-12
    )


def test_members_may_give_processed_scores_beside_raw_ones(toys):
    options = dict(logits="processed", generation=dict(forced_bos_token_id=0, max_new_tokens=50))
    processed, raw = (
        score_tokens(toys("bart"), PAIRS[:3], members=[1, 2], **options),
        score_tokens(toys("bart"), PAIRS[:3], members=[1, 2]),
    )
    for x, y in zip(processed, raw):
        assert (
            np.array_equal(x.members["logp"], y.members["logp"])
            and (x.members["logp_processed"][:, 0] == 0).all()
        )
        np.testing.assert_allclose(x.members["logp_processed"][:, 1:], x.members["logp"][:, 1:], atol=2e-6)


def test_dropout_masks_features_at_the_rate(toys):
    x = torch.ones(2, 3, 20_000)
    with DropoutMask(5, 0.3) as member:
        member.begin(0)
        encoder = torch.nn.functional.dropout(x, 0.1, False)
        attention = torch.nn.functional.dropout(torch.ones(1, 1, 4, 4), 0.1, False)
        member.begin(1)
        decoder = torch.nn.functional.dropout(x, 0.1, False)
    assert not torch.equal(encoder, decoder)  # an encoder's first layer is not a decoder's
    assert (
        encoder.unique().tolist() == pytest.approx([0, 1 / 0.7])
        and abs((encoder == 0).double().mean() - 0.3) < 0.01
        and (encoder == encoder[0, 0]).all()
        and (attention == 1).all()
    )


def test_members_of_a_model_without_dropout_are_refused(toys):
    with pytest.raises(ValueError, match="no dropout layer with a rate above 0"):
        score_tokens(toys("llama"), PAIRS[:1], members=[1])


# Memory, batches, masks
def test_out_of_memory_halves_the_batch_and_goes_on(toys, monkeypatch):
    model, whole, tried = toys("bart"), forward._prefix_state, []

    def small(model, prompts):
        tried.append(len(prompts))
        if len(prompts) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(model, prompts)

    want = score_tokens(model, PAIRS)
    monkeypatch.setattr(forward, "_prefix_state", small)
    got = score_tokens(model, PAIRS)
    assert off(want, got) <= 2e-6 and max(tried) == 6 and got.prefix_tokens >= want.prefix_tokens
    monkeypatch.setattr(forward, "_prefix_state", whole)
    half, most = forward._text_states, []

    def few(model, state, rows, texts):
        if len(texts) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        most.append(len(texts))
        return half(model, state, rows, texts)

    monkeypatch.setattr(forward, "_text_states", few)
    assert (
        off(want[4:8], score_tokens(model, PAIRS[4:8])) <= 2e-6 and max(most) == 2
    )  # texts of one prefix are halved too
    with pytest.raises(RuntimeError, match="shapes"):
        halve_when_out_of_memory(
            lambda x: torch.ones(2, 3) @ torch.ones(2, 3), [1, 2]
        )  # other errors are not swallowed
    with pytest.raises(MemoryError, match="single item"):
        halve_when_out_of_memory(lambda x: torch.empty(2**50), [1, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_reads_the_same(kind, tmp_path):
    model = toy(kind, torch.float32)
    again = load_model(saved(tmp_path, model.model, model.tokenizer), device="cpu")
    assert (again.kind, again.dtype, again.id) == (
        model.kind,
        torch.float32,
        str(tmp_path),
    ) and not again.model.training
    assert off(score_tokens(model, PAIRS), score_tokens(again, PAIRS)) == 0
    assert load_model(tmp_path, device="cpu", dtype="bfloat16").dtype == torch.bfloat16


def test_a_half_precision_model_reads_finite_numbers(toys):
    single, half = (
        score_tokens(toys("llama", torch.float32), PAIRS),
        score_tokens(toys("llama", torch.bfloat16), PAIRS),
    )
    assert all(np.isfinite(reading.logp).all() for reading in half) and 0.001 < off(single, half) < 2


@pytest.mark.parametrize(
    "options,says",
    [
        (dict(hidden=["middle"]), "has no hidden state middle"),
        (dict(logits="cooked"), "not 'cooked'"),
        (dict(members=[]), "at least one seed"),
        (dict(members=[1], hidden=["decoder_mean"]), "belong to one network"),
        (dict(layout=Layout(cut="both")), "not 'both'"),
        (dict(logits="processed", generation=dict(min_lenght=3)), "min_lenght"),
    ],
)
def test_wrong_requests_are_answered(toys, options, says):
    with pytest.raises(ValueError, match=says):
        score_tokens(toys("bart"), PAIRS, **options)


def test_logits_that_are_not_numbers_are_an_error(toys):
    model = toy("llama")
    model.model.lm_head.weight.data[3] = np.nan
    with pytest.raises(ValueError, match="not numbers"):
        score_tokens(model, PAIRS[:1])


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
                else load_model(oracles() / path, device="cpu", dtype=dtype)
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
    return {record["id"]: record for record in recorded("seed_systems/pairs.json")}


def close(got, want, tol=2e-5):
    np.testing.assert_allclose(got, want, rtol=0, atol=tol)


def means(readings):
    return [reading.logp.mean() for reading in readings]


def test_bartscore_token_by_token(recorded):
    recording, model = recorded("metrics/bartscore.json"), recorded("metrics/models/tiny_bart")
    docs = {doc["id"]: doc for doc in recorded("metrics/triples.json")["triples"]}
    got = score_tokens(model, [(docs[i]["source"], docs[i]["hypothesis"]) for i in recording["detail"]])
    for reading, (i, detail) in zip(got, recording["detail"].items()):
        item = build_input(model, docs[i]["source"], docs[i]["hypothesis"])
        assert (list(item.prompt), reading.ids.tolist()) == (detail["source_ids"], detail["target_ids"])
        close(reading.logp, detail["target_logprobs"])


@pytest.mark.parametrize(
    "name,prefix,text,window",
    [
        ("src_to_hyp", "source", "hypothesis", 1024),
        ("ref_to_hyp", "reference", "hypothesis", 1024),
        ("hyp_to_ref", "hypothesis", "reference", 1024),
        ("src_to_hyp_maxlen256", "source", "hypothesis", 256),
        ("he_rh_maxlen256", "hypothesis", "reference", 256),
    ],
)
def test_bartscore_in_every_direction(recorded, name, prefix, text, window):
    want = recorded("metrics/bartscore.json")["scores"][name]
    docs = {doc["id"]: doc for doc in recorded("metrics/triples.json")["triples"]}
    got = score_tokens(
        recorded("metrics/models/tiny_bart"),
        [(docs[i][prefix], docs[i][text]) for i in want],
        Layout(window=window),
    )
    close(means(got), list(want.values()))
    assert window == 1024 or any(reading.cut for reading in got)


@pytest.mark.parametrize("name,model", [("bartscore", "tiny_bart"), ("t5score", "tiny_t5")])
@pytest.mark.parametrize("side", SIDES)
def test_seq2seq_scores(recorded, texts, name, model, side):
    want, (prefix, text) = recorded("seed_systems/s2s_likelihoods.json")[name]["values"][side], SIDES[side]
    close(
        means(
            score_tokens(
                recorded(f"seed_systems/models/{model}"),
                [(texts[i][prefix], texts[i][text]) for i in want],
                Layout(window=1024),
            )
        ),
        list(want.values()),
    )


def test_cop_and_harim_token_by_token(recorded, texts):
    recording, model = (
        recorded("seed_systems/s2s_likelihoods.json"),
        recorded("seed_systems/models/tiny_bart"),
    )
    n = 0
    for cop, harim in zip(recording["cop_bart"]["records"], recording["harim_bart"]["records"]):
        x, y = texts[cop["id"]]["source"], texts[cop["id"]]["summary"]
        s2s, prefix, empty = score_tokens(model, [(x, y), (f"{y} {x}", y), ("", y)])
        close([s2s.logp.mean(), prefix.logp.mean()], [cop["s2s"], cop["prefix"]])
        if cop["token_loss_s2s"]:
            close([-s2s.logp, -prefix.logp], [cop["token_loss_s2s"], cop["token_loss_prefix"]])
            n += 1
        close([np.exp(s2s.logp), np.exp(empty.logp)], [harim["p_s2s"], harim["p_lm_empty_source"]])
    assert n == 9


def test_coco_from_two_readings(recorded, texts):
    "The first piece of each word, with the document and with a masked one."
    model, n = recorded("seed_systems/models/tiny_bart"), 0
    for record in recorded("seed_systems/s2s_likelihoods.json")["coco_bart"]["records"]:
        y = texts[record["id"]]["summary"]
        full, *masked = score_tokens(
            model,
            [
                (x, y)
                for x in (
                    texts[record["id"]]["source"],
                    *(variant["masked_document"] for variant in record["variants"].values()),
                )
            ],
        )
        pieces = model.tokenizer.convert_ids_to_tokens(full.ids)
        first = [
            k for k, piece in enumerate(pieces) if k == 1 or (piece.startswith("Ġ") and piece != "Ġ")
        ]  # a lone blank vanishes in CoCo's merging
        words = record["merged_words"]
        assert len(first) == len(words)
        close(np.exp(full.logp[first]), record["merged_first_piece_prob_source"])
        used = [k for k, word in zip(first, words) if word in record["masked_token_list"]]
        for reading, variant in zip(masked, record["variants"].values()):
            close(
                np.mean(np.exp(full.logp[used]) - np.exp(reading.logp[used])) if used else 0, variant["coco"]
            )
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
    got = score_tokens(
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
    recording, (prefix, sep, text) = (
        recorded("seed_systems/s2s_likelihoods.json")["gptscore_gpt2"],
        GPT2[name],
    )
    want = recording["values"][name]
    got = score_tokens(
        recorded("seed_systems/models/tiny_gpt2"),
        [(texts[i][prefix], texts[i][text]) for i in want],
        Layout(prefix_token=None, sep=sep, joined=True),
    )
    for reading, value in zip(got, want.values()):
        if value is None:
            assert len(reading.logp) == 1
        else:
            close(reading.logp[1:].mean(), value)
    if name == "tldr_src_to_hyp":
        assert [(len(reading.ids)) for reading in got] == [
            record["n_target_tokens"] for record in recording["scored_tokens"]
        ]


PASS = dict(
    s2s="s2s_tok_list",
    lm="lm_tok_list",
    prefix="prefix_tok_list",
    s2s_doc="s2s_tok_list_1",
    lm_doc="lm_tok_list_1",
)


@pytest.fixture(scope="module")
def five(recorded, texts):
    records = recorded("seed_systems/fflm_records.json")["records"]
    return list(
        zip(
            records,
            fflm_passes(
                recorded("seed_systems/models/tiny_llama"),
                [(texts[record["id"]]["source"], texts[record["id"]]["summary"]) for record in records],
            ),
        )
    )


def test_fflm_token_probabilities(five):
    for record, got in five:
        for key, name in PASS.items():
            want = record["token_probs_float32"][name]
            if isinstance(want, dict):  # abridged for the long source
                assert len(got[key]) == want["n"]
                close([*got[key][:8], *got[key][-8:]], want["first8"] + want["last8"])
                close(got[key].sum(), want["sum"])
            else:
                close(got[key], np.atleast_1d(want))
                close(np.log(got[key]), np.log(np.atleast_1d(want)))
    assert {"p08", "p09", "p13_long"} <= {record["id"] for record, _ in five}


def test_fflm_components_follow_from_the_lists(five):
    def part(probs, other):
        return np.mean(np.exp(1 - probs) * (np.log(probs) - np.log(other)))

    for record, passes in five:
        want = record["official_float32"]
        got = dict(
            delta_Y_prior=part(passes["s2s"], passes["lm"]),
            delta_Y_cond=part(passes["s2s"], passes["prefix"]),
            delta_X_prior=part(passes["s2s_doc"], passes["lm_doc"]),
            cop=np.mean(np.log(passes["s2s"]) - np.log(passes["prefix"])),
        )
        for name, value in got.items():
            assert value == pytest.approx(want[name], abs=2e-5), (record["id"], name)
        assert 0.25 * got["delta_Y_prior"] + 0.25 * got["delta_X_prior"] + 0.5 * got[
            "delta_Y_cond"
        ] == pytest.approx(want["fflm"], abs=2e-5)


def test_fflm_inputs_are_laid_out_as_recorded(recorded, texts):
    model, recording = recorded("seed_systems/models/tiny_llama"), recorded("seed_systems/fflm_records.json")
    assert (FFLM_LAYOUT.prefix_token, FFLM_LAYOUT.sep, FFLM_LAYOUT.window) == (
        recording["prepended_token_id"],
        recording["separator"],
        recording["max_len"],
    )
    from dataclasses import replace

    for record in recording["records"]:
        x, y = texts[record["id"]]["source"], texts[record["id"]]["summary"]
        alone, doc = replace(FFLM_LAYOUT, sep=""), replace(FFLM_LAYOUT, cut="text")
        for key, args in dict(
            s2s=(x, y, FFLM_LAYOUT),
            lm=("", y, alone),
            prefix=(f"{y} {x}", y, FFLM_LAYOUT),
            s2s_doc=(y, x, doc),
            lm_doc=("", x, alone),
        ).items():
            item, want = build_input(model, *args), record["layout"][key]
            assert (len(item.prompt + item.text), len(item.text), len(item.prompt) - 1) == (
                want["n_input"],
                want["n_scored"],
                want["start_idx"],
            ), (record["id"], key)
            if "input_ids" in want:
                assert list(item.prompt + item.text) == want["input_ids"]


@pytest.mark.parametrize("model", ["tiny_bart", "tiny_t5", "tiny_gpt2", "tiny_llama"])
def test_recorded_models_read_alike_in_any_batch(recorded, texts, model):
    "Means agree to 2e-6 in float32; in float64 every token does."
    pairs = [(doc["source"], doc[kind]) for doc in texts.values() for kind in ("summary", "reference")]
    for dtype in ("float32", "float64"):
        network = recorded(f"seed_systems/models/{model}", dtype)
        together, alone = score_tokens(network, pairs), [score_tokens(network, [pair])[0] for pair in pairs]
        close(means(together), means(alone), 2e-6)
        assert off(together, alone) <= (2e-6 if dtype == "float64" else 2e-5)


def test_numbers_over_the_vocabulary_are_those_of_the_peers(oracle):
    pooled = dict(
        RenyiNeg=lambda row: row["renyi"].mean() - 2 * np.log(row["V"]),
        FisherRao=lambda row: row["fisher_rao"].mean(),
        SelfCertainty=lambda row: -row["self_certainty"].mean(),
        BoostedProbSequence=lambda row: -row["dominant"].mean(),
    )
    seen = 0
    for case in (
        case for case in oracle("uncertainty.json")["information"] if "greedy_log_probs" in case["inputs"]
    ):
        tolerance = 2e-6 if "float32" in case["name"] else 1e-9
        for i, (rows, y) in enumerate(
            zip(case["inputs"]["greedy_log_probs"], case["inputs"]["greedy_tokens"])
        ):
            if not rows:
                continue
            log_probs = torch.tensor([[float(value) for value in row] for row in rows], dtype=torch.float64)
            got = {
                name: value.numpy()
                for name, value in _token_stats(
                    log_probs, torch.tensor(y), extra_stats=tuple(EXTRA_TOKEN_STATS)
                ).items()
            } | dict(V=log_probs.shape[1])
            for name, pooling in pooled.items():
                assert pooling(got) == pytest.approx(float(case["outputs"][name][i]), abs=tolerance), (
                    case["name"],
                    name,
                )
                seen += 1
    assert seen == 48


@pytest.mark.parametrize("kind", KINDS)
def test_a_logit_is_that_of_the_network(kind):
    "The one of the written token, before the softmax: also under the rules of the generation config"
    model = toy(kind)
    for scored, processed, (prefix, text) in zip(
        score_tokens(model, PAIRS[:4], extra_stats=("logit",)),
        score_tokens(model, PAIRS[:4], extra_stats=("logit",), logits="processed"),
        PAIRS,
    ):
        prompt, ids, *_ = forward.build_input(model, prefix, text)
        plain = forward._plain_logits(model, prompt, ids).detach()
        own = plain[np.arange(len(ids)), list(ids)]
        assert scored.extra_stats["logit"] == pytest.approx(own.numpy(), abs=1e-5)
        normal = plain.logsumexp(1).numpy()
        assert scored.extra_stats["logit"] - normal == pytest.approx(scored.logp, abs=1e-5)
        forced = processed.extra_stats["logit"] == 0
        assert processed.extra_stats["logit"][~forced] == pytest.approx(own.numpy()[~forced], abs=1e-5)


def test_further_numbers_come_with_each_text_and_not_with_members():
    model = toy("bart")
    plain, wide = (
        score_tokens(model, PAIRS[:4]),
        score_tokens(model, PAIRS[:4], extra_stats=("renyi", "allowed")),
    )
    assert all(
        np.array_equal(x.logp, y.logp)
        and list(y.extra_stats) == ["renyi", "allowed"]
        and y.extra_stats["renyi"].shape == y.logp.shape
        and (y.extra_stats["allowed"] == V).all()
        for x, y in zip(plain, wide)
    )
    with pytest.raises(ValueError, match="there is no statistic reny of a row"):
        score_tokens(model, PAIRS[:1], extra_stats=("reny",))
    with pytest.raises(ValueError, match="one network"):
        score_tokens(model, PAIRS[:1], extra_stats=("renyi",), members=[1])


def test_a_network_is_tried_on_words_where_its_tokenizer_has_some():
    llama = load_model(root() / "data" / "models" / "tiny-llama")
    prompts, texts = forward.tried_ids(llama)
    assert [llama.tokenizer.decode(ids) for ids in prompts + texts] == [*sum(forward.TRIED_TEXTS, ())]
    with_one_word = replace(llama, tokenizer=lambda text, **options: SimpleNamespace(input_ids=[3, 3]))
    assert forward.tried_ids(with_one_word) == forward.TRIED_IDS
