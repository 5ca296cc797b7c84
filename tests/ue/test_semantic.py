"""Semantic methods: recorded values of other libraries, where they fail, and invariances."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles
from uetrust.ue import semantic as sm
from uetrust.ue.diversity import label_prob, nli_probability
from uetrust.ue.information import sample_mean_logp

ALL = json.loads((oracles() / "uncertainty.json").read_text()) if oracles() else {}
ABSENT = [pytest.param(None, marks=pytest.mark.skip("UETRUST_ORACLES is not at hand"))]


def named(group, *names):
    return pytest.mark.parametrize(
        "case",
        [case for case in ALL.get(group, []) if not names or case["name"] in names] or ABSENT,
        ids=lambda case: case and case["name"],
    )


def array(x):
    return np.array(x, dtype=object).astype(float)  # the words NaN and Infinity are numbers


def close(case):
    return dict(rel=1e-5, abs=1e-6) if case.get("dtype") == "float32" else dict(rel=1e-9, abs=1e-12)


def of_classes(classes):
    "Logits whose most likely classes are these; the greedy text stands in front"
    return np.pad(np.eye(3)[np.array(classes)], ((1, 0), (1, 0), (0, 0)))


# LM-Polygraph
@named("nli_graph")
def test_clusters_are_those_of_lm_polygraph(case):
    (ids,) = sm.clusters([of_classes(case["inputs"]["semantic_matrix_classes"][0])])
    assert [np.flatnonzero(ids == cluster).tolist() for cluster in range(ids.max() + 1)] == case["outputs"][
        "semantic_classes"
    ]


def item(case):
    inputs = {k: values[0] for k, values in case["inputs"].items() if isinstance(values, list)}
    (ids,) = sm.clusters([of_classes(inputs["semantic_matrix_classes"])])
    return inputs, ids, array(inputs["sample_log_probs"])


@named("nli_graph")
def test_semantic_entropies_are_those_of_lm_polygraph(case):
    inputs, ids, total = item(case)
    often, single = (
        np.full(len(ids), -np.log(len(ids))),
        sm.drop_repeated_texts(total, inputs["sample_texts"]),
    )
    got = dict(
        SemanticEntropy=sm.semantic_entropy_lmp(total, ids),
        SemanticEntropy_direct=sm.semantic_entropy_lmp_direct(total, ids),
        SemanticEntropyUnique=sm.semantic_entropy_lmp_unique(total, inputs["sample_texts"], ids),
        SemanticEntropyUnique_direct=sm.semantic_entropy_lmp_direct(single, ids),
        SemanticEntropyEmpirical=sm.semantic_entropy_lmp(often, ids),
        SemanticEntropyEmpirical_direct=sm.semantic_entropy_lmp_direct(often, ids),
    )
    assert got == {name: pytest.approx(case["outputs"][name][0], **close(case)) for name in got}


@named("nli_graph")
def test_the_entropy_of_frequencies_is_the_discrete_one(case):
    _, ids, _ = item(case)
    if len(ids) > 1:
        assert sm.discrete_semantic_entropy(ids) == pytest.approx(
            case["outputs"]["SemanticEntropyEmpirical"][0], **close(case)
        )
    else:  # 0 there
        for method in (sm.discrete_semantic_entropy, label_prob):
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                method(ids)


def test_semantic_energy_adds_the_logits_of_the_cluster_of_the_text():
    "As the authors' cal_flow: minus the summed mean logits of a cluster, here over the number of texts"
    rng = np.random.default_rng(0)
    logits = [rng.normal(20, 5, n) for n in (4, 3, 6, 2)]
    nli = np.zeros((4, 4, 3))
    nli[..., 1] = 1
    for i, j in ((0, 1), (1, 0), (0, 2), (3, 0)):  # Sample 1 both ways; 2 and 3 one way each
        nli[i, j] = 0, 0, 1
    want = -(logits[0].mean() + logits[1].mean()) / 4
    assert sm.semantic_energy(logits[0], logits[1:], nli) == pytest.approx(want)
    with pytest.raises(Undefined, match="needs texts with tokens"):
        sm.semantic_energy(np.zeros(0), logits[1:], nli)


@named("nli_graph")
def test_semantic_density_is_that_of_lm_polygraph(case):
    inputs, _, total = item(case)
    probability = np.zeros((1 + len(total), 1 + len(total), 3))
    probability[0, 1:] = np.stack(
        [
            array(inputs["greedy_semantic_matrix_contra_forward"]),
            array(inputs["greedy_semantic_matrix_neutral_forward"]),
            np.zeros(len(total)),
        ],
        -1,
    )
    mean = total / [len(tokens) for tokens in inputs["sample_tokens"]]
    assert sm.semantic_density(
        mean, inputs["sample_texts"], array(inputs["greedy_log_likelihoods"]), probability
    ) == pytest.approx(case["outputs"]["SemanticDensityOutput"][0], **close(case))


@named("nli_graph")
def test_cocoa_is_that_of_lm_polygraph(case):
    inputs, _, _ = item(case)
    logp, entropy, similarity = (
        array(inputs[k]) for k in ("greedy_log_likelihoods", "entropy", "greedy_sentence_similarity")
    )
    assert [
        sm.cocoa_msp(logp, similarity),
        sm.cocoa_ppl(logp, similarity),
        sm.cocoa_mte(entropy, similarity),
    ] == pytest.approx([case["outputs"][f"Cocoa{n}"][0] for n in ("MSP", "PPL", "MTE")], **close(case))


@named("nli_graph")
def test_sentence_sar_is_that_of_lm_polygraph(case):
    inputs, _, total = item(case)
    assert sm.sentence_sar(total, array(inputs["sample_sentence_similarity"])) == pytest.approx(
        case["outputs"]["SentenceSAR"][0], **close(case)
    )


@named("sar")
def test_sar_is_that_of_lm_polygraph(case):
    inputs, out = (
        {k: recorded[0] for k, recorded in case["inputs"].items()},
        {k: float(recorded[0]) for k, recorded in case["outputs"].items()},
    )
    similarity = array(inputs["sample_sentence_similarity"])
    if case["name"] == "sentence_sar_underflow":
        assert out == dict(SentenceSAR=np.inf)  # exp(-800) is 0 for the other library
        assert sm.sentence_sar(array(inputs["sample_log_probs"]), similarity) == pytest.approx(
            800 - np.log(500) / 2, rel=1e-12
        )
        return
    assert sm.sentence_sar(array(inputs["sample_log_probs"]), similarity) == pytest.approx(
        out["SentenceSAR"], rel=1e-12
    )
    relevance = [1 - array(values) for values in inputs["sample_token_similarity"]]
    token = lambda: sm.token_sar(
        array(inputs["greedy_log_likelihoods"]), 1 - array(inputs["token_similarity"])
    )
    whole = lambda: sm.sar([array(x) for x in inputs["sample_log_likelihoods"]], relevance, similarity)
    if case["name"] == "all_similarity_one":
        assert np.isnan([out["TokenSAR"], out["SAR"]]).all()
        for method in (token, whole):
            with pytest.raises(Undefined, match="no token has relevance above 0"):
                method()
    else:
        assert [token(), whole()] == pytest.approx([out["TokenSAR"], out["SAR"]], rel=1e-12)


CLASS = dict(contra=0, neutral=1, entail=2)


def claims(case):
    top = np.array(case["inputs"]["greedy_tokens_alternatives"][0])
    nli = case["inputs"]["greedy_tokens_alternatives_nli"][0]
    labels = sm.ccp_label(
        [[CLASS[x] for x in matrix[0]] for matrix in nli],
        [[CLASS[row[0]] for row in matrix] for matrix in nli],
    )
    return (
        np.array(case["inputs"]["greedy_tokens"][0]),
        top[:, 0, 1],
        top[:, :, 0].astype(int),
        top[:, :, 1],
        labels,
    )


@named("ccp")
def test_ccp_is_that_of_lm_polygraph(case):
    got, want = sm.ccp(*claims(case)), case["outputs"]["CCP"][0]
    assert got == pytest.approx(want, rel=1e-12) and sm.ccp_log(*claims(case)) == pytest.approx(
        -np.log(-want), rel=1e-12, abs=1e-15
    )


@named("ccp")
def test_the_greedy_token_need_not_be_first_or_there_at_all(case):
    ids, logp, top_ids, top, labels = claims(case)
    want = sm.ccp_log(ids, logp, top_ids, top, labels)
    assert sm.ccp_log(ids, logp, top_ids[:, ::-1], top[:, ::-1], labels[:, ::-1]) == pytest.approx(
        want, rel=1e-12
    )
    assert sm.ccp_log(ids, logp, top_ids[:, 1:], top[:, 1:], labels[:, 1:]) == pytest.approx(want, rel=1e-12)


@named("attention_hidden", "eigenscore")
def test_eigen_score_is_that_of_lm_polygraph(case):
    assert [
        sm.eigen_score(np.array(states)) for states in case["inputs"]["sample_embeddings"]
    ] == pytest.approx(case["outputs"]["EigenScore"], rel=1e-9)


# Farquhar et al.
@named("peer_semantic_uncertainty")
def test_semantic_entropy_is_that_of_its_authors(case):
    logp, out = array(case["inputs"]["log_likelihoods_length_normalized"]), case["outputs"]
    for how in ("strict", "nonstrict"):
        ids = np.array(out[f"semantic_ids_{how}"])
        if case["name"] == "k1":  # 0 there
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                sm.semantic_entropy(logp, ids)
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                sm.discrete_semantic_entropy(ids)
        else:
            assert sm.semantic_entropy(logp, ids) == pytest.approx(out[f"semantic_entropy_{how}"], rel=1e-12)
            assert sm.discrete_semantic_entropy(ids) == pytest.approx(
                out[f"cluster_assignment_entropy_{how}"], rel=1e-12
            )
        clustered = sm.cluster_logp(logp, ids)
        assert clustered - np.logaddexp.reduce(clustered) == pytest.approx(
            out[f"cluster_log_prob_sum_normalized_{how}"], rel=1e-12, abs=1e-15
        )


@named("peer_semantic_uncertainty")
def test_the_first_matching_cluster_is_taken_where_the_authors_take_the_last(case):
    labels = np.array(case["inputs"]["nli_label_matrix_0contra_1neutral_2entail"])
    both, ours = (labels == 2) & (labels.T == 2), sm.clusters([of_classes(labels)])[0]
    first = np.unique(ours, return_index=True)[1]  # representatives
    fits = [
        [cluster for cluster, j in enumerate(first) if j <= i and (both[i, j] or i == j)]
        for i in range(len(labels))
    ]
    assert [found[0] for found in fits] == ours.tolist() and [found[-1] for found in fits] == case["outputs"][
        "semantic_ids_strict"
    ]
    if case["name"] == "random_k10":
        assert [i for i, found in enumerate(fits) if len(found) > 1] == [6]


# Others
@named("peer_uq_nlg")
def test_the_semantic_entropy_of_lin_et_al_sees_no_clusters(case):
    "In the log of the mean cluster probability the clusters cancel: all samples over the number of sets."
    logp = -array(case["inputs"]["neg_log_likelihood"][0])
    for kind, x in (("unnorm", logp), ("norm", logp / array(case["inputs"]["length"][0]))):
        one = np.zeros(len(x), int)
        assert sm.semantic_entropy_lmp(x, one) + np.log(case["outputs"]["numsets"][0]) == pytest.approx(
            case["outputs"][f"semanticEntropy_{kind}"][0], rel=1e-5, abs=1e-6
        )


@named("peer_uqlm", "semantic_clusters_either_direction")
def test_clusters_of_uqlm_overlap_and_ours_do_not(case):
    "There one direction suffices, and clusters overlap (9 members); here both are needed: 1 and 3."
    labels = np.array(case["inputs"]["label_matrix_0contra_1neutral_2entail"])
    theirs, ours = case["outputs"]["cluster_indices"], sm.clusters([of_classes(labels)])[0]
    assert sum(map(len, theirs)) == 9 and ours.tolist() == [0, 1, 2, 1, 3, 4]
    seats = (
        [i for members in theirs for i in members],
        np.repeat(range(3), [len(cluster) for cluster in theirs]),
    )
    probability = array(case["inputs"]["response_probabilities"])[seats[0]]
    assert sm.semantic_entropy(np.log(probability), seats[1]) == pytest.approx(
        case["outputs"]["semantic_entropy_tokenprob"], rel=1e-12
    )
    assert sm.discrete_semantic_entropy(seats[1]) == pytest.approx(
        case["outputs"]["semantic_entropy_discrete"], rel=1e-12
    )


# Long texts: probabilities below every floating point number
FAR = -5000


def test_scores_of_long_texts_are_those_of_short_ones_moved():
    rng = np.random.default_rng(0)
    logp, ids, similarity = rng.normal(-20, 2, 6), np.array([0, 1, 0, 2, 1, 0]), rng.random((6, 6))
    assert sm.semantic_entropy(logp + FAR, ids) == pytest.approx(sm.semantic_entropy(logp, ids), rel=1e-9)
    assert sm.semantic_entropy_lmp(logp + FAR, ids) == pytest.approx(
        sm.semantic_entropy_lmp(logp, ids) - FAR, rel=1e-12
    )
    assert sm.sentence_sar(logp + FAR, similarity) == pytest.approx(
        sm.sentence_sar(logp, similarity) - FAR, rel=1e-12
    )
    probability = nli_probability([rng.normal(0, 1, (7, 7, 3))])[0]
    assert sm.semantic_density(
        logp + FAR, list("abcdef"), np.full(3, logp[0] + FAR), probability
    ) == pytest.approx(sm.semantic_density(logp, list("abcdef"), np.full(3, logp[0]), probability), rel=1e-9)


def test_an_impossible_sample_weighs_nothing_and_an_impossible_set_is_no_number():
    logp, ids = np.array([-1, -np.inf, -2]), np.array([0, 0, 1])
    assert sm.semantic_entropy(logp, ids) == pytest.approx(sm.semantic_entropy(logp[[0, 2]], ids[[0, 2]]))
    assert sm.semantic_entropy_lmp(logp, np.array([0, 1, 2])) == np.inf and np.isfinite(
        sm.semantic_entropy_lmp_direct(logp, np.array([0, 1, 2]))
    )
    assert sm.sentence_sar(np.array([-1, -np.inf]), np.zeros((2, 2))) == np.inf
    with pytest.raises(Undefined, match="probability 0"):
        sm.semantic_entropy(np.full(2, -np.inf), np.array([0, 1]))


# What must not matter, and what must
def drawn(k, seed):
    "One item; equal texts share everything"
    rng = np.random.default_rng(seed)
    index = rng.integers(0, k, k)
    nli = rng.normal(0, 2, (1 + k, 1 + k, 3))
    nli[range(1, 1 + k), range(1, 1 + k)] = [-4, 0, 9]
    every = np.r_[0, 1 + index]
    logp = [rng.normal(-1, 0.3, n) for n in rng.integers(1, 6, k)]
    similar = rng.random((k, k))
    return dict(
        nli=nli[np.ix_(every, every)],
        sample_texts=[f"t{i}" for i in index],
        sample_logp=[logp[i] for i in index],
        sample_relevance=[np.linspace(0.1, 1, len(logp[i])) for i in index],
        sample_similarity=((similar + similar.T) / 2)[np.ix_(index, index)],
        greedy_logp=-rng.random(4),
        greedy_entropy=rng.random(4),
        vectors=rng.normal(0, 1, (1 + k, 5))[every],
        nli_sentences=rng.normal(0, 1, (k, 3, 3))[index],
        sample_states=rng.normal(0, 1, (k, 8))[index],
    )


def value(name, given):
    def get(needs):
        return (
            given[needs]
            if needs in given
            else reg[needs].fn(**{needed: [get(needed)] for needed in reg[needs].needs})[0]
        )

    return reg[name].fn(**{needs: get(needs) for needs in reg[name].needs})


def permuted(item, order):
    with_greedy = np.r_[0, 1 + order]

    def one(name, value):
        if name == "nli":
            return value[np.ix_(with_greedy, with_greedy)]
        if name == "sample_similarity":
            return value[np.ix_(order, order)]
        if name == "vectors":
            return value[with_greedy]
        if name.startswith("greedy"):
            return value
        return value[order] if isinstance(value, np.ndarray) else [value[i] for i in order]

    return {name: one(name, value) for name, value in item.items()}


PROBABLE = [
    "semantic_entropy",
    "semantic_entropy_lmp",
    "semantic_entropy_lmp_direct",
    "semantic_entropy_lmp_unique",
    "discrete_semantic_entropy",
]
FREE = [
    "semantic_density",
    "cocoa_msp",
    "cocoa_ppl",
    "cocoa_mte",
    "sentence_sar",
    "sar",
    "selfcheck_nli",
    "selfcheck_nli_text",
    "eigen_score",
]


@pytest.mark.parametrize("name", FREE)
@given(k=st.integers(2, 6), seed=st.integers(0, 99))
def test_the_order_of_samples_does_not_matter_and_inputs_stay(name, k, seed):
    inputs, again = drawn(k, seed), drawn(k, seed)
    first = value(name, inputs)
    assert np.isfinite(first) and all(
        np.array_equal(before, after) for n in inputs for before, after in zip(inputs[n], again[n])
    )
    assert value(name, permuted(inputs, np.random.default_rng(seed).permutation(k))) == pytest.approx(
        first, rel=1e-9
    )


@pytest.mark.parametrize("name", PROBABLE)
@given(k=st.integers(2, 6), seed=st.integers(0, 99))
def test_the_order_of_samples_matters_through_clusters_alone(name, k, seed):
    inputs, order = drawn(k, seed), np.random.default_rng(seed).permutation(k)
    (ids,) = sm.clusters([inputs["nli"]])
    _, same = np.unique(ids[order], return_inverse=True)  # the same groups under other numbers
    assert value(name, permuted(inputs, order) | dict(clusters=same)) == pytest.approx(
        value(name, inputs), rel=1e-9, abs=1e-12
    )


@given(k=st.integers(1, 8), seed=st.integers(0, 99))
def test_clusters_are_numbered_as_they_appear_and_hold_equal_texts_together(k, seed):
    inputs = drawn(k, seed)
    ids = sm.clusters([inputs["nli"]])[0].tolist()
    assert list(dict.fromkeys(ids)) == list(range(max(ids) + 1))
    assert len(set(zip(inputs["sample_texts"], ids))) == len(set(inputs["sample_texts"]))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
def test_only_the_first_of_equal_texts_is_kept(texts):
    assert np.isfinite(sm.drop_repeated_texts(np.zeros(len(texts)), texts)).tolist() == [
        text not in texts[:i] for i, text in enumerate(texts)
    ]


def test_how_a_repeated_text_counts():
    "Drawn again, a text makes its meaning likelier, unless texts count once."
    logp, texts, ids = np.log([0.4, 0.3]), ["a", "b"], np.array([0, 1])
    logp_repeated, texts_repeated, ids_repeated = logp[[0, 0, 1]], ["a", "a", "b"], ids[[0, 0, 1]]
    assert sm.semantic_entropy(logp_repeated, ids_repeated) == pytest.approx(
        sm.semantic_entropy(np.log([0.8, 0.3]), ids)
    )
    assert sm.semantic_entropy_lmp_unique(logp_repeated, texts_repeated, ids_repeated) == pytest.approx(
        -(2 * np.log(0.4) + np.log(0.3)) / 3
    )
    probability = np.full((4, 4, 3), 1 / 3)
    assert sm.semantic_density(logp_repeated, texts_repeated, logp[:1], probability) == pytest.approx(
        sm.semantic_density(logp, texts, logp[:1], probability[1:, 1:])
    )


@given(k=st.integers(2, 6), seed=st.integers(0, 99))
def test_entropies_lie_between_one_meaning_and_all_different(k, seed):
    logp = np.random.default_rng(seed).normal(-2, 1, k)
    assert sm.semantic_entropy(logp, np.zeros(k, int)) == 0 == sm.discrete_semantic_entropy(np.zeros(k, int))
    assert sm.discrete_semantic_entropy(np.arange(k)) == pytest.approx(np.log(k))
    merged = np.minimum(np.arange(k), k - 2)
    assert sm.semantic_entropy(logp, merged) < sm.semantic_entropy(logp, np.arange(k)) <= np.log(k) + 1e-12


def test_samples_without_tokens_or_without_samples_are_no_numbers():
    (mean,) = sample_mean_logp([[np.array([-1.0, -3]), np.array([])]])
    assert mean[0] == -2 and np.isnan(mean[1])
    probability = np.full((3, 3, 3), 1 / 3)
    for method in (
        lambda: sm.semantic_entropy(mean, np.array([0, 1])),
        lambda: sm.semantic_density(mean, ["a", ""], -np.ones(2), probability),
    ):
        with pytest.raises(Undefined, match="a sample without tokens"):
            method()
    nothing = np.array([])
    for method in (
        lambda: sm.semantic_entropy_lmp(nothing, nothing.astype(int)),
        lambda: sm.semantic_density(nothing, [], -np.ones(2), probability[:1, :1]),
        lambda: sm.cocoa_msp(-np.ones(2), nothing),
        lambda: sm.sentence_sar(nothing, np.zeros((0, 0))),
        lambda: sm.selfcheck_nli_text(probability[:1, :1]),
        lambda: sm.eigen_score(np.ones((1, 4))),
    ):
        with pytest.raises(Undefined, match="needs"):
            method()


def test_self_check_reads_samples_as_premises():
    nli = np.zeros((3, 3, 3))
    nli[1:, 0] = [4, 0, -4]  # samples contradict the greedy text
    nli[0, 1:] = [-4, 0, 4]  # which says nothing about the other direction
    assert sm.selfcheck_nli_text(nli) == pytest.approx(1 / (1 + np.exp(-8)))
    assert sm.selfcheck_nli(nli[1:, :1]) == pytest.approx(sm.selfcheck_nli_text(nli))


def test_similarity_to_the_greedy_text_is_a_cosine():
    vectors = np.random.default_rng(0).normal(0, 3, (5, 4))
    assert sm.greedy_similarity([vectors])[0] == pytest.approx(
        [vectors[0] @ x / np.sqrt((vectors[0] @ vectors[0]) * (x @ x)) for x in vectors[1:]], rel=1e-12
    )


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="one log-probability per sample, got 3 for 2"):
        sm.semantic_entropy_lmp(np.zeros(3), np.zeros(2, int))
    with pytest.raises(ValueError, match=r"needs relevance for each token, got shape \(3,\) for \(2,\)"):
        sm.token_sar(np.zeros(2), np.ones(3))
    with pytest.raises(ValueError, match="must not be negative"):
        sm.sentence_sar(np.zeros(2), np.array([[1, -0.1], [-0.1, 1]]))
    with pytest.raises(ValueError, match="all zeros"):
        sm.greedy_similarity([np.array([[1, 0], [0, 0]])])


# Infinity against zero
def test_an_impossible_word_leaves_a_score_undefined_where_it_meets_zero():
    never, alike = np.array([-np.inf, -1.0]), np.ones(3)
    assert sm.cocoa_msp(never, alike - 0.5) == sm.cocoa_ppl(never, alike - 0.5) == np.inf
    for method in (sm.cocoa_msp, sm.cocoa_ppl):
        with pytest.raises(Undefined, match="inf times 0"):
            method(never, alike)
    probability = nli_probability([of_classes(np.full((2, 2), 2))])[0]
    assert sm.semantic_density(np.array([-np.inf, -1]), ["a", "b"], never, probability) > -1
    with pytest.raises(Undefined, match="every sample have probability 0"):
        sm.semantic_density(np.full(2, -np.inf), ["a", "b"], never, probability)
    top = np.array([1]), np.array([-np.inf]), np.array([[1, 2]])
    assert sm.ccp_log(*top, np.array([[-np.inf, -1]]), np.array([[2, 0]])) == np.inf
    with pytest.raises(Undefined, match="a token is impossible"):
        sm.ccp_log(*top, np.array([[-np.inf, -1]]), np.array([[2, 1]]))


def test_a_repeated_text_in_another_cluster_counts_there():
    from uetrust.ue.semantic import semantic_entropy_lmp, semantic_entropy_lmp_unique

    logp = np.log([0.5, 0.5, 0.2])
    assert semantic_entropy_lmp_unique(logp, ["a", "a", "b"], np.array([0, 1, 2])) == pytest.approx(
        semantic_entropy_lmp(logp, np.array([0, 1, 2]))
    )
    assert semantic_entropy_lmp_unique(logp, ["a", "a", "b"], np.array([0, 0, 2])) == pytest.approx(
        -(2 * np.log(0.5) + np.log(0.2)) / 3
    )


def partitions(total, largest=None):
    "All ways to write a number as a sum of numbers >= 1, the largest first."
    if not total:
        yield ()
    for first in range(min(total, largest or total), 0, -1):
        yield from ((first, *rest) for rest in partitions(total - first, first))


@pytest.mark.parametrize("samples", [5, 10, 12])
def test_discrete_entropies_are_equal_to_the_last_bit(samples):
    "Any order of the clusters and of the samples; as many values as there are products of c^c."
    rng, exact = np.random.default_rng(samples), {}
    for sizes in partitions(samples):
        values = set()
        for _ in range(20):
            order = rng.permutation(len(sizes))
            ids = np.repeat(order, np.array(sizes))
            values.add(sm.discrete_semantic_entropy(rng.permutation(ids)))
        shares = np.array(sizes) / samples
        assert len(values) == 1 and values.pop() == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-14)
        exact.setdefault(math.prod(c**c for c in sizes), set()).add(sm.discrete_semantic_entropy(ids))
    assert all(len(values) == 1 for values in exact.values())
    assert len(set.union(*exact.values())) == len(exact)
