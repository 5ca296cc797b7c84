"""Lexical similarity of samples: recorded values of other libraries."""

import warnings

import numpy as np
import pytest
from nltk.translate.bleu_score import sentence_bleu

from tests.helpers.diversity import named, value
from uetrust.core.checks import Undefined
from uetrust.ue import lexical as lx

# Words
LEXICAL = dict(rouge1="lex_sim_rouge_1", rouge2="lex_sim_rouge_2", rougeL="lex_sim", BLEU="lex_sim_bleu")
OURS = {"short": [-1 / 3, 0]}  # where the other library says 0 for equal texts


@named("lexical")
@pytest.mark.parametrize("kind", LEXICAL)
def test_lexical_similarity_is_that_of_lm_polygraph(case, kind):
    texts, want = case["inputs"]["sample_texts"], case["outputs"][f"LexicalSimilarity_{kind}"]
    if case["name"] == "single_sample":
        with pytest.raises(Undefined, match="at least 2"):
            value(LEXICAL[kind], sample_texts=texts[0])
        return
    if case["name"] == "empty_strings":  # 0 there
        assert want == [0, 0]
        for sampled in texts:
            with pytest.raises(Undefined, match="of its samples have no word"):
                value(LEXICAL[kind], sample_texts=sampled)
        return
    if (case["name"], kind) == ("short", "rouge2"):
        assert want == [0, 0]
        want = OURS[case["name"]]
    assert [value(LEXICAL[kind], sample_texts=sampled) for sampled in texts] == pytest.approx(
        want, rel=1e-12, abs=1e-15
    )


@named("lexical")
def test_one_sided_bleu_is_that_of_lm_polygraph(case):
    "Also for empty texts, where the two-sided score does not exist."
    want = case["outputs"]["LexicalSimilarity_BLEU"]
    for texts, expected in zip(case["inputs"]["sample_texts"], want, strict=True):
        if case["name"] == "single_sample":
            with pytest.raises(Undefined, match="at least 2"):
                value("lex_sim_bleu_lmp", sample_texts=texts)
        else:
            assert value("lex_sim_bleu_lmp", sample_texts=texts) == pytest.approx(expected, abs=1e-12)


def test_one_sided_bleu_takes_the_earlier_text_as_reference():
    "Against NLTK, on texts of unequal length; the mean of both directions is another number."
    rng = np.random.default_rng(0)
    differ = 0
    for _ in range(20):
        texts = [" ".join(rng.choice(list("abc"), rng.integers(1, 9))) for _ in range(5)]
        want = []
        for i, first in enumerate(texts):
            for second in texts[i + 1 :]:
                n = min(len(first.split()), len(second.split()), 4)
                weights = [0.33] * 3 if n == 3 else [1 / n] * n
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    want.append(sentence_bleu([first.split()], second.split(), weights=weights))
        got = value("lex_sim_bleu_lmp", sample_texts=texts)
        assert got == pytest.approx(-np.mean(want), abs=1e-12)
        differ += abs(got - value("lex_sim_bleu", sample_texts=texts)) > 1e-3
    assert differ > 10


def test_bleu_var_is_the_double_sum():
    bleu = np.random.default_rng(0).random((6, 6))
    assert lx.bleu_var(bleu) == pytest.approx(
        sum((1 - bleu[i, j]) ** 2 for i in range(6) for j in range(6) if i != j) / 30
    )
