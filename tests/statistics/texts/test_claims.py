"""Claims are given by a user: what a bank says that has none, and what an NLI model says of them."""

import numpy as np
import pytest

from tests.helpers.readings import encoder
from uetrust.core.run import ScoreRun, compute_score, required_inputs
from uetrust.models.classifiers import entailment_logits
from uetrust.scoring.methods import bank_methods
from uetrust.statistics.entry import STATISTICS
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts.claims import CLAIM_STATISTICS, claim_entailments

reg = load_scores()
ENTRIES = ("claims", "claim_entailments", "claim_bertscores", "claim_cosines", "claim_p_true")
OF_CLAIMS = {name for name in reg.of("ue") if "claim" in " ".join(required_inputs(name, reg))}


def test_methods_of_claims_need_what_the_entry_names_and_no_bank_has_it():
    assert len(OF_CLAIMS) == 21 and {"claim_luq", "claim_page_rank", "selfcheck_unigram"} <= OF_CLAIMS
    assert set().union(*(required_inputs(name, reg) for name in OF_CLAIMS)) == CLAIM_STATISTICS
    assert CLAIM_STATISTICS == {name for entry in ENTRIES for name in STATISTICS[entry].gives}
    assert not OF_CLAIMS & set(bank_methods(reg))
    for entry in ENTRIES:
        assert not STATISTICS[entry].stored and "score FILE --claims" in STATISTICS[entry].remedy


def test_its_example_goes_from_sure_to_doubtful():
    sure, doubtful = (STATISTICS["claim_entailments"].toy(doubt) for doubt in (0, 1))
    assert (sure["claim_nli"].argmax(1) == 2).all()
    assert (doubtful["claim_nli"].argmax(1)[1:] == 0).all()


TEXTS = ["w1 w2. w3 w4.", "w1 w2. w5.", "w6 w7."]
CLAIMS = ["w1 w2.", "w3 w9."]


def test_the_text_and_each_sample_are_premises_and_so_is_each_sentence():
    model = encoder()
    found, cut = claim_entailments(model, CLAIMS, [TEXTS, TEXTS[:2]])
    alone = lambda *pair: pytest.approx(entailment_logits(model, [pair])[0][0], abs=1e-5)
    assert [len(logits) for logits in found["claim_nli"]] == [3, 2] and not any(map(np.any, cut.values()))
    for claim, texts, whole, single in zip(CLAIMS, (TEXTS, TEXTS[:2]), *found.values()):
        assert [row.tolist() for row in whole] == [alone(text, claim) for text in texts]
        sentences = [["w1 w2.", "w5."], ["w6 w7."]][: len(texts) - 1]
        assert [len(logits) for logits in single] == [len(sample) for sample in sentences]
        for logits, sample in zip(single, sentences):
            assert [row.tolist() for row in logits] == [alone(sentence, claim) for sentence in sample]


def test_a_claim_that_a_sample_repeats_is_supported_and_without_samples_nothing_is_said():
    found, _ = claim_entailments(encoder(), CLAIMS[:1] * 2, [[TEXTS[0], "w1 w2. w8."], TEXTS[:1]])
    run = ScoreRun("ab", reg, **found)
    for name in ("claim_luq_pair", "claim_pair_not_entailed"):
        table = compute_score(run, name)
        assert table["value"][0] == 0 and np.isnan(table["value"][1])
        assert table["note"].tolist() == ["", "needs at least 1 sample, got none"]


def test_every_claim_has_its_texts():
    with pytest.raises(ValueError, match="shorter"):
        claim_entailments(encoder(), CLAIMS, [TEXTS])


def test_pairs_that_do_not_fit_are_counted():
    long = "w1 " * 100
    _, cut = claim_entailments(encoder(), CLAIMS, [[long, "w2."], [TEXTS[0], long]])
    assert {name: n.tolist() for name, n in cut.items()} == dict(claim_nli=[1, 1], claim_sentence_nli=[0, 1])


def test_only_the_requested_logits_are_computed():
    found, cut = claim_entailments(encoder(), CLAIMS, [TEXTS] * 2, ["claim_nli"])
    assert list(found) == list(cut) == ["claim_nli"]
