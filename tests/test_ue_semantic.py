"""Meaning and probability: what peers compute, where they fail, and what must not matter."""

import json

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
        [c for c in ALL.get(group, []) if not names or c["name"] in names] or ABSENT,
        ids=lambda c: c and c["name"],
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
    assert [np.flatnonzero(ids == c).tolist() for c in range(ids.max() + 1)] == case["outputs"][
        "semantic_classes"
    ]


def item(case):
    i = {k: v[0] for k, v in case["inputs"].items() if isinstance(v, list)}
    (ids,) = sm.clusters([of_classes(i["semantic_matrix_classes"])])
    return i, ids, array(i["sample_log_probs"])


@named("nli_graph")
def test_semantic_entropies_are_those_of_lm_polygraph(case):
    i, ids, total = item(case)
    often, single = np.full(len(ids), -np.log(len(ids))), sm.once(total, i["sample_texts"])
    got = dict(
        SemanticEntropy=sm.semantic_entropy_lmp(total, ids),
        SemanticEntropy_direct=sm.semantic_entropy_lmp_direct(total, ids),
        SemanticEntropyUnique=sm.semantic_entropy_lmp_unique(total, i["sample_texts"], ids),
        SemanticEntropyUnique_direct=sm.semantic_entropy_lmp_direct(single, ids),
        SemanticEntropyEmpirical=sm.semantic_entropy_lmp(often, ids),
        SemanticEntropyEmpirical_direct=sm.semantic_entropy_lmp_direct(often, ids),
    )
    assert got == {k: pytest.approx(case["outputs"][k][0], **close(case)) for k in got}


@named("nli_graph")
def test_the_entropy_of_frequencies_is_the_discrete_one(case):
    _, ids, _ = item(case)
    if len(ids) > 1:
        assert sm.discrete_semantic_entropy(ids) == pytest.approx(
            case["outputs"]["SemanticEntropyEmpirical"][0], **close(case)
        )
    else:  # 0 there
        for f in (sm.discrete_semantic_entropy, label_prob):
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                f(ids)


@named("nli_graph")
def test_semantic_density_is_that_of_lm_polygraph(case):
    i, _, total = item(case)
    p = np.zeros((1 + len(total), 1 + len(total), 3))
    p[0, 1:] = np.stack(
        [
            array(i["greedy_semantic_matrix_contra_forward"]),
            array(i["greedy_semantic_matrix_neutral_forward"]),
            np.zeros(len(total)),
        ],
        -1,
    )
    mean = total / [len(t) for t in i["sample_tokens"]]
    assert sm.semantic_density(
        mean, i["sample_texts"], array(i["greedy_log_likelihoods"]), p
    ) == pytest.approx(case["outputs"]["SemanticDensityOutput"][0], **close(case))


@named("nli_graph")
def test_cocoa_is_that_of_lm_polygraph(case):
    i, _, _ = item(case)
    l, h, g = (array(i[k]) for k in ("greedy_log_likelihoods", "entropy", "greedy_sentence_similarity"))
    assert [sm.cocoa_msp(l, g), sm.cocoa_ppl(l, g), sm.cocoa_mte(h, g)] == pytest.approx(
        [case["outputs"][f"Cocoa{n}"][0] for n in ("MSP", "PPL", "MTE")], **close(case)
    )


@named("nli_graph")
def test_sentence_sar_is_that_of_lm_polygraph(case):
    i, _, total = item(case)
    assert sm.sentence_sar(total, array(i["sample_sentence_similarity"])) == pytest.approx(
        case["outputs"]["SentenceSAR"][0], **close(case)
    )


@named("sar")
def test_sar_is_that_of_lm_polygraph(case):
    i, out = (
        {k: v[0] for k, v in case["inputs"].items()},
        {k: float(v[0]) for k, v in case["outputs"].items()},
    )
    g = array(i["sample_sentence_similarity"])
    if case["name"] == "sentence_sar_underflow":
        assert out == dict(SentenceSAR=np.inf)  # exp(-800) is 0 for the peer
        assert sm.sentence_sar(array(i["sample_log_probs"]), g) == pytest.approx(
            800 - np.log(500) / 2, rel=1e-12
        )
        return
    assert sm.sentence_sar(array(i["sample_log_probs"]), g) == pytest.approx(out["SentenceSAR"], rel=1e-12)
    relevance = [1 - array(s) for s in i["sample_token_similarity"]]
    token = lambda: sm.token_sar(array(i["greedy_log_likelihoods"]), 1 - array(i["token_similarity"]))
    whole = lambda: sm.sar([array(x) for x in i["sample_log_likelihoods"]], relevance, g)
    if case["name"] == "all_similarity_one":
        assert np.isnan([out["TokenSAR"], out["SAR"]]).all()
        for f in (token, whole):
            with pytest.raises(Undefined, match="no token has relevance above 0"):
                f()
    else:
        assert [token(), whole()] == pytest.approx([out["TokenSAR"], out["SAR"]], rel=1e-12)


CLASS = dict(contra=0, neutral=1, entail=2)


def claims(case):
    top = np.array(case["inputs"]["greedy_tokens_alternatives"][0])
    nli = case["inputs"]["greedy_tokens_alternatives_nli"][0]
    labels = sm.ccp_label(
        [[CLASS[x] for x in m[0]] for m in nli], [[CLASS[row[0]] for row in m] for m in nli]
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
    assert [sm.eigen_score(np.array(z)) for z in case["inputs"]["sample_embeddings"]] == pytest.approx(
        case["outputs"]["EigenScore"], rel=1e-9
    )


# Farquhar et al.
@named("peer_semantic_uncertainty")
def test_semantic_entropy_is_that_of_its_authors(case):
    l, out = array(case["inputs"]["log_likelihoods_length_normalized"]), case["outputs"]
    for how in ("strict", "nonstrict"):
        ids = np.array(out[f"semantic_ids_{how}"])
        if case["name"] == "k1":  # 0 there
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                sm.semantic_entropy(l, ids)
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                sm.discrete_semantic_entropy(ids)
        else:
            assert sm.semantic_entropy(l, ids) == pytest.approx(out[f"semantic_entropy_{how}"], rel=1e-12)
            assert sm.discrete_semantic_entropy(ids) == pytest.approx(
                out[f"cluster_assignment_entropy_{how}"], rel=1e-12
            )
        p = sm.cluster_logp(l, ids)
        assert p - np.logaddexp.reduce(p) == pytest.approx(
            out[f"cluster_log_prob_sum_normalized_{how}"], rel=1e-12, abs=1e-15
        )


@named("peer_semantic_uncertainty")
def test_the_first_matching_cluster_is_taken_where_the_authors_take_the_last(case):
    labels = np.array(case["inputs"]["nli_label_matrix_0contra_1neutral_2entail"])
    both, ours = (labels == 2) & (labels.T == 2), sm.clusters([of_classes(labels)])[0]
    first = np.unique(ours, return_index=True)[1]  # representatives
    fits = [[c for c, j in enumerate(first) if j <= i and (both[i, j] or i == j)] for i in range(len(labels))]
    assert [f[0] for f in fits] == ours.tolist() and [f[-1] for f in fits] == case["outputs"][
        "semantic_ids_strict"
    ]
    if case["name"] == "random_k10":
        assert [i for i, f in enumerate(fits) if len(f) > 1] == [6]


# Others
@named("peer_uq_nlg")
def test_the_semantic_entropy_of_lin_et_al_sees_no_clusters(case):
    "They take the log of the mean cluster probability, in which the clusters cancel: all samples summed, over the number of sets."
    l = -array(case["inputs"]["neg_log_likelihood"][0])
    for kind, x in (("unnorm", l), ("norm", l / array(case["inputs"]["length"][0]))):
        one = np.zeros(len(x), int)
        assert sm.semantic_entropy_lmp(x, one) + np.log(case["outputs"]["numsets"][0]) == pytest.approx(
            case["outputs"][f"semanticEntropy_{kind}"][0], rel=1e-5, abs=1e-6
        )


@named("peer_uqlm", "semantic_clusters_either_direction")
def test_clusters_of_uqlm_overlap_and_ours_do_not(case):
    "Either direction joins there, and a sample may sit in several clusters: 9 seats for 6 samples. Ours need both directions: 1 and 3 together, the others alone."
    labels = np.array(case["inputs"]["label_matrix_0contra_1neutral_2entail"])
    theirs, ours = case["outputs"]["cluster_indices"], sm.clusters([of_classes(labels)])[0]
    assert sum(map(len, theirs)) == 9 and ours.tolist() == [0, 1, 2, 1, 3, 4]
    seats = [i for members in theirs for i in members], np.repeat(range(3), [len(m) for m in theirs])
    p = array(case["inputs"]["response_probabilities"])[seats[0]]
    assert sm.semantic_entropy(np.log(p), seats[1]) == pytest.approx(
        case["outputs"]["semantic_entropy_tokenprob"], rel=1e-12
    )
    assert sm.discrete_semantic_entropy(seats[1]) == pytest.approx(
        case["outputs"]["semantic_entropy_discrete"], rel=1e-12
    )


# Long texts: probabilities below every floating point number
FAR = -5000


def test_scores_of_long_texts_are_those_of_short_ones_moved():
    rng = np.random.default_rng(0)
    l, ids, g = rng.normal(-20, 2, 6), np.array([0, 1, 0, 2, 1, 0]), rng.random((6, 6))
    assert sm.semantic_entropy(l + FAR, ids) == pytest.approx(sm.semantic_entropy(l, ids), rel=1e-9)
    assert sm.semantic_entropy_lmp(l + FAR, ids) == pytest.approx(
        sm.semantic_entropy_lmp(l, ids) - FAR, rel=1e-12
    )
    assert sm.sentence_sar(l + FAR, g) == pytest.approx(sm.sentence_sar(l, g) - FAR, rel=1e-12)
    p = nli_probability([rng.normal(0, 1, (7, 7, 3))])[0]
    assert sm.semantic_density(l + FAR, list("abcdef"), np.full(3, l[0] + FAR), p) == pytest.approx(
        sm.semantic_density(l, list("abcdef"), np.full(3, l[0]), p), rel=1e-9
    )


def test_an_impossible_sample_weighs_nothing_and_an_impossible_set_is_no_number():
    l, ids = np.array([-1, -np.inf, -2]), np.array([0, 0, 1])
    assert sm.semantic_entropy(l, ids) == pytest.approx(sm.semantic_entropy(l[[0, 2]], ids[[0, 2]]))
    assert sm.semantic_entropy_lmp(l, np.array([0, 1, 2])) == np.inf and np.isfinite(
        sm.semantic_entropy_lmp_direct(l, np.array([0, 1, 2]))
    )
    assert sm.sentence_sar(np.array([-1, -np.inf]), np.zeros((2, 2))) == np.inf
    with pytest.raises(Undefined, match="probability 0"):
        sm.semantic_entropy(np.full(2, -np.inf), np.array([0, 1]))


# What must not matter, and what must
def drawn(k, seed):
    "One item; equal texts share everything"
    rng = np.random.default_rng(seed)
    at = rng.integers(0, k, k)
    nli = rng.normal(0, 2, (1 + k, 1 + k, 3))
    nli[range(1, 1 + k), range(1, 1 + k)] = [-4, 0, 9]
    every = np.r_[0, 1 + at]
    logp = [rng.normal(-1, 0.3, n) for n in rng.integers(1, 6, k)]
    similar = rng.random((k, k))
    return dict(
        nli=nli[np.ix_(every, every)],
        sample_texts=[f"t{i}" for i in at],
        sample_logp=[logp[i] for i in at],
        sample_relevance=[np.linspace(0.1, 1, len(logp[i])) for i in at],
        sample_similarity=((similar + similar.T) / 2)[np.ix_(at, at)],
        greedy_logp=-rng.random(4),
        greedy_entropy=rng.random(4),
        vectors=rng.normal(0, 1, (1 + k, 5))[every],
        nli_sentences=rng.normal(0, 1, (k, 3, 3))[at],
        sample_states=rng.normal(0, 1, (k, 8))[at],
    )


def value(name, given):
    def get(n):
        return given[n] if n in given else reg[n].fn(**{m: [get(m)] for m in reg[n].needs})[0]

    return reg[name].fn(**{n: get(n) for n in reg[name].needs})


def permuted(item, p):
    q = np.r_[0, 1 + p]

    def one(n, v):
        if n == "nli":
            return v[np.ix_(q, q)]
        if n == "sample_similarity":
            return v[np.ix_(p, p)]
        if n == "vectors":
            return v[q]
        if n.startswith("greedy"):
            return v
        return v[p] if isinstance(v, np.ndarray) else [v[i] for i in p]

    return {n: one(n, v) for n, v in item.items()}


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
    i, again = drawn(k, seed), drawn(k, seed)
    first = value(name, i)
    assert np.isfinite(first) and all(np.array_equal(a, b) for n in i for a, b in zip(i[n], again[n]))
    assert value(name, permuted(i, np.random.default_rng(seed).permutation(k))) == pytest.approx(
        first, rel=1e-9
    )


@pytest.mark.parametrize("name", PROBABLE)
@given(k=st.integers(2, 6), seed=st.integers(0, 99))
def test_the_order_of_samples_matters_through_clusters_alone(name, k, seed):
    i, p = drawn(k, seed), np.random.default_rng(seed).permutation(k)
    (ids,) = sm.clusters([i["nli"]])
    _, same = np.unique(ids[p], return_inverse=True)  # the same groups under other numbers
    assert value(name, permuted(i, p) | dict(clusters=same)) == pytest.approx(
        value(name, i), rel=1e-9, abs=1e-12
    )


@given(k=st.integers(1, 8), seed=st.integers(0, 99))
def test_clusters_are_numbered_as_they_appear_and_hold_equal_texts_together(k, seed):
    i = drawn(k, seed)
    ids = sm.clusters([i["nli"]])[0].tolist()
    assert list(dict.fromkeys(ids)) == list(range(max(ids) + 1))
    assert len(set(zip(i["sample_texts"], ids))) == len(set(i["sample_texts"]))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
def test_only_the_first_of_equal_texts_is_kept(ts):
    assert np.isfinite(sm.once(np.zeros(len(ts)), ts)).tolist() == [t not in ts[:i] for i, t in enumerate(ts)]


def test_how_a_repeated_text_counts():
    "Drawn again, a text makes its meaning likelier, unless texts count once."
    l, texts, ids = np.log([0.4, 0.3]), ["a", "b"], np.array([0, 1])
    l2, texts2, ids2 = l[[0, 0, 1]], ["a", "a", "b"], ids[[0, 0, 1]]
    assert sm.semantic_entropy(l2, ids2) == pytest.approx(sm.semantic_entropy(np.log([0.8, 0.3]), ids))
    assert sm.semantic_entropy_lmp_unique(l2, texts2, ids2) == pytest.approx(
        -(2 * np.log(0.4) + np.log(0.3)) / 3
    )
    p = np.full((4, 4, 3), 1 / 3)
    assert sm.semantic_density(l2, texts2, l[:1], p) == pytest.approx(
        sm.semantic_density(l, texts, l[:1], p[1:, 1:])
    )


@given(k=st.integers(2, 6), seed=st.integers(0, 99))
def test_entropies_lie_between_one_meaning_and_all_different(k, seed):
    l = np.random.default_rng(seed).normal(-2, 1, k)
    assert sm.semantic_entropy(l, np.zeros(k, int)) == 0 == sm.discrete_semantic_entropy(np.zeros(k, int))
    assert sm.discrete_semantic_entropy(np.arange(k)) == pytest.approx(np.log(k))
    merged = np.minimum(np.arange(k), k - 2)
    assert sm.semantic_entropy(l, merged) < sm.semantic_entropy(l, np.arange(k)) <= np.log(k) + 1e-12


def test_samples_without_tokens_or_without_samples_are_no_numbers():
    (mean,) = sample_mean_logp([[np.array([-1.0, -3]), np.array([])]])
    assert mean[0] == -2 and np.isnan(mean[1])
    p = np.full((3, 3, 3), 1 / 3)
    for f in (
        lambda: sm.semantic_entropy(mean, np.array([0, 1])),
        lambda: sm.semantic_density(mean, ["a", ""], -np.ones(2), p),
    ):
        with pytest.raises(Undefined, match="a sample without tokens"):
            f()
    nothing = np.array([])
    for f in (
        lambda: sm.semantic_entropy_lmp(nothing, nothing.astype(int)),
        lambda: sm.semantic_density(nothing, [], -np.ones(2), p[:1, :1]),
        lambda: sm.cocoa_msp(-np.ones(2), nothing),
        lambda: sm.sentence_sar(nothing, np.zeros((0, 0))),
        lambda: sm.selfcheck_nli_text(p[:1, :1]),
        lambda: sm.eigen_score(np.ones((1, 4))),
    ):
        with pytest.raises(Undefined, match="needs"):
            f()


def test_self_check_reads_samples_as_premises():
    z = np.zeros((3, 3, 3))
    z[1:, 0] = [4, 0, -4]  # samples contradict the greedy text
    z[0, 1:] = [-4, 0, 4]  # which says nothing about the other direction
    assert sm.selfcheck_nli_text(z) == pytest.approx(1 / (1 + np.exp(-8)))
    assert sm.selfcheck_nli(z[1:, :1]) == pytest.approx(sm.selfcheck_nli_text(z))


def test_similarity_to_the_greedy_text_is_a_cosine():
    v = np.random.default_rng(0).normal(0, 3, (5, 4))
    assert sm.greedy_similarity([v])[0] == pytest.approx(
        [v[0] @ x / np.sqrt((v[0] @ v[0]) * (x @ x)) for x in v[1:]], rel=1e-12
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
    for f in (sm.cocoa_msp, sm.cocoa_ppl):
        with pytest.raises(Undefined, match="inf times 0"):
            f(never, alike)
    p = nli_probability([of_classes(np.full((2, 2), 2))])[0]
    assert sm.semantic_density(np.array([-np.inf, -1]), ["a", "b"], never, p) > -1
    with pytest.raises(Undefined, match="every sample have probability 0"):
        sm.semantic_density(np.full(2, -np.inf), ["a", "b"], never, p)
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
