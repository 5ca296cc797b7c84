"""Passes over drawn texts: states, largest weights, keywords and doubt, equal to a plain pass."""

import re

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from tests.helpers.prompted import THREE, D, asked_of, kind_of, plain
from tests.helpers.writers import tiny
from uetrust.core.settings import root
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import read_bank
from uetrust.generation.local import fill_local_bank
from uetrust.models.forward import build_input
from uetrust.models.load import load_model
from uetrust.statistics.generator import PASSES
from uetrust.statistics.passes import (
    compute_attention,
    compute_focus,
    compute_keywords,
    compute_likelihoods,
    compute_reliance,
    focus_surprisal_topk,
    inverse_document_frequency,
    keyword_mask,
    spacy_keyword_tagger,
)
from uetrust.statistics.table import read_statistics
from uetrust.ue.attention import focus_surprisal_full

SHIPPED = dict(bart="tiny-bart", llama="tiny-llama")


@pytest.fixture(scope="module", params=SHIPPED)
def written(request, tmp_path_factory):
    "(kind, shipped model, folder of a bank of three bulletins)"
    model = load_model(root() / "data" / "models" / SHIPPED[request.param], device="cpu")
    return (
        request.param,
        model,
        fill_local_bank(
            tmp_path_factory.mktemp(request.param) / "texts",
            "bulletin",
            model.id,
            THREE,
            model,
            D,
            progress=False,
        ),
    )


@pytest.fixture
def eager(written):
    written[1].model.set_attn_implementation("eager")
    yield written
    written[1].model.set_attn_implementation("sdpa")


def test_states_of_drawn_texts_are_those_that_write_the_end(written, tmp_path):
    _, model, bank = written
    got = read_statistics(
        compute_likelihoods(tmp_path / "x", bank, THREE, model, PASSES["sample_hidden"], D, progress=False)
    )
    texts, asked = read_bank(bank).query("kind=='sample'"), asked_of(model)
    assert len(got) == len(texts) == 6
    for row, text in zip(got.itertuples(), texts.itertuples()):
        assert np.abs(row.decoder_last - plain(model, asked[text.sample], text.ids)[1][-1]).max() < 1e-4


def test_largest_weights_are_those_of_a_plain_pass(eager, tmp_path):
    _, model, bank = eager
    got, asked = (
        read_statistics(
            compute_attention(tmp_path / "x", bank, THREE, model, D, "attention_max", progress=False)
        ).set_index("sample"),
        asked_of(model),
    )
    assert list(got) == ["kind", "k", "attention_max"]
    for source, text in kind_of(bank, "greedy").iterrows():
        weights, start = plain(model, asked[source], text["ids"])[2:]
        weights, length = torch.cat(weights).numpy(), len(text["ids"])
        want = [
            [weights[:, :, start + i - 1, start + j].max() if j < i else 0 for j in range(length)]
            for i in range(length)
        ]
        np.testing.assert_allclose(got.at[source, "attention_max"], want, atol=1e-5)


def test_focus_is_the_doubt_about_whole_rows(written, tmp_path):
    _, model, bank = written
    docs = list(load_samples("bulletin:train:20")["source"])
    got, asked = (
        read_statistics(compute_focus(tmp_path / "x", bank, THREE, model, D, docs, progress=False)).set_index(
            "sample"
        ),
        asked_of(model),
    )
    have = [set(model.tokenizer(document, add_special_tokens=False).input_ids) for document in docs]
    idf = np.array(
        [
            np.log(21 / (sum(token in tokens for tokens in have) + 1))
            for token in range(model.text_config.vocab_size)
        ]
    )
    assert np.array_equal(inverse_document_frequency(model.tokenizer, docs, len(idf)), idf) and idf.min() == 0
    for source, text in kind_of(bank, "greedy").iterrows():
        want = focus_surprisal_full(plain(model, asked[source], text["ids"])[0], np.array(text["ids"]), idf)
        np.testing.assert_allclose(got.at[source, "focus_surprisal"], want, rtol=1e-3)


def test_reliance_is_the_divergence_of_whole_rows(written, tmp_path):
    _, model, bank = written
    got = read_statistics(compute_reliance(tmp_path / "x", bank, THREE, model, D, progress=False))
    got, asked, alone = got.set_index("sample"), asked_of(model), build_input(model, "", [5]).prompt
    for source, text in kind_of(bank, "greedy").iterrows():
        rows = [np.exp(plain(model, prompt, text["ids"])[0]) for prompt in (asked[source], alone)]
        want = jensenshannon(*rows, axis=1) ** 2
        np.testing.assert_allclose(got.at[source, "divergence"], want, atol=1e-5)
        assert (got.at[source, "divergence"] > 0.01).any()


def test_doubt_does_not_exist_where_no_word_is_likely():
    assert np.isnan(
        focus_surprisal_topk(np.array([1]), np.array([[1, 2]]), np.log([[0.009, 0.008]]), np.ones(3))
    ).all()


def test_keywords_are_the_tokens_that_share_a_letter_with_one(written, tmp_path):
    _, model, bank = written

    def tag(texts):
        return [
            [match.span() for match in re.finditer(r"[A-Z]\w*(?: [A-Z]\w*)*|\d+", text)] for text in texts
        ]

    got = read_statistics(
        compute_keywords(tmp_path / "x", bank, model.tokenizer, tag, "capitals", progress=False)
    ).set_index("sample")
    for source, text in kind_of(bank, "greedy").iterrows():
        words = [model.tokenizer.decode([i], skip_special_tokens=True) for i in text["ids"]]
        assert (
            got.at[source, "keywords"].tolist() == [bool(re.match(r"[A-Z\d]", word)) for word in words]
            and got.at[source, "keywords"].any()
        )


def test_a_tagger_that_is_not_there_says_what_to_install():
    with pytest.raises(
        LookupError, match="pip install spacy, then python -m spacy download no-such-pipeline"
    ):
        spacy_keyword_tagger("no-such-pipeline")


def test_a_keyword_of_two_words_does_not_reach_the_token_before_it():
    tok = tiny("bart").tokenizer
    ids = tok("w1 w2 w3 w4").input_ids
    text = tok.decode(ids)
    assert keyword_mask(tok, ids, [(text.index("w2"), text.index("w3") + 2)]).tolist() == [
        False,
        True,
        True,
        False,
    ]
    assert not keyword_mask(tok, ids, [(text.index("w2") - 1, text.index("w2"))]).any(), (
        "a place without a letter"
    )
