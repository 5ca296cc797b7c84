"""Claims and samples: the definitions, and the numbers of LM-Polygraph 0.7.0 and uqlm 0.6.7."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.paths import ROOT
from uetrust.core.checks import Undefined
from uetrust.core.run import ScoreRun, compute_score
from uetrust.statistics.scores import load_scores
from uetrust.ue import attention, claims, information, reflexive, semantic

reg = load_scores()
CASES = json.loads((ROOT / "tests" / "fixtures" / "claims.json").read_text())
TEXT = {name: np.array(value) for name, value in CASES["text"].items()}
EXACT = dict(rel=1e-9, abs=1e-12)
OF_TEXTS = ("claim_unsupported", "claim_frequency", "claim_not_entailed", "claim_contradicted", "claim_luq")
OF_SENTENCES = ("claim_pair_not_entailed", "claim_pair_contradicted", "claim_luq_pair")


def with_text(probabilities):
    "Logits of the samples behind a row for the text itself"
    return np.vstack([[-9.0, 0, 9], np.log(probabilities)])


def of_claims(name, run):
    found = compute_score(run, name)
    assert (found["note"] == "").all()
    return found["value"].to_numpy()


# uqlm
def test_unit_response_scores_are_those_of_uqlm():
    case = CASES["unit_response"]
    run = ScoreRun("abc", reg, claim_nli=[with_text(p) for p in case["probabilities"]])
    for name, theirs in zip(OF_TEXTS[2:], ("entailment", "noncontradiction", "contrasted_entailment")):
        assert 1 - of_claims(name, run) == pytest.approx(case["scores"][theirs], **EXACT)


def test_matched_unit_scores_are_those_of_uqlm():
    case = CASES["matched_unit"]
    logits = [[np.log(sentences) for sentences in claim] for claim in case["probabilities"]]
    given = dict(claim_bertscore=case["bertscores"], claim_cosine=case["cosines"])
    run = ScoreRun("ab", reg, claim_sentence_nli=logits, **given)
    for name, theirs in zip(OF_SENTENCES, ("entailment", "noncontradiction", "contrasted_entailment")):
        assert 1 - of_claims(name, run) == pytest.approx(case["scores"][theirs], **EXACT)
    assert 1 - of_claims("selfcheck_bertscore", run) == pytest.approx(case["scores"]["bert_score"], **EXACT)
    assert 1 - of_claims("claim_pair_cosine", run) / 2 == pytest.approx(case["scores"]["cosine_sim"], **EXACT)


# LM-Polygraph: numbers of the tokens of a claim
def each(function):
    return [function(np.array(tokens)) for tokens in CASES["claims"]]


RULES = dict(  # Estimator -> our method on the tokens of a claim
    MaximumClaimProbability=lambda at: information.msp(TEXT["greedy_log_likelihoods"][at]),
    PerplexityClaim=lambda at: information.perplexity(TEXT["greedy_log_likelihoods"][at]),
    MaxTokenEntropyClaim=lambda at: TEXT["entropy"][at].max(),
    SelfCertaintyClaim=lambda at: information.self_certainty(
        (-TEXT["greedy_log_probs"].mean(1) - np.log(TEXT["greedy_log_probs"].shape[1]))[at]
    ),
    AttentionScoreClaim=lambda at: attention.attention_score(
        np.log(np.diagonal(TEXT["forwardpass_attention_weights"][2], 0, 1, 2)).mean(0)[at]
    ),
    FocusClaim=lambda at: TEXT["token_focus"][at].mean(),
)


@pytest.mark.parametrize("name", RULES)
def test_what_is_a_number_of_tokens_is_that_of_lm_polygraph(name):
    assert each(RULES[name]) == pytest.approx(CASES["lm_polygraph"][name], **EXACT)


def test_the_boosted_probability_of_lm_polygraph_takes_one_bare_text_and_fails_for_a_list_of_texts():
    found = each(lambda at: information.boosted_prob(TEXT["greedy_dominant"][at]))
    assert found == pytest.approx(CASES["boosted"]["bare"], **EXACT)
    assert "same number of dimensions" in CASES["boosted"]["error"]


def test_pmi_is_a_sum_there_that_subtracts_at_every_token_but_the_first_of_the_text():
    given, alone = TEXT["greedy_log_likelihoods"], TEXT["greedy_lm_log_likelihoods"]
    theirs = CASES["lm_polygraph"]["PointwiseMutualInformationClaim"]
    first = each(lambda at: len(at) * information.pmi(given[at], alone[at]))
    assert first[0] == pytest.approx(theirs[0], **EXACT)  # The claim with token 0 of the text
    lost = each(lambda at: alone[at[0]])
    assert np.add(first, [0, *lost[1:]]) == pytest.approx(theirs, **EXACT)


def test_token_sar_has_weights_of_the_text_there_and_of_the_claim_here():
    relevance = 1 - TEXT["token_similarity"]
    found = each(lambda at: semantic.token_sar(TEXT["greedy_log_likelihoods"][at], relevance[at]))
    share = each(lambda at: relevance[at].sum() / relevance.sum())
    assert np.multiply(found, share) == pytest.approx(CASES["lm_polygraph"]["TokenSARClaim"], **EXACT)


def ccp(at):
    relations = TEXT["alternatives_nli"]
    number = np.vectorize(dict(contra=0, neutral=1, entail=2).get)
    labels = semantic.ccp_label(number(relations[:, 0]), number(relations[:, :, 0]))
    top, ids = TEXT["alternatives"], TEXT["greedy_tokens"]
    top_logp = np.take_along_axis(TEXT["greedy_log_probs"], top, 1)
    return semantic.ccp(ids[at], top_logp[at, 0], top[at], top_logp[at], labels[at])


def test_ccp_is_a_product_over_tokens_and_a_stop_word_is_left_out_there():
    assert each(ccp) == pytest.approx(CASES["lm_polygraph"]["ccp_without_stop_words"], **EXACT)
    content = each(lambda at: ccp(at[TEXT["words"][at] != CASES["stop"]]))
    theirs = CASES["lm_polygraph"]["ClaimConditionedProbabilityClaim"]
    assert content == pytest.approx(theirs, **EXACT) and each(ccp) != pytest.approx(theirs)


def test_frequency_is_a_count_there_and_a_share_here():
    samples = TEXT["nli_to_sample_texts"]
    run = ScoreRun("abc", reg, claim_nli=[with_text(p) for p in samples])
    found = of_claims("claim_frequency", run) * samples.shape[1]
    assert found == pytest.approx(CASES["lm_polygraph"]["FrequencyScoringClaim"], **EXACT)


def test_p_true_is_that_of_one_question_per_claim():
    found = [reflexive.p_true(logp) for logp in TEXT["p_true_claim"]]
    assert found == CASES["lm_polygraph"]["PTrueClaim"]


def test_the_random_baseline_is_a_number_of_no_seed():
    assert all(0 <= value < 1 for value in CASES["lm_polygraph"]["RandomBaselineClaim"])


def test_every_claim_estimator_of_lm_polygraph_is_compared():
    assert len(CASES["lm_polygraph"].keys() - {"ccp_without_stop_words"} | {"BoostedProbClaim"}) == 13
    assert CASES["versions"]["lm-polygraph"] == "0.7.0" and CASES["versions"]["uqlm"] == "0.6.7"


# Definitions
@given(st.integers(0, 999), st.integers(1, 6))
def test_scores_of_samples_are_those_of_a_slow_definition(seed, k):
    p = np.random.default_rng(seed).dirichlet(np.ones(3), k)
    run = ScoreRun("a", reg, claim_nli=[with_text(p)])
    found = dict(zip(OF_TEXTS, (of_claims(name, run)[0] for name in OF_TEXTS)))
    likeliest = [max(range(3), key=row.__getitem__) for row in p.tolist()]
    slow = dict(
        claim_unsupported=sum(label != 2 for label in likeliest) / k,
        claim_frequency=(likeliest.count(0) - likeliest.count(2)) / k,
        claim_not_entailed=sum(1 - row[2] for row in p) / k,
        claim_contradicted=sum(row[0] for row in p) / k,
        claim_luq=sum(row[0] / (row[0] + row[2]) for row in p) / k,
    )
    assert found == {name: pytest.approx(slow[name], abs=1e-12) for name in slow}
    alone = {name: getattr(claims, name)(with_text(p)) for name in OF_TEXTS}  # Without the batched twin
    assert alone == {name: pytest.approx(slow[name], abs=1e-12) for name in slow}


@given(st.integers(0, 999))
def test_samples_of_one_sentence_make_pairs_of_texts_and_more_sentences_never_raise_them(seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (5, 3))
    single, longer = [row[None] for row in logits], [np.stack([row, rng.normal(0, 2, 3)]) for row in logits]
    run = ScoreRun("ab", reg, claim_sentence_nli=[single, longer])
    whole = ScoreRun("a", reg, claim_nli=[np.vstack([logits[:1], logits])])
    for pair, name in zip(OF_SENTENCES, OF_TEXTS[2:]):
        one, more = of_claims(pair, run)
        assert one == pytest.approx(of_claims(name, whole)[0], abs=1e-12) and more <= one + 1e-12


@given(st.integers(0, 999))
def test_the_mean_of_luq_over_sentences_is_selfcheck_nli(seed):
    logits = np.random.default_rng(seed).normal(0, 2, (4, 3, 3))  # Samples, sentences, classes
    run = ScoreRun("abc", reg, claim_nli=[np.vstack([logits[:1, s], logits[:, s]]) for s in range(3)])
    assert of_claims("claim_luq", run).mean() == pytest.approx(semantic.selfcheck_nli(logits), abs=1e-12)


def test_what_cannot_be_said_has_a_note():
    text, sample = np.zeros((1, 3)), np.zeros((2, 3))
    run = ScoreRun("ab", reg, claim_nli=[text, sample], claim_sentence_nli=[[], [sample, sample[:0]]])
    for name in OF_TEXTS:
        assert compute_score(run, name)["note"].tolist() == ["needs at least 1 sample, got none", ""]
    for name in OF_SENTENCES:
        notes = compute_score(run, name)["note"].tolist()
        assert notes == ["needs at least 1 sample, got none", "a sample has no sentence"]
    with pytest.raises(ValueError, match=r"shape \[1\+K,3\], got \(2, 2\)"):
        claims.claim_luq(np.zeros((2, 2)))
    with pytest.raises(Undefined, match="got none"):
        claims.mean_best_match([])
