"""Sample diversity: recorded values of other libraries, where they fail, and invariances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.at_once import at_once, twins_of
from tests.helpers.diversity import named, value
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.ue import diversity as dv
from uetrust.ue import lexical as lx
from uetrust.ue.similarity import jaccard


def array(x):
    return np.array(x, dtype=object).astype(float)  # the words NaN and Infinity are numbers


def logits(entail, contra):
    "Logits with these probabilities; the greedy text, which graphs must ignore, stands in front"
    entailed, contradicted = array(entail), array(contra)
    with np.errstate(divide="ignore"):
        stacked = np.log(np.stack([contradicted, np.maximum(0, 1 - entailed - contradicted), entailed], -1))
    return np.pad(stacked, ((1, 0), (1, 0), (0, 0)), constant_values=0.7)


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
    inputs = case["inputs"]
    k = len(inputs["sample_texts"][0])
    ids = np.empty(k, int)
    for cluster, members in enumerate(case["outputs"]["semantic_classes"]):
        ids[members] = cluster
    return dict(
        nli=logits(inputs["semantic_matrix_entail"][0], inputs["semantic_matrix_contra"][0]),
        sample_texts=inputs["sample_texts"][0],
        clusters=ids,
    )


def close(case):
    return dict(rel=1e-5, abs=2e-5) if case.get("dtype") == "float32" else dict(rel=1e-9, abs=1e-7)


# LM-Polygraph
@named("nli_graph")
def test_graph_scores_are_those_of_lm_polygraph(case):
    given, out = item(case), case["outputs"]
    reference = {ours: out[theirs] for theirs, ours in GRAPH.items()} | dict(label_prob=out["LabelProb"])
    if case["name"] == "k1":
        for ours in reference:
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                value(ours, **given)
        return
    if (
        case["name"] == "zero_entail_rows_k3"
    ):  # three texts that agree with nothing are three sets; the other library stops
        assert reference.pop("eigv") == reference.pop("ecc") == dict(raises="LinAlgError")
        assert value("eigv", **given) == 3 and value("ecc", **given) == pytest.approx(np.sqrt(2))
    if (
        case["name"] == "empty_texts_k3"
    ):  # between two empty texts nothing is compared; for the other library they share no word
        assert [reference.pop(f"{score}_jaccard") for score in ("eigv", "ecc", "deg_mat")] == [
            [3],
            [pytest.approx(2**0.5)],
            [pytest.approx(2 / 3)],
        ]
        for score in ("eigv", "ecc", "deg_mat"):
            with pytest.raises(Undefined, match="2 of its samples have no word"):
                value(f"{score}_jaccard", **given)
    assert {ours: value(ours, **given) for ours in reference} == {
        ours: pytest.approx(expected[0], **close(case)) for ours, expected in reference.items()
    }


@named("nli_graph")
@pytest.mark.parametrize("which", ["NLI_score_entail", "NLI_score_contra", "Jaccard_score"])
def test_eccentricity_at_another_threshold(case, which):
    given, want = item(case), case["outputs"][f"Eccentricity_{which}_thres0.5"]
    if case["name"] == "k1" or (case["name"], which) == ("empty_texts_k3", "Jaccard_score"):
        return  # asserted above
    got = dv.ecc(dv.laplacian_spectra([affinity(which, given)])[0], 0.5)
    assert got == pytest.approx(np.sqrt(2) if isinstance(want, dict) else want[0], **close(case))


def affinity(which, given):
    probability = dv.nli_probability([given["nli"]])
    return dict(
        NLI_score_entail=lambda: dv.entail_affinity(dv.entail(probability)),
        NLI_score_contra=lambda: dv.contra_affinity(dv.contra(probability)),
        Jaccard_score=lambda: jaccard([given["sample_texts"]]),
    )[which]()[0]


@named("nli_graph")
def test_kernel_entropy_with_other_settings(case):
    given = item(case)
    probability = dv.nli_probability([given["nli"]])
    spectrum = dv.heat_spectrum(dv.entail(probability), dv.contra(probability), t=1)[0]
    assert spectrum.sum() == pytest.approx(1)
    if len(spectrum) > 1:
        assert dv.kle(spectrum, scale=False) == pytest.approx(
            case["outputs"]["KernelLanguageEntropy_t1_noscale"][0], **close(case)
        )


@named("nli_graph")
def test_luq_reads_logits(case):
    inputs = case["inputs"]
    stacked = np.pad(
        np.stack(
            [
                array(inputs["semantic_matrix_contra_logits"][0]),
                np.full_like(array(inputs["semantic_matrix_entail"][0]), 9),
                array(inputs["semantic_matrix_entail_logits"][0]),
            ],
            -1,
        ),
        ((1, 0), (1, 0), (0, 0)),
    )
    if len(stacked) > 2:
        assert dv.luq(stacked) == pytest.approx(case["outputs"]["LUQ"][0], **close(case))


def test_a_threshold_is_a_number():
    "None in the other library crashes on a variable that was never set."
    with pytest.raises(TypeError):
        dv.ecc(dv.laplacian_spectra([np.eye(3)])[0], None)


# Lin et al.
def lin(case, temperature):
    "Their affinities: tempered, and 1 between equal texts"
    index = case["inputs"]["mapping"]
    scaled = np.array(case["inputs"]["nli_logits_contra_neutral_entail"])[np.ix_(index, index)] / temperature
    with np.errstate(divide="ignore"):
        scaled[np.equal.outer(index, index)] = np.log([0, 0, 1])
    return np.pad(scaled, ((1, 0), (1, 0), (0, 0)))


@named("peer_uq_nlg")
@pytest.mark.parametrize("temperature", [3.0, 1.0])
@pytest.mark.parametrize("mode", ["agreement_w", "disagreement_w", "jaccard"])
def test_scores_of_graph_and_sample_are_those_of_lin_et_al(case, mode, temperature):
    probability = dv.nli_probability([lin(case, temperature)])
    one_way = dict(
        agreement_w=lambda: dv.entail(probability),
        disagreement_w=lambda: [1 - matrix for matrix in dv.contra(probability)],
        jaccard=lambda: jaccard([case["inputs"]["texts"]]),
    )[mode]()
    both = [(matrix + matrix.T) / 2 for matrix in one_way]
    spectrum, k = dv.laplacian_spectra(both)[0], len(both[0])

    def theirs(what):
        return case["outputs"][f"{what}|{mode}_T{None if mode == 'jaccard' else temperature}"][0]

    near = dict(rel=1e-5, abs=2e-6)
    assert k * (1 - dv.sample_degree(one_way)[0]) == pytest.approx(theirs("degree_individual"), **near)
    assert dv.sample_ecc([spectrum])[0] == pytest.approx(theirs("eccentricity_individual"), **near)
    assert (1 - spectrum.values).sum() == pytest.approx(theirs("spectral_eigv"), **near)
    scores = dict(
        eigv=lambda: dv.eigv(spectrum), ecc=lambda: dv.ecc(spectrum), deg_mat=lambda: k * dv.deg_mat(both[0])
    )
    if case["name"] == "k1":  # 1, 0 and 0 there
        for score in scores.values():
            with pytest.raises(Undefined, match="at least 2 samples, got 1"):
                score()
    else:
        assert [score() for score in scores.values()] == pytest.approx(
            [theirs("spectral_eigv_clip"), theirs("eccentricity_overall"), theirs("degree_overall")], **near
        )


@named("peer_uq_nlg")
def test_sets_and_lexical_similarity_are_those_of_lin_et_al(case):
    index = case["inputs"]["mapping"]
    if case["name"] == "k1":  # 1 and -1 there
        with pytest.raises(Undefined):
            dv.num_sets_lin(lin(case, 1))
        with pytest.raises(Undefined):
            lx.lex_sim(np.ones((1, 1)))
    else:
        assert dv.num_sets_lin(lin(case, 1)) == case["outputs"]["numsets"][0]
        similarity, other = (
            np.array(case["inputs"]["rougeL_matrix"])[np.ix_(index, index)],
            ~np.equal.outer(index, index),
        )
        theirs = (
            -similarity[other].mean() if other.any() else -1
        )  # they leave out pairs of equal texts, so a repeated answer makes nothing more certain
        assert theirs == pytest.approx(case["outputs"]["lexical_sim"][0], rel=1e-6)
        assert lx.lex_sim(similarity) == pytest.approx(
            -(-theirs * other.sum() + (~other).sum() - len(index)) / (len(index) * (len(index) - 1))
        )


def test_handing_on_is_not_being_connected():
    "1-3 and 3-4 and 2-4: a chain is one component, but sample 4 ends in the set of 3, and 2 stays behind."
    chain = np.zeros((5, 5, 3))
    chain[..., 0] = 1
    for i, j in ((1, 3), (3, 4), (2, 4)):
        chain[i, j] = chain[j, i] = [0, 0, 2]
    probability = dv.nli_probability([chain])
    assert (
        dv.num_sets(dv.entail(probability)[0], dv.contra(probability)[0]) == 1 and dv.num_sets_lin(chain) == 2
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
    nli = drawn(k, seed)
    kept, order = nli.copy(), np.r_[0, 1 + np.random.default_rng(seed).permutation(k)]
    first = value(name, nli=nli)
    assert np.isfinite(first) and np.array_equal(nli, kept)
    assert value(name, nli=nli[np.ix_(order, order)]) == pytest.approx(first, abs=1e-7)


@pytest.mark.parametrize("name", [n for n in NLI if not n.startswith("deg_greedy")])
def test_the_greedy_text_is_no_sample(name):
    one, other = drawn(5, 0), drawn(5, 1)
    other[1:, 1:] = one[1:, 1:]
    assert value(name, nli=one) == value(name, nli=other)


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
        nli = np.log(np.broadcast_to([0.0, 0, 1], (6, 6, 3)))
    assert value(name, nli=nli) == pytest.approx(agreed, abs=1e-7)
    assert all(value(name, nli=drawn(5, seed)) >= agreed - 1e-7 for seed in range(20))


@given(k=st.integers(2, 6), seed=st.integers(0, 99))
def test_blocks_without_a_line_between_them_are_counted(k, seed):
    "For a 0/1 graph of cliques EigV is the number of cliques, eccentricity the root of one less."
    groups = np.random.default_rng(seed).integers(0, 3, k)
    (spectrum,) = dv.laplacian_spectra([np.equal.outer(groups, groups).astype(float)])
    n = len(set(groups.tolist()))
    assert dv.eigv(spectrum) == pytest.approx(n) and dv.ecc(spectrum) == pytest.approx(
        np.sqrt(n - 1), abs=1e-6
    )


def test_a_text_that_agrees_with_nothing_is_the_limit_of_one_that_hardly_agrees():
    affinities = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 0]])
    near = affinities + np.diag([0, 0, 1e-9])
    assert dv.laplacian_spectra([affinities])[0].values == pytest.approx(
        dv.laplacian_spectra([near])[0].values, abs=1e-9
    )
    assert dv.eigv(dv.laplacian_spectra([affinities])[0]) == pytest.approx(2 + 1 / 3)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_stacking_items_changes_nothing(sizes):
    nli = [drawn(k, i) for i, k in enumerate(sizes)]
    probability = dv.nli_probability(nli)
    entailed, contradicted = dv.entail(probability), dv.contra(probability)
    together = dv.spectrum_entail(dv.entail_affinity(entailed)), dv.heat_spectrum(entailed, contradicted)
    for i in range(len(sizes)):
        alone = (
            dv.spectrum_entail(dv.entail_affinity(entailed[i : i + 1]))[0],
            dv.heat_spectrum(entailed[i : i + 1], contradicted[i : i + 1])[0],
        )
        assert np.array_equal(together[0][i].values, alone[0].values) and np.array_equal(
            together[1][i], alone[1]
        )


def text_item(k, seed):
    "An item with everything that these scores start from"
    words = np.random.default_rng(seed).integers(0, 6, (k, 5))
    texts = [" ".join(map("w{}".format, row)) for row in words]
    return dict(nli=drawn(k, seed), sample_texts=texts, clusters=np.array([0, 0, 1, 0, 2][:k]))


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", twins_of(dv.__name__))
def test_many_items_at_once_have_the_value_of_each(name, k):
    items = [text_item(k, seed) for seed in range(5)]
    assert at_once(name, items) == pytest.approx([value(name, **item) for item in items], abs=1e-12)


@pytest.mark.parametrize("name", twins_of(dv.__name__))
def test_at_once_there_is_no_number_where_the_score_itself_has_none(name):
    "One sample: NaN, so that each item is computed alone and gives its reason."
    items = [text_item(1, seed) for seed in range(3)]
    found = at_once(name, items)
    if name.startswith("deg_greedy"):
        assert found == pytest.approx([value(name, **item) for item in items])
        return
    assert np.isnan(found).all()
    with pytest.raises(Undefined, match="at least 2 samples, got 1"):
        value(name, **items[0])


def test_degree_of_the_greedy_text_is_that_of_a_sample_in_its_place():
    nli = drawn(4, 0)
    (affinities,) = dv.entail_affinity(dv.entail(dv.nli_probability([np.pad(nli, ((1, 0), (1, 0), (0, 0)))])))
    assert dv.deg_greedy(dv.nli_probability([nli])[0]) == pytest.approx(1 - affinities[0, 1:].mean())


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
