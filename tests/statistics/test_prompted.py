"""Prompted statistics, attention, Focus and beams: equal to a plain forward pass over one text at a time.

They do not depend on the order of work.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.helpers.prompted import THREE, D, kind_of
from tests.helpers.readings import framed
from tests.helpers.writers import SAMPLES, S, files, tiny
from uetrust.core.settings import root
from uetrust.generation.local import fill_local_bank
from uetrust.models.load import load_model
from uetrust.scoring.methods import score_generations
from uetrust.statistics.beams import compute_beams
from uetrust.statistics.generator import ATTENTION_STATISTICS, PASSES
from uetrust.statistics.passes import compute_attention, compute_focus, compute_keywords, compute_likelihoods
from uetrust.statistics.prompted import (
    compute_elicited_attention,
    compute_replies,
    local_answerer,
    rating_to_percent,
    split_question,
)
from uetrust.statistics.scores import load_scores
from uetrust.statistics.table import read_statistics
from uetrust.ue.reflexive import verbalized_2s

reg = load_scores()
ASK = "Bulletin: {source} Summary: {summary} Is the summary true? Answer True or False."
RATE = "Bulletin: {source} Summary: {summary} Rate the consistency of the summary from 1 to 5."


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    model = load_model(root() / "data" / "models" / "tiny-llama", device="cpu")
    return model, fill_local_bank(
        tmp_path_factory.mktemp("chat") / "texts", "bulletin", "llama", THREE, model, D, progress=False
    )


def test_questions_to_a_model_stand_after_its_system_message(llama, tmp_path):
    from uetrust.core.store import Store
    from uetrust.statistics.prompted import compute_p_true, question_prompt

    model, bank = llama
    settings = replace(D, system="Be strict.")
    ids, _ = question_prompt(model, "Is it true? {source}", "w", settings)
    assert model.tokenizer.decode(ids).startswith("<s>[INST] Be strict.[/INST][INST] Is it true?")
    assert split_question(model, ASK, "w", "Be strict.")[0].startswith("<s>[INST] Be strict. [/INST][INST] B")
    for compute in (compute_p_true, compute_elicited_attention):
        own, without = (
            compute(tmp_path / compute.__name__ / name, bank, THREE, model, ASK, how, progress=False)
            for name, how in dict(own=settings, without=D).items()
        )
        abouts = [Store(folder, "readings").manifest()["about"] for folder in (own, without)]
        assert abouts[0]["system"] == "Be strict." and "system" not in abouts[1]
        tables = [read_statistics(folder).drop(columns=["sample", "kind", "k"]) for folder in (own, without)]
        assert str(tables[0].to_dict()) != str(tables[1].to_dict())


def test_a_question_looks_where_a_plain_pass_looks(llama, tmp_path):
    model, bank = llama
    got = read_statistics(
        compute_elicited_attention(tmp_path / "x", bank, THREE, model, ASK, D, progress=False)
    ).set_index("sample")
    after = model.tokenizer(
        " Is the summary true? Answer True or False. [/INST]", add_special_tokens=False
    ).input_ids
    model.model.set_attn_implementation("eager")
    try:
        for sample in THREE.itertuples():
            ids = np.array(kind_of(bank, "greedy").at[sample.id, "ids"])
            words = ~np.isin(
                ids, model.tokenizer.all_special_ids
            )  # A text that was ended by the limit has no end token
            assert words.sum() >= len(ids) - 1 and got.at[sample.id, "cut"] == 0
            before = model.tokenizer(
                f"<s>[INST] Bulletin: {sample.source} Summary:", add_special_tokens=False
            ).input_ids
            with torch.no_grad():
                weights = (
                    torch.cat(
                        model.model(
                            torch.tensor([[*before, *ids[words], *after]]), output_attentions=True
                        ).attentions
                    )
                    .mean((0, 1))[-1]
                    .numpy()
                )
            want = np.zeros(len(ids))
            want[words] = weights[len(before) : len(before) + words.sum()]
            np.testing.assert_allclose(got.at[sample.id, "elicited_attention"], want, atol=1e-6)
    finally:
        model.model.set_attn_implementation("sdpa")


def test_of_a_long_source_only_its_end_is_cut_from_a_question(llama, tmp_path):
    model, bank = llama
    few = replace(D, max_prompt=60)
    got = read_statistics(
        compute_elicited_attention(tmp_path / "x", bank, THREE, model, ASK, few, progress=False)
    )
    whole = read_statistics(
        compute_elicited_attention(tmp_path / "y", bank, THREE, model, ASK, D, progress=False)
    )
    assert (got["cut"] > 0).all() and not any(
        np.allclose(short, long)
        for short, long in zip(got["elicited_attention"], whole["elicited_attention"])
    )
    said = [(~np.isin(ids, model.tokenizer.all_special_ids)).sum() for ids in kind_of(bank, "greedy")["ids"]]
    for sample, n, cut in zip(THREE.itertuples(), said, got["cut"]):
        assert (
            sum(
                len(model.tokenizer(part, add_special_tokens=False).input_ids)
                for part in split_question(model, ASK, sample.source)
            )
            + n
            - cut
            == 60
        )


@pytest.mark.parametrize(
    "ask",
    ["{source} is {summary}", "{summary} of {source}?", "{source}?", "{source} {summary} or {summary}?"],
)
def test_a_question_that_cannot_look_back_is_refused(llama, ask, tmp_path):
    model, bank = llama
    with pytest.raises(ValueError, match="needs {source} before {summary} and words behind it"):
        compute_elicited_attention(tmp_path / "x", bank, THREE, model, ask, D, progress=False)


def test_attention_belongs_to_the_tokens_of_the_writer(llama, tmp_path):
    _, bank = llama
    with pytest.raises(ValueError, match="was not written by llama"):
        compute_elicited_attention(
            tmp_path / "x", bank, THREE, tiny("llama"), "w1 {source} w2 {summary} w3", D, progress=False
        )


def test_replies_are_what_plain_generation_gives_and_are_read_strictly(llama, tmp_path):
    model, bank = llama
    got = read_statistics(
        compute_replies(
            tmp_path / "x",
            bank,
            THREE,
            RATE,
            local_answerer(model, replace(D, max_new_tokens=8)),
            dict(title="verbal_2s"),
            ("1", "5"),
            progress=False,
        )
    ).set_index("sample")
    for sample in THREE.itertuples():
        text = kind_of(bank, "greedy").at[sample.id, "text"]
        ids = model.tokenizer(
            f"<s>[INST] Bulletin: {sample.source} Summary: {text} "
            "Rate the consistency of the summary from 1 to 5. [/INST]",
            add_special_tokens=False,
            return_tensors="pt",
        ).input_ids
        with torch.no_grad():
            out = model.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False
            )[0, ids.shape[1] :]
        reply = model.tokenizer.decode(out, skip_special_tokens=True).strip()
        assert got.at[sample.id, "reply"] == reply and reply in "12345", (
            "it was taught to answer with one number"
        )
        assert verbalized_2s(got.at[sample.id, "stated"]) == pytest.approx(1 - (int(reply) - 1) / 4)


@pytest.mark.parametrize(
    "reply,stated",
    [
        ("1", "0%"),
        ("5", "100%"),
        ("3.", "50%"),
        ("0", ""),
        ("6", ""),
        ("-1", ""),
        ("4 or 5", ""),
        ("", ""),
        ("four", ""),
        ("4/5", ""),
    ],
)
def test_a_reply_off_the_scale_is_missing(reply, stated):
    assert rating_to_percent(reply, ("1", "5")) == stated


# Order of work


def every(model, texts, out, **options):
    "Each reading that a causal or sequence-to-sequence model gives"
    compute_likelihoods(
        out / "sample_hidden",
        texts,
        SAMPLES[:7],
        model,
        PASSES["sample_hidden"],
        S,
        progress=False,
        **options,
    )
    for name in [name for name in ATTENTION_STATISTICS if name != "lookback" or model.kind == "causal"]:
        compute_attention(out / name, texts, SAMPLES[:7], model, S, name, progress=False, **options)
    compute_focus(out / "focus", texts, SAMPLES[:7], model, S, SAMPLES["source"], progress=False, **options)
    compute_keywords(
        out / "keywords",
        texts,
        model.tokenizer,
        lambda drawn: [[(0, 2)] for _ in drawn],
        "two letters",
        progress=False,
        **options,
    )
    compute_replies(
        out / "verbal_2s",
        texts,
        SAMPLES[:7],
        "w1 {source} w2 {summary} w3",
        local_answerer(model, S),
        dict(title="verbal_2s"),
        progress=False,
        **options,
    )
    compute_replies(
        out / "verbal_1s",
        texts,
        SAMPLES[:7],
        "w1 {source} w3",
        local_answerer(model, S),
        dict(title="verbal_1s"),
        progress=False,
        **options,
    )
    if model.kind == "causal":
        compute_elicited_attention(
            out / "elicited",
            texts,
            SAMPLES[:7],
            model,
            "w1 {source} w2 {summary} w3",
            S,
            progress=False,
            **options,
        )
    else:
        compute_beams(
            out / "beams", texts, SAMPLES[:7], model, S, beams=2, members=2, progress=False, **options
        )
    return out


@pytest.mark.parametrize("kind", ["bart", "llama"])
def test_same_bytes_for_any_number_of_workers_and_after_a_restart(kind, tmp_path):
    model = framed(kind)
    texts = fill_local_bank(
        tmp_path / "one" / "texts", "toy", kind, SAMPLES[:7], model, S, size=3, progress=False
    )
    one, many = every(model, texts, tmp_path / "one"), tmp_path / "many"
    for worker in ((1, 2), (0, 2)):
        every(model, texts, many, worker=worker)
    names = [path.name for path in many.iterdir()]
    whole = {name: files(one / name) for name in names}
    assert (
        len(names) == 8 + (kind == "llama")
        and {name: files(many / name) for name in names} == whole
        and all(len(contents) == 4 for contents in whole.values())
    )
    for name in names:
        (one / name / "00001.parquet").unlink()
    every(model, texts, one)
    assert {name: files(one / name) for name in names} == whole
    scores = score_generations(one, samples=SAMPLES, reg=reg, progress=False)
    table = scores.table
    made = {"eigen_score", "focus", "verbalized_1s", "verbalized_2s"} | (
        {"t_tu_he2024", "t_rmi_he2024", "s_tu_he2024", "s_rmi_he2024"} if kind == "bart" else set()
    )
    assert made <= set(table["name"]) and "csl" in scores.missing, (
        "the weights of csl need log p of the same tokens"
    )
    assert (
        table[table["name"].isin(["verbalized_1s", "verbalized_2s"])]["note"].str.contains(
            "no confidence|scale"
        )
    ).all(), "words without a number say nothing, and are missing"
    if kind == "bart":
        assert table[table["name"].str.endswith("_he2024") & table["name"].isin(made)]["value"].notna().all()
