"""Comparisons of texts: in both directions, found again, and with the start of a source that fits."""

import logging

import numpy as np
import pandas as pd

from tests.helpers.compared import TEXTS
from tests.helpers.readings import encoder
from uetrust.cli.cli import main
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank
from uetrust.models.classifiers import entailment_logits
from uetrust.models.encode import embed_texts
from uetrust.papers.bulletins.texts import entailed_shares
from uetrust.statistics.bank import BankTokens, compute_statistic
from uetrust.statistics.table import read_statistics, write_statistics
from uetrust.statistics.texts.comparisons import _start_that_fits


def test_unique_texts_are_compared_in_both_directions_and_found_again(repeated, tmp_path):
    model = encoder()
    got = read_statistics(
        compute_statistic("entailments", tmp_path / "entailments", repeated, model, progress=False)
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
    shares = entailed_shares(tmp_path)["share"]
    for source, texts in TEXTS.items():
        pairs = [
            (premise, hypothesis) for premise in dict.fromkeys(texts) for hypothesis in dict.fromkeys(texts)
        ]
        logits, _ = entailment_logits(model, pairs)  # Entailment is the third class
        assert shares[source] == np.mean([row[2] == row.max() for row in logits])
    x = read_statistics(
        compute_statistic("embeddings", tmp_path / "vectors", repeated, model, progress=False)
    ).set_index("sample")
    for source, texts in TEXTS.items():
        for i, text in enumerate(texts):
            assert (
                np.abs(
                    x.loc[source, "vectors"][x.loc[source, "at"][i]] - embed_texts(model, [text])[0][0]
                ).max()
                < 1e-5
            )


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
    folder = compute_statistic(
        "relevance",
        tmp_path / "relevance",
        bank,
        model,
        samples,
        BankTokens(model.tokenizer),
        ["greedy_relevance"],
        progress=False,
    )
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
    assert main(["score", str(tmp_path), "--method", "token_sar,msp"]) == 0
    said = capsys.readouterr().out
    assert "note: token_sar: for 2 of 3 texts the source lost its end to fit into the encoder" in said
    assert "- msp:" not in said


def test_a_source_that_is_cut_to_fit_makes_no_warning_that_it_does_not_fit(caplog, monkeypatch):
    "The whole source is measured to be cut; 'will result in indexing errors' would frighten for nothing."
    logger, model = logging.getLogger("transformers.tokenization_utils_base"), encoder()
    source = "w1 " * 99 + "w2"
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, caplog.handler])
    with caplog.at_level("WARNING", logger.name):
        start, lost = _start_that_fits(model, source, ["w3 w4", "w3"])
        assert not caplog.messages
        assert len(model.tokenizer(source).input_ids) > 64 and "indexing errors" in caplog.text
    assert start == "w1 " * 59 + "w1" and lost == 40  # 60 words and 2 of the text in a frame of 2
