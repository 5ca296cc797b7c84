"""Fact checkers as networks: each reads what the tokenizer of `transformers` makes of the released prompt."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import checkers as made
from uetrust.core.segmentation import split_sentences
from uetrust.models.checkers import hhem_logits, lettuce_logits, minicheck_chunks, minicheck_logits
from uetrust.models.load import load_model

PAIRS = [
    ("The council met on Monday. Rain fell.", "It met."),
    ("Rain fell.", "Rain fell in the north. All day."),
    ("Snow.", ""),
]
LONG = "The council met on Monday. " * 120


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkers")
    names = ("roberta", "deberta", "flan", "modernbert", "token_t5")
    return {name: load_model(made.save(getattr(made, name), folder / name)) for name in names}


def outputs(model, texts, **options):
    "Logits of `transformers` itself, one text or pair at a time"
    with torch.inference_mode():
        for text in texts:
            encoded = model.tokenizer(*text, return_tensors="pt", verbose=False, **options)
            yield model.model(**encoded).logits[0].numpy(), encoded


def close(got, want, tolerance=2e-5):
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("name", "window"), [("roberta", 512), ("deberta", 2048)])
def test_minicheck_reads_chunk_and_claim_as_one_text(models, name, window):
    model, pairs = models[name], [*PAIRS, (LONG, "It met.")]
    joined = [(model.tokenizer.eos_token.join(pair),) for pair in pairs]
    found = list(outputs(model, joined, truncation=True, max_length=window))
    logits, over = minicheck_logits(model, pairs)
    close(logits, [want for want, _ in found])
    whole = [len(model.tokenizer(*text, verbose=False).input_ids) for text in joined]
    assert over.tolist() == [max(n - window, 0) for n in whole] and whole[-1] > 600
    assert np.ptp(logits[:, 1] - logits[:, 0]) > 0.01  # The stand-in tells them apart


def test_minicheck_of_t5_compares_the_first_tokens_of_0_and_1(models):
    model, pairs = models["flan"], [*PAIRS, (LONG, "It met.")]
    ids = [model.tokenizer(answer, add_special_tokens=False).input_ids[0] for answer in "01"]
    start = torch.tensor([[model.model.config.decoder_start_token_id]])
    want = []
    for pair in pairs:
        text = "predict: " + model.tokenizer.eos_token.join(pair)
        encoded = model.tokenizer(text, truncation=True, max_length=2048, return_tensors="pt")
        with torch.inference_mode():
            logits = model.model(**encoded, decoder_input_ids=start).logits[0, 0]
        want.append(logits[ids].softmax(0)[1].item())
    logp, over = minicheck_logits(model, pairs)
    close(1 / (1 + np.exp(logp[:, 0] - logp[:, 1])), want)
    assert (
        not over.any() and len(encoded.input_ids[0]) > model.window
    )  # It reads beyond its tokenizer's window


def test_a_network_that_is_no_checker_is_refused(models):
    with pytest.raises(ValueError, match="end token None"):
        model = models["roberta"]
        end, model.tokenizer.eos_token = model.tokenizer.eos_token, None
        try:
            minicheck_logits(model, PAIRS)
        finally:
            model.tokenizer.eos_token = end
    with pytest.raises(ValueError, match="is a RobertaForSequenceClassification with 2 classes"):
        hhem_logits(models["roberta"], PAIRS)


sentences = st.lists(
    st.sampled_from(["Rain fell.", "The council met on Monday.", "It is 3 p.m. now."]), max_size=8
)


@given(st.lists(sentences, min_size=1, max_size=3), st.integers(1, 12))
@settings(deadline=None)
def test_chunks_keep_every_word_in_order_and_are_as_long_as_may_be(models, lines, size):
    source = "\n".join(map(" ".join, lines))
    for model in (models["flan"], models["roberta"]):
        chunks = minicheck_chunks(model, source, size)
        assert " ".join(chunks).split() == source.split()
        count = len if model.kind == "encoder" else None
        for first, second in zip(chunks, chunks[1:]):
            parts = [sentence for line in first.split("\n") for sentence in split_sentences(line)]
            added = split_sentences(second.split("\n")[0])[0]
            if count:  # Tokens, and one or more for each line break
                lengths = [len(model.ids(sentence)) for sentence in [*parts, added]]
                breaks = len(model.ids("\n")) * (len(lines) + first.count("\n"))
            else:
                lengths, breaks = [len(sentence.split()) for sentence in [*parts, added]], 0
            assert sum(lengths) + breaks > size
            assert len(parts) == 1 or sum(lengths[:-1]) <= size


def test_a_line_break_stays_between_the_sentences_of_a_chunk(models):
    source = "Rain fell. Snow fell.\nThe council met.\n\nIt rose."
    released = source.replace("\n\n", "\n\n ")  # Of two line breaks only one loses its spaces there
    assert minicheck_chunks(models["flan"], source) == [released]
    first, second = minicheck_chunks(models["flan"], source, 5)
    assert (first, second) == ("Rain fell. Snow fell.", "The council met.\n\n It rose.")
    assert minicheck_chunks(models["flan"], " \n ") == []


def test_hhem_is_the_class_of_the_first_token_of_the_released_question(models):
    model, pairs = models["token_t5"], [*PAIRS, (LONG, "It met.")]
    asked = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {}\n\nHypothesis: {}"
    found = list(outputs(model, [(asked.format(*pair),) for pair in pairs]))
    logits, over = hhem_logits(model, pairs)
    close(logits, [want[0] for want, _ in found])
    assert all(encoded.input_ids[0, 0] == model.tokenizer.pad_token_id for _, encoded in found)
    assert not over.any() and found[-1][1].input_ids.shape[1] > model.window


def test_lettucedetect_reads_the_tokens_of_the_text_after_the_prompt(models):
    model = models["modernbert"]
    model.tokenizer.model_max_length = 8192
    most = 250_000 // len(model.ids("rain " * 100))  # Words of a text that takes more than half of the window
    pairs = [*PAIRS, (LONG * 8, "rain " * most), ("Rain fell.", "rain " * 2 * most)]
    prompts = [f"Summarize the following text:\npassage 1: {source}\noutput:" for source, _ in pairs]
    read = list(zip(prompts, (text for _, text in pairs)))[:-1]
    found = list(outputs(model, read, truncation="only_first", max_length=4096))
    logits, over = lettuce_logits(model, pairs)
    assert logits[-1] is None and over[:3].tolist() == [0, 0, 0] and over[3] > 0
    for own, (want, encoded), (_, text) in zip(logits, found, read):
        of_text = [i for i, part in enumerate(encoded.sequence_ids()) if part == 1]
        close(own, want[of_text])
        assert len(own) == len(model.tokenizer(text, add_special_tokens=False).input_ids)
    assert len(found[3][1].input_ids[0]) == 4096
