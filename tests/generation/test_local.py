"""Local generation: texts depend on seed, sample, number, checkpoint and settings, and on nothing else."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import stats

from tests.helpers.paths import ROOT
from tests.helpers.writers import SAMPLES, SETTINGS, WORDS, files, one_worker, tiny
from uetrust.core.settings import oracles
from uetrust.core.store import BadShard, shard_provenance
from uetrust.generation import local
from uetrust.generation.bank import read_bank
from uetrust.generation.decoding import HE2024_DECODING, Decoding, resolved_settings, text_seed
from uetrust.generation.local import (
    _gumbel_noise,
    checkpoint_settings,
    fill_local_bank,
    generate_texts,
    render_prompts,
)
from uetrust.models.load import fingerprint, fit_prompt, load_model

KINDS = ["bart", "t5", "llama"]


def texts(rows):
    return {(row["sample"], row["kind"], row["k"]): tuple(row["ids"]) for row in rows}


# Texts depend on nothing else
@pytest.mark.parametrize("kind", KINDS)
def test_samples_do_not_depend_on_company_order_number_or_batch(kind):
    model = tiny(kind)
    every = texts(generate_texts(model, SAMPLES, SETTINGS, 8))
    assert texts(generate_texts(model, SAMPLES[::-1], SETTINGS, 8)) == every
    alone = texts(generate_texts(model, SAMPLES[5:6], SETTINGS))
    assert alone == {name: ids for name, ids in every.items() if name[0] == "s5"}
    more = texts(generate_texts(model, SAMPLES[:6], replace(SETTINGS, samples=7)))
    assert {name: ids for name, ids in more.items() if name[2] < 4} == {
        name: ids for name, ids in every.items() if name in more
    }
    assert len({ids for name, ids in every.items() if name[0] == "s5"}) > 1, (
        "samples should differ from each other"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_seed_decides_the_drawn_texts_and_not_the_greedy_ones(kind):
    model = tiny(kind)
    first, again, other = (
        texts(generate_texts(model, SAMPLES[:6], replace(SETTINGS, seed=seed))) for seed in (1, 1, 2)
    )
    assert first == again
    differ = {name[1] for name in first if first[name] != other[name]}
    assert differ == {"sample"} and sum(first[name] != other[name] for name in first) >= 20


def calls_of_generate(model, monkeypatch):
    "The number of texts in each call of `generate` from now on."
    local.check_generation(model)  # Tries a batch of its own, once
    rows, real = [], model.model.generate

    def counted(**given):
        found = real(**given)
        rows.append(len(found))
        return found

    monkeypatch.setattr(model.model, "generate", counted)
    return rows


RULES = dict(
    none={},
    ngrams=dict(no_repeat_ngram_size=2),
    penalty=dict(repetition_penalty=1.3),
    shortest=dict(min_length=9),
    forced=dict(forced_eos_token_id=1, forced_bos_token_id=7),
)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_ended_leave_the_batch_and_change_no_other(kind, rules, monkeypatch):
    model, settings = tiny(kind), replace(SETTINGS, samples=9, max_new_tokens=30)
    model.model.generation_config.update(eos_token_id=[1, *range(50, 60)], **RULES[rules])
    rows = calls_of_generate(model, monkeypatch)
    left = texts(generate_texts(model, SAMPLES, settings, 20))
    assert len(rows) > 1 and rows[0] == 200 and all(2 * later <= row for row, later in zip(rows, rows[1:]))
    monkeypatch.setattr(local, "_continues_alike", lambda config: False)
    rows.clear()
    assert texts(generate_texts(model, SAMPLES, settings, 20)) == left and rows == [200]


def sources_attended_to(monkeypatch):
    "A list that gets (texts, sources) of each attention of several texts to fewer sources"
    seen, attend = [], local.sdpa_attention_forward

    def counted(module, query, key, *args, **options):
        if options.get("is_causal") is False:
            seen.append((len(query) * query.shape[2], len(key)))
        return attend(module, query, key, *args, **options)

    monkeypatch.setattr(local, "sdpa_attention_forward", counted)
    return seen


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_texts_of_a_source_attend_to_one_copy_of_it_and_are_the_same(kind, rules, monkeypatch):
    model, settings = tiny(kind), replace(SETTINGS, samples=9, max_new_tokens=30)
    model.model.generation_config.update(eos_token_id=[1, *range(50, 60)], **RULES[rules])
    local.check_generation(model)
    seen = sources_attended_to(monkeypatch)
    once = texts(generate_texts(model, SAMPLES, settings, 20))
    assert model.shares_sources and set(seen) == {(200, 20)}
    assert model.model.config._attn_implementation == "sdpa"
    model.shares_sources = False
    seen.clear()
    assert texts(generate_texts(model, SAMPLES, settings, 20)) == once and not seen


def test_a_network_that_cannot_attend_to_one_copy_gets_copies(monkeypatch):
    eager, broken = tiny("bart"), tiny("bart")
    eager.model.set_attn_implementation("eager")
    monkeypatch.setattr(broken.model, "set_attn_implementation", lambda name: None)
    expected = texts(generate_texts(tiny("bart"), SAMPLES, SETTINGS))
    seen = sources_attended_to(monkeypatch)
    for model in (eager, broken):
        assert texts(generate_texts(model, SAMPLES, SETTINGS)) == expected
        assert not model.shares_sources and model.pads_prompts
    assert not seen


@pytest.mark.parametrize(
    "rule", [dict(begin_suppress_tokens=[7]), dict(min_new_tokens=3), dict(bad_words_ids=[[8, 9]])], ids=str
)
def test_a_batch_stays_whole_under_rules_that_count_from_the_call(rule, monkeypatch):
    model = tiny("llama")
    model.model.generation_config.update(**rule)
    rows = calls_of_generate(model, monkeypatch)
    generate_texts(model, SAMPLES[:4], SETTINGS, 4)
    assert rows == [20]


def test_keys_of_a_prompt_grow_in_place_but_in_a_sliding_window():
    from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer

    whole, window = DynamicLayer(), DynamicSlidingWindowLayer(sliding_window=4)
    cache, tokens, places = Cache(layers=[whole, window]), torch.randn(2, 1, 9, 3), []
    for layer in (0, 1):
        cache.update(tokens[:, :, :6], -tokens[:, :, :6], layer)
    cache = local._with_room(cache)
    for i in (6, 7, 8):
        for layer in (0, 1):
            keys, values = cache.update(tokens[:, :, i : i + 1], -tokens[:, :, i : i + 1], layer)
            seen = tokens[:, :, : i + 1] if layer == 0 else tokens[:, :, i - 3 : i + 1]
            assert torch.equal(keys, seen) and torch.equal(values, -seen)
        places.append(cache.layers[0].keys.data_ptr())
    assert len(set(places)) == 1, "a step copied the tokens before it"
    assert cache.get_seq_length(0) == 9 and cache.layers[1].keys.shape[-2] == 3


def near_ties(model, samples, settings):
    "Texts at batch 1 and batch 8, how many differ, and how many there are"
    single, batched = (texts(generate_texts(model, samples, settings, n)) for n in (1, 8))
    assert single.keys() == batched.keys()
    return sum(single[name] != batched[name] for name in single), len(single)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_sizes_agree_but_for_near_ties(kind, record_property):
    differ, total = near_ties(tiny(kind), SAMPLES, replace(SETTINGS, beams=3))
    record_property("near_ties", f"{differ} of {total}")
    assert total == 20 * (1 + 4 + 3) and differ <= total // 100


@pytest.mark.parametrize("name", ["tiny_bart", "tiny_t5", "tiny_llama", "tiny_gpt2"])
def test_trained_models_agree_across_batch_sizes_and_with_plain_transformers(name, record_property):
    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    model = load_model(str(oracles() / "seed_systems" / "models" / name), device="cpu")
    samples = pd.DataFrame(
        dict(
            id=list("abcdefgh"),
            source=["The council met on Tuesday. " * total for total in (1, 9, 4, 2, 12, 3, 7, 5)],
        )
    )
    settings = replace(HE2024_DECODING, samples=3, beams=3, max_new_tokens=20, max_prompt=100)
    differ, total = near_ties(model, samples, settings)
    record_property("near_ties", f"{differ} of {total}")
    assert differ <= total // 50
    got = texts(generate_texts(model, samples, settings))
    for sample, (ids, _) in zip(
        samples["id"], render_prompts(model, list(samples["source"]), checkpoint_settings(model, settings))
    ):
        for kind, options in (("greedy", {}), ("beam", dict(num_beams=3, num_return_sequences=3))):
            for k, theirs in enumerate(plain(model, ids, 20, min_length=2, **options)):
                assert got[sample, kind, k] == theirs, (sample, kind, k)


def plain(model, ids, n, **options):
    "Texts of transformers' generate, one prompt at a time, without anything of ours"
    pad = model.model.generation_config.pad_token_id
    with torch.inference_mode():
        out = model.model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=n,
            do_sample=False,
            pad_token_id=0 if pad is None else pad,
            **options,
        )
    eos = model.model.generation_config.eos_token_id
    return [
        tuple(ids_out[: ids_out.index(eos) + 1] if eos in ids_out else ids_out)
        for ids_out in (ids_out.tolist() for ids_out in out[:, len(ids) if model.kind == "causal" else 1 :])
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_and_beams_are_those_of_transformers(kind):
    model = tiny(kind)
    got = texts(generate_texts(model, SAMPLES[:8], replace(SETTINGS, beams=3)))
    for name, (ids, _) in zip(
        SAMPLES["id"][:8], render_prompts(model, list(SAMPLES["source"][:8]), SETTINGS)
    ):
        assert plain(model, ids, 12) == [got[name, "greedy", 0]]
        assert plain(model, ids, 12, num_beams=3, num_return_sequences=3) == [
            got[name, "beam", k] for k in range(3)
        ]


# The distribution is right
@pytest.mark.parametrize(
    "options",
    [{}, dict(temperature=0.5), dict(top_k=5), dict(top_p=0.6), dict(temperature=1.5, top_k=20, top_p=0.8)],
)
def test_drawn_tokens_follow_the_filtered_distribution(options):
    model, n = tiny("llama"), 4000
    settings = resolved_settings(Decoding(samples=n, max_new_tokens=1, prompt="{source}", **options))
    rows = [row for row in generate_texts(model, SAMPLES[2:3], settings) if row["kind"] == "sample"]
    ((ids, _),) = render_prompts(model, list(SAMPLES["source"][2:3]), settings)
    with torch.inference_mode():
        logits = model.model(torch.tensor([ids])).logits[:, -1].double()
    probs = local._sampling_processors(settings)(torch.tensor([ids]), logits).softmax(1)[0].numpy()
    seen = np.bincount([row["ids"][0] for row in rows], minlength=60)
    assert not seen[probs == 0].any() and (not options.get("top_k") or (probs > 0).sum() <= options["top_k"])
    big = n * probs >= 5
    expected, found = np.append(n * probs[big], n * probs[~big].sum()), np.append(seen[big], seen[~big].sum())
    keep = expected > 0
    assert stats.chisquare(found[keep], expected[keep]).pvalue > 1e-3


def test_noise_is_standard_gumbel_and_its_rows_and_steps_are_unrelated():
    keys = torch.tensor([[text_seed(42, "a", k) - (1 << 63)] for k in range(40)])
    noise = _gumbel_noise(keys, torch.arange(15_000, 20_000)).numpy()
    assert stats.kstest(noise.ravel(), "gumbel_r").pvalue > 1e-3
    assert abs(np.corrcoef(noise)[np.triu_indices(40, 1)]).max() < 5 / 5000**0.5
    later = _gumbel_noise(keys, torch.arange(20_000, 25_000)).numpy()
    assert abs(np.corrcoef(noise.ravel(), later.ravel())[0, 1]) < 5 / 200_000**0.5


def test_noise_is_finite_where_the_hash_is_largest():
    "In float32 these numbers of stream 1 are rounded to a uniform number of 1, and their noise is infinite."
    noise = _gumbel_noise(torch.tensor(1), torch.tensor([14889097, 16882229, 29027250]))
    assert noise.dtype == torch.float64 and (noise < 25).all() and (noise > 17).all()


# Prompts
@given(st.lists(st.sampled_from(WORDS[5:]), max_size=60), st.integers(2, 40), st.booleans())
@hypothesis_settings(max_examples=40)
def test_the_closing_of_a_prompt_is_never_cut(words, limit, chat):
    model, source = tiny_for_prompts(chat), " ".join(words)
    ((ids, cut),) = render_prompts(
        model,
        [source],
        Decoding(prompt="{source} w9" if not chat else "{source}", max_prompt=limit, max_new_tokens=5),
    )
    got = model.tokenizer.convert_ids_to_tokens(ids)
    head, tail = (["["], ["]"]) if chat else ([], ["w9"])
    kept = words[: limit - len(head) - len(tail)]
    assert got == head + kept + tail and cut == len(words) - len(kept)


_made = {}


def tiny_for_prompts(chat):
    return _made.setdefault(chat, tiny("llama", chat))


def test_source_may_hold_braces_and_the_template_is_used_once():
    model = tiny("llama")
    ((ids, _),) = render_prompts(model, ["w5 {source} {x}"], SETTINGS)
    assert model.tokenizer.convert_ids_to_tokens(ids) == ["w1", "w5", "<pad>", "<pad>", "w2"]


def test_truncation_is_counted_in_the_row():
    rows = generate_texts(tiny("bart"), SAMPLES[:7], replace(SETTINGS, max_prompt=10))
    lengths = {sample.id: len(sample.source.split()) for sample in SAMPLES[:7].itertuples()}
    assert all(
        (row["cut"], row["truncated"]) == (max(lengths[row["sample"]] - 10, 0), lengths[row["sample"]] > 10)
        for row in rows
    ) and any(row["truncated"] for row in rows)


def test_a_prompt_that_cannot_fit_is_an_error_and_not_a_cut():
    with pytest.raises(ValueError, match="has 3 tokens, more than the 2 that fit"):
        fit_prompt(lambda source: f"w1 {source} w2 w3", lambda prompt: prompt.split(), "w9 w9", 2)
    with pytest.raises(ValueError, match="no room for max_new_tokens=96"):
        generate_texts(tiny("llama"), SAMPLES, replace(SETTINGS, max_new_tokens=96))
    with pytest.raises(ValueError, match="no room for max_new_tokens=96"):
        generate_texts(tiny("bart"), SAMPLES, replace(SETTINGS, max_new_tokens=96))
    with pytest.raises(ValueError, match=r"\['a'\] have an empty prompt"):
        generate_texts(
            tiny("llama"), pd.DataFrame(dict(id=["a"], source=[""])), replace(SETTINGS, prompt="{source}")
        )


# Rows
@pytest.mark.parametrize("kind", KINDS)
def test_finish_says_whether_the_model_ended_the_text(kind):
    rows = generate_texts(tiny(kind), SAMPLES, replace(SETTINGS, samples=8))
    for row in rows:
        assert (
            row["finish"]
            == (
                "stop" if row["ids"][-1] == 1 and not (kind == "bart" and len(row["ids"]) == 12) else "length"
            )
            and 1 not in row["ids"][:-1]
        )
    assert {row["finish"] for row in rows} == {"stop", "length"}


def test_a_forced_end_is_a_cut_and_not_a_stop():
    rows = generate_texts(tiny("bart"), SAMPLES, replace(SETTINGS, max_new_tokens=2))
    assert all(row["ids"][-1] == 1 for row in rows) and {
        row["finish"] for row in rows if len(row["ids"]) == 2
    } == {"length"}


@pytest.mark.parametrize("kind", ["llama", "bart", "t5"])
def test_a_stopping_criterion_ends_texts_where_it_says(kind):
    def stop(input_ids, scores, **options):
        steps.append(input_ids[:, -1].tolist())
        return torch.full((len(input_ids),), len(steps) == 3)

    model, steps, keys = tiny(kind), [], [[None, 1, 2, 3]]
    found = local.decode_batch(model, [[5, 6, 7]], SETTINGS, keys, [stop])[0]
    whole = local.decode_batch(model, [[5, 6, 7]], SETTINGS, keys)[0]
    assert len(steps) == 3 and [text[:3] for text in found] == [text[:3] for text in whole]
    assert max(map(len, found)) == 3 < max(map(len, whole))


def test_out_of_memory_halves_the_batch_and_changes_no_text(monkeypatch):
    model, sizes, real = tiny("bart"), [], local.decode_batch

    def small(model, ids_of, settings, keys=None):
        sizes.append(len(ids_of))
        if len(ids_of) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(model, ids_of, settings, keys)

    good = texts(generate_texts(model, SAMPLES, SETTINGS, 8))
    monkeypatch.setattr(local, "decode_batch", small)
    assert texts(generate_texts(model, SAMPLES, SETTINGS, 8)) == good and sizes[:4] == [8, 4, 2, 2]


def test_an_encoder_cannot_write():
    model = tiny("llama")
    model.kind = "encoder"
    with pytest.raises(ValueError, match="of kind 'encoder': it cannot write"):
        generate_texts(model, SAMPLES, SETTINGS)


def test_a_checkpoint_that_samples_by_default_does_not_disturb_ours():
    model = tiny("llama")
    good = texts(generate_texts(model, SAMPLES[:5], SETTINGS))
    model.model.generation_config.update(do_sample=True, temperature=0.3, top_k=2, num_beams=1, max_length=5)
    assert texts(generate_texts(model, SAMPLES[:5], SETTINGS)) == good


def test_new_weights_in_an_old_folder_are_another_revision(tmp_path):
    model, other = tiny("bart"), tiny("bart")
    assert fingerprint(model) == fingerprint(other)
    fill_local_bank(tmp_path / "bank", "d", "bart", SAMPLES[:4], model, SETTINGS, progress=False)
    with torch.no_grad():
        other.model.model.shared.weight[7, 0] += 1e-3
    assert fingerprint(model) != fingerprint(other)
    with pytest.raises(BadShard, match="revision: found"):
        fill_local_bank(tmp_path / "bank", "d", "bart", SAMPLES[:4], other, SETTINGS, progress=False)


def test_the_folder_of_a_model_is_not_in_its_provenance(tmp_path):
    model = tiny("llama")
    model.id = str(tmp_path / "models" / "my-llama")
    fill_local_bank(tmp_path / "bank", "d", "llama", SAMPLES[:3], model, SETTINGS, progress=False)
    found = shard_provenance(tmp_path / "bank" / "00000.parquet")
    assert found["model"] == "my-llama" and str(tmp_path) not in str(found) and found["made_with"]["torch"]


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.helpers.writers import one_worker
one_worker(sys.argv[1], 1, 2)
"""


def test_killed_three_times_and_ended_by_two_workers_the_files_are_those_of_one_quiet_run(tmp_path):
    quiet, torn = tmp_path / "quiet", tmp_path / "torn"
    one_worker(quiet, 0, 1)

    def start(i, n):
        process = multiprocessing.get_context("fork").Process(target=one_worker, args=(torn, i, n))
        process.start()
        return process

    for n in (1, 3, 5):
        process = start(0, 1)
        while len(list(torn.glob("[0-9]*.parquet"))) < n:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -9 and len(list(torn.glob("[0-9]*.parquet"))) < 10, (
            "it was to be killed in the middle"
        )
    process = start(0, 2)  # the other worker is a new interpreter with another order of its sets
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(torn), str(ROOT)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "7"},
        check=True,
    )
    process.join()
    assert process.exitcode == 0 and files(torn) == files(quiet) and len(files(quiet)) == 11
    assert len(read_bank(torn)) == 20 * (1 + 10 + 3)
