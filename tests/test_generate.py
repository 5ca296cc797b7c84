"""Local generation: texts depend on (seed, sample, k) and on nothing else, and are what the checkpoint and the settings say."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hyp
from hypothesis import strategies as st
from scipy import stats
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from uetrust.core.settings import oracles
from uetrust.core.store import BadShard, shard_about
from uetrust.generation import local as g
from uetrust.generation.bank import read_bank
from uetrust.generation.decoding import DEFAULT, HE2024, Decoding, key, resolved, stated
from uetrust.generation.local import about, fill, generate, gumbel, own_settings, prompts
from uetrust.models.load import fingerprint, fit, load, wrap

WORDS = "<s> </s> <pad> [ ] ".split() + [f"w{i}" for i in range(55)]
SAMPLES = pd.DataFrame(
    [
        dict(id=f"s{i}", source=" ".join(random.Random(i).choices(WORDS[5:], k=3 + 5 * (i % 7))))
        for i in range(20)
    ]
)
CHAT = "{% for m in messages %}[ {{ m['content'] }} ]{% endfor %}"


def tokenizer():
    t = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, "<pad>")),
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
    )
    t.backend_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return t


def tiny(kind, chat=False):
    "A model of 60 words, the same weights each time"
    torch.manual_seed(1)
    ends = dict(bos_token_id=0, eos_token_id=1, pad_token_id=2)
    if kind == "bart":
        m = BartForConditionalGeneration(
            BartConfig(
                vocab_size=60,
                d_model=32,
                encoder_layers=2,
                decoder_layers=2,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=64,
                decoder_ffn_dim=64,
                max_position_embeddings=96,
                decoder_start_token_id=1,
                forced_eos_token_id=1,
                init_std=0.3,
                **ends,
            )
        )
    if kind == "t5":
        m = T5ForConditionalGeneration(
            T5Config(
                vocab_size=60,
                d_model=32,
                d_kv=16,
                d_ff=64,
                num_layers=2,
                num_heads=2,
                decoder_start_token_id=2,
                initializer_factor=1.5,
                eos_token_id=1,
                pad_token_id=2,
            )
        )
    if kind == "llama":
        m = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=60,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=2,
                max_position_embeddings=96,
                initializer_range=0.3,
                **ends,
            )
        )
    t = tokenizer()
    t.model_max_length = 96
    if chat:
        t.chat_template = CHAT
    return wrap(m, t, kind)


S = Decoding(samples=4, max_new_tokens=12, prompt="w1 {source} w2")
KINDS = ["bart", "t5", "llama"]


def texts(rows):
    return {(r["sample"], r["kind"], r["k"]): tuple(r["ids"]) for r in rows}


def files(folder):
    return {p.name: p.read_bytes() for p in Path(folder).iterdir() if not p.name.startswith(".")}


# Texts depend on nothing else


@pytest.mark.parametrize("kind", KINDS)
def test_samples_do_not_depend_on_company_order_number_or_batch(kind):
    m = tiny(kind)
    all_ = texts(generate(m, SAMPLES, S, 8))
    assert texts(generate(m, SAMPLES[::-1], S, 8)) == all_
    alone = texts(generate(m, SAMPLES[5:6], S))
    assert alone == {k: v for k, v in all_.items() if k[0] == "s5"}
    more = texts(generate(m, SAMPLES[:6], replace(S, samples=7)))
    assert {k: v for k, v in more.items() if k[2] < 4} == {k: v for k, v in all_.items() if k in more}
    assert len({v for k, v in all_.items() if k[0] == "s5"}) > 1, "samples should differ from each other"


@pytest.mark.parametrize("kind", KINDS)
def test_seed_decides_the_drawn_texts_and_not_the_greedy_ones(kind):
    m = tiny(kind)
    a, b, c = (texts(generate(m, SAMPLES[:6], replace(S, seed=s))) for s in (1, 1, 2))
    assert a == b
    differ = {k[1] for k in a if a[k] != c[k]}
    assert differ == {"sample"} and sum(a[k] != c[k] for k in a) >= 20


def near_ties(m, samples, s):
    "Texts at batch 1 and batch 8, how many differ, and how many there are"
    a, b = (texts(generate(m, samples, s, n)) for n in (1, 8))
    assert a.keys() == b.keys()
    return sum(a[k] != b[k] for k in a), len(a)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_sizes_agree_but_for_near_ties(kind, record_property):
    differ, n = near_ties(tiny(kind), SAMPLES, replace(S, beams=3))
    record_property("near_ties", f"{differ} of {n}")
    assert n == 20 * (1 + 4 + 3) and differ <= n // 100


@pytest.mark.parametrize("name", ["tiny_bart", "tiny_t5", "tiny_llama", "tiny_gpt2"])
def test_trained_models_agree_across_batch_sizes_and_with_plain_transformers(name, record_property):
    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    m = load(str(oracles() / "seed_systems" / "models" / name), device="cpu")
    samples = pd.DataFrame(
        dict(
            id=list("abcdefgh"),
            source=["The council met on Tuesday. " * n for n in (1, 9, 4, 2, 12, 3, 7, 5)],
        )
    )
    s = replace(HE2024, samples=3, beams=3, max_new_tokens=20, max_prompt=100)
    differ, n = near_ties(m, samples, s)
    record_property("near_ties", f"{differ} of {n}")
    assert differ <= n // 50
    got = texts(generate(m, samples, s))
    for name_, (ids, _) in zip(samples["id"], prompts(m, list(samples["source"]), own_settings(m, s))):
        for kind, kw in (("greedy", {}), ("beam", dict(num_beams=3, num_return_sequences=3))):
            for k, theirs in enumerate(plain(m, ids, 20, min_length=2, **kw)):
                assert got[name_, kind, k] == theirs, (name_, kind, k)


def plain(m, ids, n, **kw):
    "Texts of transformers' generate, one prompt at a time, without anything of ours"
    pad = m.model.generation_config.pad_token_id
    with torch.inference_mode():
        out = m.model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=n,
            do_sample=False,
            pad_token_id=0 if pad is None else pad,
            **kw,
        )
    eos = m.model.generation_config.eos_token_id
    return [
        tuple(o[: o.index(eos) + 1] if eos in o else o)
        for o in (o.tolist() for o in out[:, len(ids) if m.kind == "causal" else 1 :])
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_and_beams_are_those_of_transformers(kind):
    m = tiny(kind)
    got = texts(generate(m, SAMPLES[:8], replace(S, beams=3)))
    for name, (ids, _) in zip(SAMPLES["id"][:8], prompts(m, list(SAMPLES["source"][:8]), S)):
        assert plain(m, ids, 12) == [got[name, "greedy", 0]]
        assert plain(m, ids, 12, num_beams=3, num_return_sequences=3) == [
            got[name, "beam", k] for k in range(3)
        ]


# The distribution is right


@pytest.mark.parametrize(
    "kw",
    [{}, dict(temperature=0.5), dict(top_k=5), dict(top_p=0.6), dict(temperature=1.5, top_k=20, top_p=0.8)],
)
def test_drawn_tokens_follow_the_filtered_distribution(kw):
    m, n = tiny("llama"), 4000
    s = resolved(Decoding(samples=n, max_new_tokens=1, prompt="{source}", **kw))
    rows = [r for r in generate(m, SAMPLES[2:3], s) if r["kind"] == "sample"]
    ((ids, _),) = prompts(m, list(SAMPLES["source"][2:3]), s)
    with torch.inference_mode():
        z = m.model(torch.tensor([ids])).logits[:, -1].double()
    p = g.warpers(s)(torch.tensor([ids]), z).softmax(1)[0].numpy()
    seen = np.bincount([r["ids"][0] for r in rows], minlength=60)
    assert not seen[p == 0].any() and (not kw.get("top_k") or (p > 0).sum() <= kw["top_k"])
    big = n * p >= 5
    expected, found = np.append(n * p[big], n * p[~big].sum()), np.append(seen[big], seen[~big].sum())
    keep = expected > 0
    assert stats.chisquare(found[keep], expected[keep]).pvalue > 1e-3


def test_noise_is_standard_gumbel_and_its_rows_and_steps_are_unrelated():
    x = gumbel(torch.tensor([key(42, "a", k) - (1 << 63) for k in range(40)]), 3, 5000).numpy()
    assert stats.kstest(x.ravel(), "gumbel_r").pvalue > 1e-3
    assert abs(np.corrcoef(x)[np.triu_indices(40, 1)]).max() < 5 / 5000**0.5
    y = gumbel(torch.tensor([key(42, "a", k) - (1 << 63) for k in range(40)]), 4, 5000).numpy()
    assert abs(np.corrcoef(x.ravel(), y.ravel())[0, 1]) < 5 / 200_000**0.5


def test_every_step_draws_anew():
    step = g.GumbelMax([7, None, 9], resolved(DEFAULT), "cpu")
    flat = torch.tensor([[0.0] * 49 + [1e-3]] * 3)
    drawn = [step(torch.zeros(3, 1), flat).argmax(1).tolist() for _ in range(40)]
    assert (
        len({d[0] for d in drawn}) > 15
        and {d[1] for d in drawn} == {49}
        and [d[0] for d in drawn] != [d[2] for d in drawn]
    )


@given(st.integers(), st.text(max_size=5), st.integers(0, 20))
def test_keys_fit_64_bits_and_differ_by_every_argument(seed, sample, k):
    a = key(seed, sample, k)
    assert (
        0 <= a < 2**64
        and len({a, key(seed + 1, sample, k), key(seed, sample + "x", k), key(seed, sample, k + 1)}) == 4
    )


# Prompts


@given(st.lists(st.sampled_from(WORDS[5:]), max_size=60), st.integers(2, 40), st.booleans())
@hyp(max_examples=40)
def test_the_closing_of_a_prompt_is_never_cut(words, limit, chat):
    m, source = tiny_for_prompts(chat), " ".join(words)
    ((ids, cut),) = prompts(
        m,
        [source],
        Decoding(prompt="{source} w9" if not chat else "{source}", max_prompt=limit, max_new_tokens=5),
    )
    got = m.tokenizer.convert_ids_to_tokens(ids)
    head, tail = (["["], ["]"]) if chat else ([], ["w9"])
    kept = words[: limit - len(head) - len(tail)]
    assert got == head + kept + tail and cut == len(words) - len(kept)


_made = {}


def tiny_for_prompts(chat):
    return _made.setdefault(chat, tiny("llama", chat))


def test_source_may_hold_braces_and_the_template_is_used_once():
    m = tiny("llama")
    ((ids, _),) = prompts(m, ["w5 {source} {x}"], S)
    assert m.tokenizer.convert_ids_to_tokens(ids) == ["w1", "w5", "<pad>", "<pad>", "w2"]


def test_truncation_is_counted_in_the_row():
    rows = generate(tiny("bart"), SAMPLES[:7], replace(S, max_prompt=10))
    n = {s.id: len(s.source.split()) for s in SAMPLES[:7].itertuples()}
    assert all(
        (r["cut"], r["truncated"]) == (max(n[r["sample"]] - 10, 0), n[r["sample"]] > 10) for r in rows
    ) and any(r["truncated"] for r in rows)


def test_a_prompt_that_cannot_fit_is_an_error_and_not_a_cut():
    with pytest.raises(ValueError, match="has 3 tokens, more than the 2 that fit"):
        fit(lambda s: f"w1 {s} w2 w3", lambda t: t.split(), "w9 w9", 2)
    with pytest.raises(ValueError, match="no room for max_new_tokens=96"):
        generate(tiny("llama"), SAMPLES, replace(S, max_new_tokens=96))
    with pytest.raises(ValueError, match="no room for max_new_tokens=96"):
        generate(tiny("bart"), SAMPLES, replace(S, max_new_tokens=96))
    with pytest.raises(ValueError, match=r"\['a'\] have an empty prompt"):
        generate(tiny("llama"), pd.DataFrame(dict(id=["a"], source=[""])), replace(S, prompt="{source}"))


# Rows


@pytest.mark.parametrize("kind", KINDS)
def test_finish_says_whether_the_model_ended_the_text(kind):
    rows = generate(tiny(kind), SAMPLES, replace(S, samples=8))
    for r in rows:
        assert (
            r["finish"]
            == ("stop" if r["ids"][-1] == 1 and not (kind == "bart" and len(r["ids"]) == 12) else "length")
            and 1 not in r["ids"][:-1]
        )
    assert {r["finish"] for r in rows} == {"stop", "length"}


def test_a_forced_end_is_a_cut_and_not_a_stop():
    rows = generate(tiny("bart"), SAMPLES, replace(S, max_new_tokens=2))
    assert all(r["ids"][-1] == 1 for r in rows) and {r["finish"] for r in rows if len(r["ids"]) == 2} == {
        "length"
    }


def test_out_of_memory_halves_the_batch_and_changes_no_text(monkeypatch):
    m, sizes, real = tiny("bart"), [], g.decode

    def small(model, ids_of, s, keys=None):
        sizes.append(len(ids_of))
        if len(ids_of) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(model, ids_of, s, keys)

    good = texts(generate(m, SAMPLES, S, 8))
    monkeypatch.setattr(g, "decode", small)
    assert texts(generate(m, SAMPLES, S, 8)) == good and sizes[:4] == [8, 4, 2, 2]


def test_an_encoder_cannot_write():
    m = tiny("llama")
    m.kind = "encoder"
    with pytest.raises(ValueError, match="of kind 'encoder': it cannot write"):
        generate(m, SAMPLES, S)


# Settings and provenance


def test_presets_resolve_against_the_checkpoint():
    m = tiny("llama")
    s = about(m, "d", "g", HE2024)["settings"]
    assert (s["temperature"], s["top_p"], s["top_k"], s["max_new_tokens"], s["min_length"], s["samples"]) == (
        1,
        1,
        50,
        100,
        2,
        10,
    )
    assert s["prompt"] == "Only give the summary of below text. \n {source}" and s["dtype"] == "float32"
    m.model.generation_config.update(temperature=0.6, top_p=0.9)
    s = about(m, "d", "g", HE2024)["settings"]
    assert (s["temperature"], s["top_p"], s["top_k"]) == (0.6, 0.9, 50)
    assert (
        about(m, "d", "g", DEFAULT)["settings"]["top_k"] == 0
        and about(tiny("bart"), "d", "g", HE2024)["settings"]["prompt"] == "{source}"
    )
    assert None not in stated(resolved(HE2024), "{source}").values()


def test_a_checkpoint_that_samples_by_default_does_not_disturb_ours():
    m = tiny("llama")
    good = texts(generate(m, SAMPLES[:5], S))
    m.model.generation_config.update(do_sample=True, temperature=0.3, top_k=2, num_beams=1, max_length=5)
    assert texts(generate(m, SAMPLES[:5], S)) == good


def test_new_weights_in_an_old_folder_are_another_revision(tmp_path):
    m, other = tiny("bart"), tiny("bart")
    assert fingerprint(m) == fingerprint(other)
    fill(tmp_path / "bank", "d", "bart", SAMPLES[:4], m, S, progress=False)
    with torch.no_grad():
        other.model.model.shared.weight[7, 0] += 1e-3
    assert fingerprint(m) != fingerprint(other)
    with pytest.raises(BadShard, match="revision: found"):
        fill(tmp_path / "bank", "d", "bart", SAMPLES[:4], other, S, progress=False)


def test_the_folder_of_a_model_is_not_in_its_provenance(tmp_path):
    m = tiny("llama")
    m.id = str(tmp_path / "models" / "my-llama")
    fill(tmp_path / "bank", "d", "llama", SAMPLES[:3], m, S, progress=False)
    found = shard_about(tmp_path / "bank" / "00000.parquet")
    assert found["model"] == "my-llama" and str(tmp_path) not in str(found) and found["made_with"]["torch"]


# Kill it

HARD = replace(S, samples=10, beams=3)


def one_worker(folder, i, n):
    fill(folder, "d", "bart", SAMPLES, tiny("bart"), HARD, size=2, worker=(i, n), progress=False)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
from test_generate import one_worker
one_worker(sys.argv[1], 1, 2)
"""


def test_killed_three_times_and_ended_by_two_workers_the_files_are_those_of_one_quiet_run(tmp_path):
    quiet, torn = tmp_path / "quiet", tmp_path / "torn"
    one_worker(quiet, 0, 1)

    def start(i, n):
        p = multiprocessing.get_context("fork").Process(target=one_worker, args=(torn, i, n))
        p.start()
        return p

    for n in (1, 3, 5):
        p = start(0, 1)
        while len(list(torn.glob("[0-9]*.parquet"))) < n:
            time.sleep(0.002)
        os.kill(p.pid, signal.SIGKILL)
        p.join()
        assert p.exitcode == -9 and len(list(torn.glob("[0-9]*.parquet"))) < 10, (
            "it was to be killed in the middle"
        )
    p = start(0, 2)  # the other worker is a new interpreter with another order of its sets
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(torn), str(Path(__file__).parent)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "7"},
        check=True,
    )
    p.join()
    assert p.exitcode == 0 and files(torn) == files(quiet) and len(files(quiet)) == 11
    assert len(read_bank(torn)) == 20 * (1 + 10 + 3)
