"""Diversity of samples: what peers compute, where they fail, and what must not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles
from uetrust.stats.similarity import jaccard
from uetrust.ue import diversity as dv
from uetrust.ue import lexical as lx


def cases(group):
    import json

    return json.loads((oracles() / "uncertainty.json").read_text())[group] if oracles() else []


def named(group):
    return pytest.mark.parametrize(
        "case",
        cases(group) or [pytest.param(None, marks=pytest.mark.skip("UETRUST_ORACLES is not at hand"))],
        ids=lambda c: c and c["name"],
    )


def array(x):
    return np.array(x, dtype=object).astype(float)  # the words NaN and Infinity are numbers


def logits(entail, contra):
    "What a model would have said to give these probabilities; the greedy text, which graphs must ignore, stands in front"
    e, c = array(entail), array(contra)
    with np.errstate(divide="ignore"):
        z = np.log(np.stack([c, np.maximum(0, 1 - e - c), e], -1))
    return np.pad(z, ((1, 0), (1, 0), (0, 0)), constant_values=0.7)


def value(f, **given):
    "A score of one item, its statistics made on the way"

    def get(n):
        return given[n] if n in given else reg[n].fn(**{m: [get(m)] for m in reg[n].needs})[0]

    e = reg[getattr(f, "__name__", f)]
    return e.fn(**{n: get(n) for n in e.needs})


GRAPH = dict(
    NumSemSets="num_sets",
    Eccentricity_NLI_score_entail="ecc",
    Eccentricity_NLI_score_contra="ecc_contra",
    Eccentricity_Jaccard_score="ecc_jaccard",
    EigValLaplacian_NLI_score_entail="eigv",
    EigValLaplacian_NLI_score_contra="eigv_contra",
    EigValLaplacian_Jaccard_score="eigv_jaccard",
    DegMat_NLI_score_entail="deg_mat",
    DegMat_NLI_score_contra="deg_mat_contra",
    DegMat_Jaccard_score="deg_mat_jaccard",
    LUQ="luq",
    KernelLanguageEntropy="kle",
)


def item(case):
    i = case["inputs"]
    k = len(i["sample_texts"][0])
    ids = np.empty(k, int)
    for c, members in enumerate(case["outputs"]["semantic_classes"]):
        ids[members] = c
    return dict(
        nli=logits(i["semantic_matrix_entail"][0], i["semantic_matrix_contra"][0]),
        sample_texts=i["sample_texts"][0],
        clusters=ids,
    )


def close(case):
    return dict(rel=1e-5, abs=2e-5) if case.get("dtype") == "float32" else dict(rel=1e-9, abs=1e-7)


# LM-Polygraph
@named("nli_graph")
def test_graph_scores_are_those_of_lm_polygraph(case):
    given, out = item(case), case["outputs"]
    wanted = {ours: out[theirs] for theirs, ours in GRAPH.items()} | dict(label_prob=out["LabelProb"])
    if case["name"] == "k1":
        for ours in wanted:
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                value(ours, **given)
        return
    if (
        case["name"] == "zero_entail_rows_k3"
    ):  # three texts that agree with nothing are three sets; the peer stops
        assert wanted.pop("eigv") == wanted.pop("ecc") == dict(raises="LinAlgError")
        assert value("eigv", **given) == 3 and value("ecc", **given) == pytest.approx(np.sqrt(2))
    if case["name"] == "empty_texts_k3":  # two empty texts have the same words; for the peer they share none
        assert [wanted.pop(f"{s}_jaccard") for s in ("eigv", "ecc", "deg_mat")] == [
            [3],
            [pytest.approx(2**0.5)],
            [pytest.approx(2 / 3)],
        ]
        assert [value(f"{s}_jaccard", **given) for s in ("eigv", "ecc", "deg_mat")] == pytest.approx(
            [2, 1, 4 / 9]
        )
    assert {ours: value(ours, **given) for ours in wanted} == {
        ours: pytest.approx(v[0], **close(case)) for ours, v in wanted.items()
    }


@named("nli_graph")
@pytest.mark.parametrize("which", ["NLI_score_entail", "NLI_score_contra", "Jaccard_score"])
def test_eccentricity_at_another_threshold(case, which):
    given, want = item(case), case["outputs"][f"Eccentricity_{which}_thres0.5"]
    if case["name"] == "k1" or (case["name"], which) == ("empty_texts_k3", "Jaccard_score"):
        return  # asserted above
    got = dv.ecc(dv.spectra([affinity(which, given)])[0], 0.5)
    assert got == pytest.approx(np.sqrt(2) if isinstance(want, dict) else want[0], **close(case))


def affinity(which, given):
    p = dv.nli_probability([given["nli"]])
    return dict(
        NLI_score_entail=lambda: dv.entail_affinity(dv.entail(p)),
        NLI_score_contra=lambda: dv.contra_affinity(dv.contra(p)),
        Jaccard_score=lambda: jaccard([given["sample_texts"]]),
    )[which]()[0]


@named("nli_graph")
def test_kernel_entropy_with_other_settings(case):
    given = item(case)
    p = dv.nli_probability([given["nli"]])
    e = dv.heat_spectrum(dv.entail(p), dv.contra(p), t=1)[0]
    assert e.sum() == pytest.approx(1)
    if len(e) > 1:
        assert dv.kle(e, scale=False) == pytest.approx(
            case["outputs"]["KernelLanguageEntropy_t1_noscale"][0], **close(case)
        )


@named("nli_graph")
def test_luq_reads_logits(case):
    i = case["inputs"]
    z = np.pad(
        np.stack(
            [
                array(i["semantic_matrix_contra_logits"][0]),
                np.full_like(array(i["semantic_matrix_entail"][0]), 9),
                array(i["semantic_matrix_entail_logits"][0]),
            ],
            -1,
        ),
        ((1, 0), (1, 0), (0, 0)),
    )
    if len(z) > 2:
        assert dv.luq(z) == pytest.approx(case["outputs"]["LUQ"][0], **close(case))


def test_a_threshold_is_a_number():
    "The peer's None crashes on a variable that was never set."
    with pytest.raises(TypeError):
        dv.ecc(dv.spectra([np.eye(3)])[0], None)


# Lin et al.
def lin(case, t):
    "Their affinities: tempered, and 1 between equal texts"
    at = case["inputs"]["mapping"]
    z = np.array(case["inputs"]["nli_logits_contra_neutral_entail"])[np.ix_(at, at)] / t
    with np.errstate(divide="ignore"):
        z[np.equal.outer(at, at)] = np.log([0, 0, 1])
    return np.pad(z, ((1, 0), (1, 0), (0, 0)))


@named("peer_uq_nlg")
@pytest.mark.parametrize("t", [3.0, 1.0])
@pytest.mark.parametrize("mode", ["agreement_w", "disagreement_w", "jaccard"])
def test_scores_of_graph_and_sample_are_those_of_lin_et_al(case, mode, t):
    p = dv.nli_probability([lin(case, t)])
    one_way = dict(
        agreement_w=lambda: dv.entail(p),
        disagreement_w=lambda: [1 - c for c in dv.contra(p)],
        jaccard=lambda: jaccard([case["inputs"]["texts"]]),
    )[mode]()
    both = [(w + w.T) / 2 for w in one_way]
    spectrum, k = dv.spectra(both)[0], len(both[0])

    def theirs(what):
        return case["outputs"][f"{what}|{mode}_T{None if mode == 'jaccard' else t}"][0]

    near = dict(rel=1e-5, abs=2e-6)
    assert k * (1 - dv.sample_degree(one_way)[0]) == pytest.approx(theirs("degree_individual"), **near)
    assert dv.sample_ecc([spectrum])[0] == pytest.approx(theirs("eccentricity_individual"), **near)
    assert (1 - spectrum.values).sum() == pytest.approx(theirs("spectral_eigv"), **near)
    scores = dict(
        eigv=lambda: dv.eigv(spectrum), ecc=lambda: dv.ecc(spectrum), deg_mat=lambda: k * dv.deg_mat(both[0])
    )
    if case["name"] == "k1":  # 1, 0 and 0 there
        for f in scores.values():
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                f()
    else:
        assert [f() for f in scores.values()] == pytest.approx(
            [theirs("spectral_eigv_clip"), theirs("eccentricity_overall"), theirs("degree_overall")], **near
        )


@named("peer_uq_nlg")
def test_sets_and_lexical_similarity_are_those_of_lin_et_al(case):
    at = case["inputs"]["mapping"]
    if case["name"] == "k1":  # 1 and -1 there
        with pytest.raises(Undefined):
            dv.num_sets_lin(lin(case, 1))
        with pytest.raises(Undefined):
            lx.lex_sim(np.ones((1, 1)))
    else:
        assert dv.num_sets_lin(lin(case, 1)) == case["outputs"]["numsets"][0]
        w, other = np.array(case["inputs"]["rougeL_matrix"])[np.ix_(at, at)], ~np.equal.outer(at, at)
        theirs = (
            -w[other].mean() if other.any() else -1
        )  # they leave out pairs of equal texts, so a repeated answer makes nothing more certain
        assert theirs == pytest.approx(case["outputs"]["lexical_sim"][0], rel=1e-6)
        assert lx.lex_sim(w) == pytest.approx(
            -(-theirs * other.sum() + (~other).sum() - len(at)) / (len(at) * (len(at) - 1))
        )


def test_handing_on_is_not_being_connected():
    "1-3 and 3-4 and 2-4: a chain is one component, but sample 4 ends in the set of 3, and 2 stays behind."
    z = np.zeros((5, 5, 3))
    z[..., 0] = 1
    for i, j in ((1, 3), (3, 4), (2, 4)):
        z[i, j] = z[j, i] = [0, 0, 2]
    p = dv.nli_probability([z])
    assert dv.num_sets(dv.entail(p)[0], dv.contra(p)[0]) == 1 and dv.num_sets_lin(z) == 2


# Words
LEXICAL = dict(rouge1="lex_sim_rouge_1", rouge2="lex_sim_rouge_2", rougeL="lex_sim", BLEU="lex_sim_bleu")
OURS = {"empty_strings": [-1 / 3, -1], "short": [-1 / 3, 0]}  # where the peer says 0 for equal texts


@named("lexical")
@pytest.mark.parametrize("kind", LEXICAL)
def test_lexical_similarity_is_that_of_lm_polygraph(case, kind):
    texts, want = case["inputs"]["sample_texts"], case["outputs"][f"LexicalSimilarity_{kind}"]
    if case["name"] == "single_sample":
        with pytest.raises(Undefined, match="at least 2"):
            value(LEXICAL[kind], sample_texts=texts[0])
        return
    if case["name"] == "empty_strings" or (case["name"], kind) == ("short", "rouge2"):
        assert want == [0, 0]
        want = OURS[case["name"]]
    assert [value(LEXICAL[kind], sample_texts=t) for t in texts] == pytest.approx(want, rel=1e-12, abs=1e-15)


def test_bleu_var_is_the_double_sum():
    w = np.random.default_rng(0).random((6, 6))
    assert lx.bleu_var(w) == pytest.approx(
        sum((1 - w[i, j]) ** 2 for i in range(6) for j in range(6) if i != j) / 30
    )


# What must not matter, and what must
NLI = [
    "num_sets",
    "eigv",
    "eigv_contra",
    "ecc",
    "ecc_contra",
    "deg_mat",
    "deg_mat_contra",
    "deg_greedy",
    "deg_greedy_contra",
    "kle",
    "luq",
]


def drawn(k, seed):
    return np.random.default_rng(seed).normal(0, 3, (1 + k, 1 + k, 3))


@pytest.mark.parametrize("name", NLI)
@given(k=st.integers(2, 7), seed=st.integers(0, 99))
def test_the_order_of_samples_does_not_matter_and_inputs_stay(name, k, seed):
    z = drawn(k, seed)
    kept, p = z.copy(), np.r_[0, 1 + np.random.default_rng(seed).permutation(k)]
    first = value(name, nli=z)
    assert np.isfinite(first) and np.array_equal(z, kept)
    assert value(name, nli=z[np.ix_(p, p)]) == pytest.approx(first, abs=1e-7)


@pytest.mark.parametrize("name", [n for n in NLI if not n.startswith("deg_greedy")])
def test_the_greedy_text_is_no_sample(name):
    a, b = drawn(5, 0), drawn(5, 1)
    b[1:, 1:] = a[1:, 1:]
    assert value(name, nli=a) == value(name, nli=b)


@pytest.mark.parametrize(
    "name,agreed",
    dict(
        num_sets=1,
        num_sets_lin=1,
        eigv=1,
        eigv_contra=1,
        ecc=0,
        ecc_contra=0,
        deg_mat=0,
        deg_mat_contra=0,
        deg_greedy=0,
        deg_greedy_contra=0,
        luq=0,
    ).items(),
)
def test_full_agreement_is_the_least_uncertainty(name, agreed):
    with np.errstate(divide="ignore"):
        z = np.log(np.broadcast_to([0.0, 0, 1], (6, 6, 3)))
    assert value(name, nli=z) == pytest.approx(agreed, abs=1e-7)
    assert all(value(name, nli=drawn(5, s)) >= agreed - 1e-7 for s in range(20))


@given(k=st.integers(2, 6), seed=st.integers(0, 99))
def test_blocks_without_a_line_between_them_are_counted(k, seed):
    "For a 0/1 graph of cliques EigV is the number of cliques, eccentricity the root of one less."
    g = np.random.default_rng(seed).integers(0, 3, k)
    (s,) = dv.spectra([np.equal.outer(g, g).astype(float)])
    n = len(set(g.tolist()))
    assert dv.eigv(s) == pytest.approx(n) and dv.ecc(s) == pytest.approx(np.sqrt(n - 1), abs=1e-6)


def test_a_text_that_agrees_with_nothing_is_the_limit_of_one_that_hardly_agrees():
    w = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 0]])
    near = w + np.diag([0, 0, 1e-9])
    assert dv.spectra([w])[0].values == pytest.approx(dv.spectra([near])[0].values, abs=1e-9)
    assert dv.eigv(dv.spectra([w])[0]) == pytest.approx(2 + 1 / 3)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_stacking_items_changes_nothing(sizes):
    zs = [drawn(k, i) for i, k in enumerate(sizes)]
    p = dv.nli_probability(zs)
    e, c = dv.entail(p), dv.contra(p)
    together = dv.spectrum_entail(dv.entail_affinity(e)), dv.heat_spectrum(e, c)
    for i in range(len(sizes)):
        alone = (
            dv.spectrum_entail(dv.entail_affinity(e[i : i + 1]))[0],
            dv.heat_spectrum(e[i : i + 1], c[i : i + 1])[0],
        )
        assert np.array_equal(together[0][i].values, alone[0].values) and np.array_equal(
            together[1][i], alone[1]
        )


def test_degree_of_the_greedy_text_is_that_of_a_sample_in_its_place():
    z = drawn(4, 0)
    (w,) = dv.entail_affinity(dv.entail(dv.nli_probability([np.pad(z, ((1, 0), (1, 0), (0, 0)))])))
    assert dv.deg_greedy(dv.nli_probability([z])[0]) == pytest.approx(1 - w[0, 1:].mean())


@pytest.mark.parametrize(
    "name,bad",
    [
        ("num_sets", dict(entail=np.ones((2, 3)), contra=np.ones((2, 3)))),
        ("deg_mat", dict(entail_affinity=np.ones(4))),
        ("lex_sim", dict(rouge_l_pairs=np.ones((2, 3)))),
    ],
)
def test_a_matrix_that_is_not_square_is_refused(name, bad):
    with pytest.raises(ValueError, match="square matrix over samples"):
        reg[name].fn(**bad)


def test_logits_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"\[1\+K,1\+K,3\], got \(3, 3, 2\)"):
        dv.nli_probability([np.zeros((3, 3, 2))])


def test_probabilities_survive_large_logits():
    assert dv.nli_probability([np.full((1, 1, 3), 1e4)])[0] == pytest.approx(np.full((1, 1, 3), 1 / 3))
