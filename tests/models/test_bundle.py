"""Other weights of a checkpoint of TensorFlow: the numbers of its release, and damage is refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.convert import PAIRS, convert, refused
from tests.helpers.paths import ROOT
from uetrust.models import classifiers
from uetrust.models.load import load_model

FIXTURES = ROOT / "tests" / "fixtures" / "bleurt"  # Written by TensorFlow 2.21


# BLEURT
def variable(name, shape):
    "The numbers that TensorFlow wrote under this name"
    import zlib

    return np.random.default_rng(zlib.crc32(name.encode())).normal(0, 0.3, shape).astype("float32")


def dense(x, name, width):
    return x @ variable(f"{name}/kernel", (x.shape[-1], width)) + variable(f"{name}/bias", (width,))


def normed(x, name):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    width = (x.shape[-1],)
    return x * variable(f"{name}/LayerNorm/gamma", width) + variable(f"{name}/LayerNorm/beta", width)


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def bleurt(ids, segments, narrow):
    "The released network in numpy: 2 layers of width 16, 2 heads; narrow: width of the embeddings or None"
    at, e = "bert/embeddings", narrow or 16
    x = variable(f"{at}/word_embeddings", (60, e))[list(ids)]
    x = x + variable(f"{at}/token_type_embeddings", (2, e))[list(segments)]
    x = normed(x + variable(f"{at}/position_embeddings", (64, e))[: len(ids)], at)
    x = dense(x, "bert/encoder/embedding_hidden_mapping_in", 16) if narrow else x
    for k in range(2):
        at = f"bert/encoder/layer_{k}"
        q, key, v = (
            dense(x, f"{at}/attention/self/{name}", 16).reshape(len(ids), 2, 8).swapaxes(0, 1)
            for name in ("query", "key", "value")
        )
        seen = (softmax(q @ key.swapaxes(1, 2) / np.sqrt(8)) @ v).swapaxes(0, 1).reshape(len(ids), 16)
        x = normed(x + dense(seen, f"{at}/attention/output/dense", 16), f"{at}/attention/output")
        wide = gelu(dense(x, f"{at}/intermediate/dense", 32))
        x = normed(x + dense(wide, f"{at}/output/dense", 16), f"{at}/output")
    return dense(np.tanh(dense(x[0], "bert/pooler/dense", 16)), "dense", 1)[0]


def wordpieces(folder):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "it", "met", "rain", "fell", "the", "council", "."]
    (folder / "vocab.txt").write_text("\n".join(words + [f"w{i}" for i in range(60 - len(words))]) + "\n")


def sentencepieces(folder):
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text for pair in PAIRS for text in pair] * 5),
        model_prefix=str(folder / "sent_piece"),
        vocab_size=50,
        hard_vocab_limit=False,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        pad_id=3,
        unk_piece="<unk>",
        minloglevel=2,
    )
    (folder / "sent_piece.vocab").unlink()


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("family,narrow,words", [("bert", None, wordpieces), ("rembert", 8, sentencepieces)])
def test_bleurt_gives_the_numbers_of_the_release(tmp_path, family, narrow, words, zipped):
    folder = shutil.copytree(FIXTURES / family, tmp_path / "BLEURT-20")
    words(folder)
    path = (
        Path(shutil.make_archive(tmp_path / "BLEURT-20", "zip", tmp_path, "BLEURT-20")) if zipped else folder
    )
    convert("bleurt", path, tmp_path / "out")
    model = load_model(tmp_path / "out")
    rows, _ = classifiers.pair_rows(model, PAIRS, 64, "pop")
    got, _ = classifiers.regression_values(model, PAIRS, 64)
    np.testing.assert_allclose(got, [bleurt(*row, narrow) for row in rows], rtol=0, atol=2e-6)
    assert len({tuple(row[0]) for row in rows}) == 2 and len(set(rows[0][1])) == 2
    if narrow:
        import sentencepiece

        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sent_piece.model"))
        texts = ["It  met. ", "Rain fell, é ﬁve!", *PAIRS[1]]
        assert [list(model.ids(text)) for text in texts] == pieces.encode(texts)


def test_a_damaged_bleurt_is_refused(tmp_path, capsys):
    folder = shutil.copytree(FIXTURES / "bert", tmp_path / "b")
    wordpieces(folder)
    data = folder / "variables/variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-8])
    assert "lies outside its file of" in refused(capsys, "bleurt", folder, tmp_path / "out")
    (folder / "variables/variables.index").write_bytes(b"not a table")
    assert "does not end as a table does" in refused(capsys, "bleurt", folder, tmp_path / "out")
