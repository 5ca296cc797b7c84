"""Stored statistics are those of these very texts, in any order of work, and outdated files are refused."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig, BertForMaskedLM

from tests.helpers.readings import encoder, framed
from tests.helpers.writers import SAMPLES, S, files, tiny
from uetrust.cli.cli import main
from uetrust.core.scores import unique_texts
from uetrust.core.store import BadShard
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank, read_bank
from uetrust.generation.local import fill_local_bank, render_prompts
from uetrust.models.classifiers import entailment_logits, nli_pairs
from uetrust.models.encode import NLI_CLASSES, embed_texts, nli_order
from uetrust.models.forward import score_tokens
from uetrust.models.load import fingerprint, load_model
from uetrust.papers.bulletins.tables import entailed_shares
from uetrust.statistics.compare import (
    compute_embeddings,
    compute_entailments,
    compute_relevance,
    compute_sentence_entailments,
)
from uetrust.statistics.passes import compute_likelihoods, reference_bank
from uetrust.statistics.table import (
    PASSES,
    ForwardPass,
    get_pass,
    read_statistics,
    rows_to_table,
    table_to_frame,
    texts_by_shard,
    write_statistics,
)

FEW = SAMPLES[:7].assign(reference=[s[:11] for s in SAMPLES["source"][:7]])
KINDS = ["bart", "t5", "llama"]


@pytest.fixture(scope="module", params=KINDS)
def written(request, tmp_path_factory):
    "(model, folder of its bank)"
    model = framed(request.param)
    return model, fill_local_bank(
        tmp_path_factory.mktemp(request.param) / "bank",
        "toy",
        request.param,
        FEW,
        model,
        S,
        size=3,
        progress=False,
    )


# Tables
arrays = st.integers(0, 3).flatmap(
    lambda n: st.lists(st.lists(st.floats(-9, 9, width=32), min_size=2, max_size=2), min_size=n, max_size=n)
)


@given(st.lists(arrays, min_size=1, max_size=4))
def test_arrays_come_back_as_they_were(drawn):
    rows = [
        dict(sample=str(i), a=np.array(x, "float32").reshape(-1, 2), b=np.arange(len(x), dtype="int32"))
        for i, x in enumerate(drawn)
    ]
    back = table_to_frame(rows_to_table(rows))
    for record, found in zip(rows, back.to_dict("records")):
        assert (
            found["sample"] == record["sample"]
            and np.array_equal(found["b"], record["b"])
            and np.array_equal(found["a"].reshape(-1, 2), record["a"])
        )
        if len(record["a"]):
            assert found["a"].shape == record["a"].shape and found["a"].dtype == np.float32


def test_passes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="got \\['best'\\]"):
        ForwardPass(("best",))
    with pytest.raises(ValueError, match="after one of .* got 'lunch'"):
        ForwardPass(after="lunch")
    with pytest.raises(LookupError, match="no pass 'owm'; there are"):
        get_pass("owm")


# Likelihoods
def test_stored_numbers_are_those_of_reading_the_bank_s_ids_after_the_generator_s_prompt(written, tmp_path):
    model, bank = written
    got = read_statistics(
        compute_likelihoods(
            tmp_path / "conditional", bank, FEW, model, PASSES["conditional"], S, progress=False
        )
    )
    texts = read_bank(bank)
    asked = dict(zip(FEW["id"], (ids for ids, _ in render_prompts(model, list(FEW["source"]), S))))
    want = [
        reading
        for df in texts_by_shard(bank).values()
        for reading in score_tokens(
            model, [(asked[text.sample], text.ids) for text in df.itertuples()], topk=10
        )
    ]  # Shard by shard: the same batches
    assert (
        list(zip(got["sample"], got["kind"], got["k"]))
        == list(zip(texts["sample"], texts["kind"], texts["k"]))
        and got.attrs["about"]["own"]
    )
    for record, ids, reading in zip(got.itertuples(), texts["ids"], want):
        assert record.ids.tolist() == ids and record.top_ids.shape == (len(ids), 10)
        for stored, computed in (
            (record.logp, reading.logp),
            (record.entropy, reading.entropy),
            (record.top_logp, reading.top_logp.astype("float32")),
        ):
            assert np.array_equal(stored, computed)


def test_same_bytes_for_any_number_of_workers_and_after_a_restart(written, tmp_path):
    model, bank = written
    for worker in ((2, 3), (0, 3), (1, 3)):
        compute_likelihoods(
            tmp_path / "many", bank, FEW, model, PASSES["conditional"], S, worker=worker, progress=False
        )
    one = compute_likelihoods(tmp_path / "one", bank, FEW, model, PASSES["conditional"], S, progress=False)
    whole = files(one)
    assert files(tmp_path / "many") == whole and len(whole) == 4
    (one / "00001.parquet").unlink()
    kept = (one / "00000.parquet").stat().st_mtime_ns
    compute_likelihoods(one, bank, FEW, model, PASSES["conditional"], S, progress=False)
    assert files(one) == whole and (one / "00000.parquet").stat().st_mtime_ns == kept


def test_alone_knows_nothing_of_the_source_and_members_differ_from_each_other(written, tmp_path):
    model, bank = written
    alone = read_statistics(
        compute_likelihoods(
            tmp_path / "unconditional", bank, FEW, model, PASSES["unconditional"], S, progress=False
        )
    ).set_index("sample")
    own = read_statistics(
        compute_likelihoods(
            tmp_path / "conditional",
            bank,
            FEW,
            model,
            replace(PASSES["conditional"], kinds=("greedy",)),
            S,
            progress=False,
        )
    ).set_index("sample")
    ids = read_bank(bank).query("kind=='greedy'").set_index("sample")["ids"]
    for sample, reading in zip(FEW["id"], score_tokens(model, [("", i) for i in ids[FEW["id"]]])):
        assert np.abs(alone.loc[sample, "logp"] - reading.logp).max() < 2e-6
    assert any(
        np.abs(alone.loc[sample, "logp"] - own.loc[sample, "logp"]).max() > 0.01 for sample in FEW["id"]
    )
    members = (
        read_statistics(
            compute_likelihoods(
                tmp_path / "mc_dropout",
                bank,
                FEW,
                model,
                replace(PASSES["mc_dropout"], members=3),
                S,
                progress=False,
            )
        )
        if model.id != "llama"
        else None
    )
    if members is None:
        return
    for record in members.itertuples():
        assert (
            record.member_logp.shape == (3, len(record.ids))
            and (record.member_logp.std(0) > 0).any()
            and (record.member_pe_mi > -1e-9).all()
        )


def test_another_model_reads_the_text_not_the_ids(written, tmp_path):
    model, bank = written
    other = framed("llama" if model.id != "llama" else "bart")
    got = read_statistics(
        compute_likelihoods(
            tmp_path / "other", bank, FEW, other, ForwardPass(after="source"), S, progress=False
        )
    )
    assert not got.attrs["about"]["own"]
    texts = read_bank(bank).query("kind=='greedy'")
    for record, text in zip(got.itertuples(), texts["text"]):
        words = other.tokenizer.decode(record.ids, skip_special_tokens=True).strip()
        assert words == text and record.ids[-1] == (1 if other.kind == "causal" else record.ids[-1]), (
            "the text and, for a causal model, its end"
        )


def test_a_changed_text_source_or_reader_is_noticed(written, tmp_path):
    model, bank = written
    compute_likelihoods(tmp_path / "conditional", bank, FEW, model, PASSES["conditional"], S, progress=False)
    with pytest.raises(BadShard, match="00001.parquet does not belong to this bank: sources"):
        compute_likelihoods(
            tmp_path / "x",
            bank,
            FEW.assign(
                source=[source if i != 4 else source + " w9" for i, source in enumerate(FEW["source"])]
            ),
            model,
            PASSES["conditional"],
            S,
            progress=False,
        )
    with pytest.raises(BadShard, match="texts of 7 sources, 3 were given"):
        compute_likelihoods(tmp_path / "x", bank, FEW[:3], model, PASSES["conditional"], S, progress=False)
    with pytest.raises(BadShard, match="made otherwise: asked.topk: found 10, expected 2.*--no-resume"):
        compute_likelihoods(
            tmp_path / "conditional",
            bank,
            FEW,
            model,
            replace(PASSES["conditional"], topk=2),
            S,
            progress=False,
        )
    other = fill_local_bank(
        tmp_path / "other", "toy", model.id, FEW, model, replace(S, seed=7), size=3, progress=False
    )
    with pytest.raises(BadShard, match="made otherwise: bank: found"):
        compute_likelihoods(
            tmp_path / "conditional", other, FEW, model, PASSES["conditional"], S, progress=False
        )


def test_nothing_at_all_cannot_be_read():
    with pytest.raises(ValueError, match="bart would read an empty input"):
        score_tokens(tiny("bart"), [("", "w1")])


def test_a_bank_without_such_texts_has_nothing_to_read(tmp_path):
    bank = reference_bank(tmp_path / "references", "toy", FEW, progress=False)
    with pytest.raises(ValueError, match="no text|without a text of kind sample"):
        compute_likelihoods(
            tmp_path / "x", bank, FEW, tiny("bart"), ForwardPass(("sample",)), S, progress=False
        )


# States of the training split
def test_states_of_references_are_read_after_the_document_or_as_released_after_themselves(tmp_path):
    model = tiny("bart")
    out = {}
    for column in ("source", "reference"):
        bank = reference_bank(tmp_path / column, "toy", FEW, column, progress=False)
        samples = FEW.assign(source=FEW[column])
        out[column] = read_statistics(
            compute_likelihoods(
                tmp_path / f"{column}-hidden", bank, samples, model, PASSES["hidden"], S, progress=False
            )
        )
        want = score_tokens(
            model, list(zip(samples["source"], FEW["reference"])), hidden=("encoder_mean", "decoder_mean")
        )
        for record, reading in zip(out[column].itertuples(), want):
            for k in ("encoder_mean", "decoder_mean"):
                assert np.abs(getattr(record, k) - reading.hidden[k]).max() < 1e-5
    assert (
        np.abs(np.stack(out["source"]["encoder_mean"]) - np.stack(out["reference"]["encoder_mean"])).max()
        > 0.01
    )


# Between texts
TEXTS = dict(a=["w1 w2", "w3", "w1 w2", "w4 w5 w6"], b=["w7", "w7", "w7", "w7"])


@pytest.fixture
def repeated(tmp_path):
    samples = pd.DataFrame(dict(id=list(TEXTS), source="x"))
    return fill_bank(
        tmp_path / "bank",
        samples,
        bank_provenance("toy", "echo", "echo", "", {}, dict(greedy=1, sample=3)),
        lambda part: [
            bank_row(source, "sample" if i else "greedy", max(i - 1, 0), text)
            for source in part["id"]
            for i, text in enumerate(TEXTS[source])
        ],
        progress=False,
    )


def test_unique_texts_are_compared_in_both_directions_and_found_again(repeated, tmp_path):
    model = encoder()
    got = read_statistics(
        compute_entailments(tmp_path / "entailments", repeated, model, progress=False)
    ).set_index("sample")
    for source, texts in TEXTS.items():
        index, logits = (
            got.loc[source, "at"],
            got.loc[source, "nli_logits"].reshape(len(set(texts)), len(set(texts)), 3),
        )
        for i, premise in enumerate(texts):
            for j, hypothesis in enumerate(texts):
                alone = entailment_logits(model, [(premise, hypothesis)])[0][0]
                assert np.abs(logits[index[i], index[j]] - alone).max() < 1e-5
    assert [len(x) for x in got["nli_logits"]] == [9, 1]
    shares = entailed_shares(tmp_path)
    for source, texts in TEXTS.items():
        pairs = [
            (premise, hypothesis) for premise in dict.fromkeys(texts) for hypothesis in dict.fromkeys(texts)
        ]
        logits, _ = entailment_logits(model, pairs)  # Entailment is the third class
        assert shares[source] == np.mean([row[2] == row.max() for row in logits])
    x = read_statistics(compute_embeddings(tmp_path / "vectors", repeated, model, progress=False)).set_index(
        "sample"
    )
    for source, texts in TEXTS.items():
        for i, text in enumerate(texts):
            assert (
                np.abs(
                    x.loc[source, "vectors"][x.loc[source, "at"][i]] - embed_texts(model, [text])[0][0]
                ).max()
                < 1e-5
            )


def test_a_text_entails_itself_and_the_model_says_the_rest():
    model, pairs = encoder(), [("w1 w2", "w1 w2"), ("w1", "w2"), (" w3\n", "w3"), ("", " ")]
    logits, cut = entailment_logits(model, pairs)
    likely = torch.softmax(torch.tensor(logits), 1).numpy()
    assert logits.dtype == np.float32 and np.isfinite(logits).all() and cut.tolist() == [0] * 4
    assert likely[[0, 2, 3]].tolist() == [[0, 0, 1]] * 3
    assert np.abs(logits[1] - nli_pairs(model, pairs[1:2])[0][0]).max() < 1e-6
    assert [len(part) for part in entailment_logits(model, [])] == [0, 0]


@pytest.mark.parametrize("compute", [compute_entailments, compute_sentence_entailments])
def test_entailments_that_were_stored_without_the_definition_are_not_taken(compute, repeated, tmp_path):
    folder = compute(tmp_path / "nli", repeated, encoder(), progress=False)
    manifest = folder / "readings.json"
    old = json.loads(manifest.read_text())
    assert old["about"].pop("equal") == "entail each other"
    manifest.write_text(json.dumps(old))
    with pytest.raises(BadShard, match="made otherwise: equal: .*--no-resume"):
        compute(folder, repeated, encoder(), progress=False)


def test_a_long_source_is_cut_and_the_text_stays_whole(tmp_path, capsys):
    "Relevance after a source of any length is that after the start of it that fits, and the number is said"
    model, text, kept = encoder(), "w1 w2 w3 w4 w5 w6 w7", " ".join(f"w{10 + i}" for i in range(55))
    sources = dict(fits=kept, long=kept + " w9" * 200, huge=kept + " w8" * 20_000)
    samples = pd.DataFrame(dict(id=list(sources), source=list(sources.values())))
    ids = model.tokenizer(text, add_special_tokens=False).input_ids
    bank = fill_bank(
        tmp_path / "texts",
        samples,
        bank_provenance("toy", "echo", "echo", "", {}, dict(greedy=1)),
        lambda part: [bank_row(i, "greedy", 0, text, ids) for i in part["id"]],
        progress=False,
    )
    folder = compute_relevance(tmp_path / "relevance", bank, samples, model.tokenizer, model, progress=False)
    got = read_statistics(folder).set_index("sample")
    assert got["source_cut"].to_dict() == dict(fits=0, long=200, huge=20_000) and not got["cut"].any()
    whole = np.array(got.at["fits", "relevance"])
    assert (whole > 0).all() and len(whole) == 7
    for name in ("long", "huge"):
        assert np.array_equal(got.at[name, "relevance"], whole)
    write_statistics(
        tmp_path / "conditional",
        bank,
        dict(title="own", reader="hand", revision="", made_with={}),
        lambda rows: [
            dict(sample=i, kind="greedy", k=0, ids=ids, logp=np.arange(7) - 9.0) for i in rows["sample"]
        ],
        ("greedy",),
        progress=False,
    )
    assert main(["score", str(tmp_path), "--methods", "token_sar,msp"]) == 0
    said = capsys.readouterr().out
    assert "- token_sar: for 2 of 3 texts the source lost its end to fit into the encoder" in said
    assert "- msp:" not in said


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9))
def test_unique_gives_back_every_text(texts):
    distinct, index = unique_texts(texts)
    assert [distinct[i] for i in index] == texts and len(set(distinct)) == len(distinct)


def test_labels_are_put_in_order_by_name(tmp_path):
    model = encoder()
    logits, _ = nli_pairs(model, [("w1 w2", "w3")])
    inputs = model.tokenizer("w1 w2", "w3", return_tensors="pt")
    with torch.no_grad():
        raw = model.model(**inputs).logits[0].numpy()
    assert np.allclose(logits[0], raw[[0, 2, 1]], atol=1e-6)
    assert NLI_CLASSES == ("contradiction", "neutral", "entailment")
    assert np.allclose(logits, nli_pairs(model, [("w1 w2", "w3")])[0], atol=1e-6)  # One order everywhere
    with pytest.raises(ValueError, match="found label_0, label_1"):
        nli_order({0: "LABEL_0", 1: "LABEL_1"})


def test_batches_and_repeats_change_nothing_but_the_last_bits():
    model = encoder()
    pairs = [(f"w{i} " * (1 + i % 9), f"w{i + 1}") for i in range(20)] * 2
    together, _ = nli_pairs(model, pairs)
    alone, _ = nli_pairs(model, pairs, batch_tokens=1)
    assert np.abs(together - alone).max() < 1e-5 and np.array_equal(together[:20], together[20:])


def test_a_language_model_is_no_encoder():
    with pytest.raises(ValueError, match="bart is a seq2seq model"):
        embed_texts(tiny("bart"), ["w1"])


def test_what_does_not_fit_is_counted(repeated, tmp_path):
    _, cut = embed_texts(encoder(), ["w1 " * 100, "w1"])
    assert cut.tolist() == [100 + 2 - 64, 0]


def test_parts_give_the_kinds_asked_for(repeated):
    assert [list(df["kind"]) for df in texts_by_shard(repeated, ("greedy",)).values()] == [
        ["greedy", "greedy"]
    ]


def test_a_bare_encoder_is_the_same_model_whenever_it_is_loaded(tmp_path):
    BertForMaskedLM(
        BertConfig(
            vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
        )
    ).save_pretrained(tmp_path)
    encoder().tokenizer.save_pretrained(tmp_path)
    assert fingerprint(load_model(tmp_path, device="cpu")) == fingerprint(
        load_model(tmp_path, device="cpu")
    ), "a part the file lacks must not be drawn at random"
