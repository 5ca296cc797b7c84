"""Stored statistics are those of these very texts, in any order of work, and outdated files are refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.readings import framed
from tests.helpers.writers import SAMPLES, S, files, tiny
from uetrust.core.store import BadShard, Store
from uetrust.generation.bank import read_bank
from uetrust.generation.local import fill_local_bank, render_prompts
from uetrust.models.forward import score_tokens
from uetrust.statistics.generator import PASSES, ForwardPass
from uetrust.statistics.passes import compute_likelihoods, reference_bank
from uetrust.statistics.table import read_statistics, rows_to_table, table_to_frame, texts_by_shard

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
        and Store(tmp_path / "conditional", "readings").manifest()["about"]["own"]
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
    folder = tmp_path / "other"
    got = read_statistics(
        compute_likelihoods(folder, bank, FEW, other, ForwardPass(after="source"), S, progress=False)
    )
    assert not Store(folder, "readings").manifest()["about"]["own"]
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
