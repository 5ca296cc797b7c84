"""Ensemble methods: recorded beam searches of the released code, and properties for any members."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles
from uetrust.ue.ensemble import (
    beam_weights,
    ep_t_epkl,
    ep_t_mi,
    ep_t_rmi,
    ep_t_tu,
    s_rmi,
    s_rmi_he2024,
    s_tu,
    s_tu_he2024,
    t_du,
    t_epkl,
    t_mi,
    t_rmi,
    t_rmi_he2024,
    t_tu,
    t_tu_he2024,
)

RUNS = (
    "m3_pe_lp1_plain",
    "m3_ep_lp1_plain",
    "m5_pe_lp2_bartlike",
    "m1_pe_lp2_bartlike_released",
)  # three with scores in the .json, all with arrays
TERMS = dict(tu="total_uncertainty", du="data_uncertainty", mi="mutual_information", rmi="rmi", epkl="epkl")
near = dict(rtol=0, atol=1e-5)  # the other library computes in float32 with clamped probabilities


class Search:
    "One recorded beam search: statistics of the beams of each of its inputs"

    def __init__(self, name, arrays, outputs):
        self.name, self.outputs = name, outputs
        self.z = {
            key.removeprefix(f"ensemble__{name}__"): arrays[key]
            for key in arrays.files
            if key.startswith(f"ensemble__{name}__")
        }
        self.tokens, self.n = self.z["path_tokens"], self.z["path_len"]
        self.rows = self.z["path_member_scores_processed"].astype(float)  # [items,B,T,M,V]
        self.items, self.beams = self.n.shape

    def path(self, i, name):
        return [
            self.z[f"path_{name}"][i, beam, : self.n[i, beam]].astype(float) for beam in range(self.beams)
        ]

    def length(self, i):
        return self.n[i] + 1

    def score(self, i):
        return self.z["sequences_scores"].reshape(self.n.shape)[i].astype(float)

    def chosen(self, i):
        return [
            np.stack(
                [self.rows[i, beam, step, :, self.tokens[i, beam, step]] for step in range(self.n[i, beam])],
                1,
            )
            for beam in range(self.beams)
        ]


@pytest.fixture(scope="module", params=RUNS)
def search(request, oracle):
    cases = {case["name"]: case for case in oracle("uncertainty.json")["ensemble"]}
    assert set(cases) <= set(RUNS) and len(cases) >= 3
    return Search(
        request.param, np.load(oracles() / "uncertainty.npz"), cases.get(request.param, {}).get("outputs")
    )


def test_the_released_weights(search):
    got = [beam_weights(search.score(i), search.length(i)) for i in range(search.items)]
    np.testing.assert_allclose(got, search.z["beam_weights_used"], **near)


@pytest.mark.parametrize("weights", ["pe", "ep"])
@pytest.mark.parametrize("term", TERMS)
def test_token_scores_are_those_of_the_release(search, weights, term):
    each, name = np.arange(search.items), f"{weights}_{TERMS[term]}"
    for i in each:
        np.testing.assert_allclose(
            [t_tu(values) for values in search.path(i, name)], search.z[f"collected_{name}"][i], **near
        )  # one hypothesis
    got = [t_tu_he2024(search.path(i, name), search.score(i), search.length(i)) for i in each]
    if search.outputs:
        np.testing.assert_allclose(got, search.outputs[f"{weights.upper()}T{term}"], **near)
    assert got == [t_rmi_he2024(search.path(i, name), search.score(i), search.length(i)) for i in each]


def test_sequence_scores_are_those_of_the_release(search):
    for i in range(search.items):
        logp = np.stack([inputs.sum(1) / n for inputs, n in zip(search.chosen(i), search.length(i))], 1)
        np.testing.assert_allclose(logp, search.z["collected_pe_log_probas"][i], **near)
    if not search.outputs:
        return
    got = dict(tu=[], rmi=[], rmiabs=[])
    for i in range(search.items):
        inputs = search.chosen(i), search.length(i)
        for key, value in dict(
            tu=s_tu_he2024(*inputs), rmi=s_rmi_he2024(*inputs), rmiabs=s_rmi_he2024(*inputs, absolute=True)
        ).items():
            got[key].append(value)
    for key, value in got.items():
        for prefix in ("EPS", "PES"):
            np.testing.assert_allclose(value, search.outputs[prefix + key], **near)


def test_one_member_gives_exactly_zero_as_released_and_nothing_in_principle(search):
    if len(search.rows[0, 0, 0]) > 1:
        return
    assert (
        [s_rmi_he2024(search.chosen(i), search.length(i)) for i in range(search.items)]
        == [0] * search.items
        == search.outputs["PESrmi"]
    )
    for i in range(search.items):
        logp, rmi = search.chosen(i)[0], search.path(i, "pe_rmi")[0]
        for method, args in (
            (s_rmi, (logp,)),
            (t_rmi, (rmi, logp)),
            (t_mi, (rmi, logp)),
            (ep_t_rmi, (rmi, logp)),
            (t_epkl, (rmi, logp)),
            (ep_t_mi, (rmi, logp)),
            (ep_t_epkl, (rmi, logp)),
        ):
            with pytest.raises(Undefined, match="at least 2 members, got 1"):
                method(*args)
        assert s_tu(logp) == pytest.approx(-logp.mean(), abs=1e-12)


# The terms of one token from the members' distributions, written from the definitions: what a forward pass
# must give as pe_tu, ep_rmi and so on
def plogp(probability, logp):
    return np.where(probability > 0, probability * np.where(probability > 0, logp, 0), 0).sum(-1)


def terms(logp, log_pi):  # rows [T,M,V], log weights of members [T,M] -> dict of [T]
    log_mixture = np.logaddexp.reduce(logp + log_pi[..., None], 1)
    mixture = np.exp(log_mixture)
    total, data = -plogp(mixture, log_mixture), -plogp(np.exp(logp), logp).mean(1)
    cross = -plogp(np.repeat(mixture[:, None], logp.shape[1], 1), logp).mean(1)
    return dict(tu=total, du=data, mi=total - data, rmi=cross - total, epkl=cross - data)


def test_terms_of_the_definition_are_those_of_the_peer(search):
    if "plain" not in search.name:
        return  # only there no rule of decoding touches the rows, from the second step on
    for i in range(search.items):
        for beam in range(search.beams):
            n = search.n[i, beam]
            logp, before = search.rows[i, beam, :n], np.zeros((n, search.rows.shape[3]))
            before[1:] = search.chosen(i)[beam].T[:-1].cumsum(0)
            for prefix, weights in (("pe", np.zeros_like(before)), ("ep", before)):
                mine = terms(logp, weights - np.logaddexp.reduce(weights, 1)[:, None])
                for term, name in TERMS.items():
                    np.testing.assert_allclose(
                        mine[term][1:], search.path(i, f"{prefix}_{name}")[beam][1:], **near
                    )


def test_pairwise_divergence_is_the_mean_over_pairs_and_the_sum_of_both_informations():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), (4, 3))  # Tokens, members
    term = terms(np.log(p), np.full((4, 3), -np.log(3)))
    pairs = [(p[:, m] * np.log(p[:, m] / p[:, n])).sum(-1) for m in range(3) for n in range(3)]
    both = np.zeros((3, 4))
    assert t_epkl(term["epkl"], both) == pytest.approx(np.mean(pairs), abs=1e-12)
    sums = t_mi(term["mi"], both) + t_rmi(term["rmi"], both)
    assert t_epkl(term["epkl"], both) == pytest.approx(sums, abs=1e-12)
    assert t_tu(term["tu"]) == pytest.approx(t_du(term["du"]) + t_mi(term["mi"], both), abs=1e-12)
    weights = np.log(rng.dirichlet(np.ones(3), 4))
    term = terms(np.log(p), weights)
    sums = ep_t_mi(term["mi"], both) + ep_t_rmi(term["rmi"], both)
    assert ep_t_epkl(term["epkl"], both) == pytest.approx(sums, abs=1e-12)


probs = arrays(float, st.tuples(st.integers(2, 4), st.integers(1, 5)), elements=st.floats(-9, 0))


@given(probs)
def test_members_are_exchangeable_and_copies_of_all_change_nothing(x):
    for method in (s_tu, s_rmi):
        assert method(x[::-1]) == pytest.approx(method(x), abs=1e-12) == method(np.concatenate([x, x]))
    assert s_tu(x) >= -1e-12 and s_rmi(x) >= -1e-12


@given(probs)
def test_members_that_agree_have_nothing_to_disagree_about(x):
    same = np.repeat(x[:1], 3, 0)
    assert s_rmi(same) == pytest.approx(0, abs=1e-12) and s_tu(same) == pytest.approx(-x[0].mean(), abs=1e-12)
    assert s_tu(x) + s_rmi(x) == pytest.approx(
        -x.mean(), abs=1e-12
    )  # total and disagreement add up to the mean surprisal


@given(st.lists(st.tuples(st.floats(-5, 0), st.integers(2, 9)), min_size=2, max_size=5))
def test_order_of_beams_does_not_matter(beams):
    score, n = np.array([value for value, _ in beams]), np.array([length for _, length in beams])
    rng = np.random.default_rng(0)
    terms_of, logps = [rng.random(length - 1) for length in n], [-rng.random((3, length - 1)) for length in n]
    assert t_tu_he2024(terms_of, score, n) == pytest.approx(
        t_tu_he2024(terms_of[::-1], score[::-1], n[::-1]), abs=1e-12
    )
    assert s_tu_he2024(logps, n) == pytest.approx(s_tu_he2024(logps[::-1], n[::-1]), abs=1e-12)
    assert (
        s_rmi_he2024(logps, n) == pytest.approx(s_rmi_he2024(logps[::-1], n[::-1]), abs=1e-12)
        and s_rmi_he2024(logps, n) >= -1e-12
    )
    assert beam_weights(score, n).sum() == pytest.approx(1)
    twice = [logp for logp in logps for _ in range(2)]
    assert s_tu_he2024(twice, np.repeat(n, 2)) == pytest.approx(s_tu_he2024(logps, n), abs=1e-12)


def test_impossible_texts():
    never, certain = [-np.inf, -1.0], [-1.0, -1.0]
    assert (
        s_tu([never, certain]) == pytest.approx(1 + np.log(2))
        and s_rmi([never, certain]) == np.inf
        and s_tu([never, never]) == np.inf
    )
    with pytest.raises(Undefined, match="impossible"):
        s_rmi([never, never])
    assert s_tu_he2024([[never, never], [certain, certain]], [3, 3]) == pytest.approx(
        s_tu_he2024([[certain, certain]], [3])
    )
    with pytest.raises(Undefined, match="every hypothesis is impossible"):
        s_tu_he2024([[never, never]], [3])
    with pytest.raises(Undefined, match="impossible"):
        s_rmi_he2024([[never, never], [certain, certain]], [3, 3])


def test_facts_and_mistakes():
    for method in (s_tu, s_rmi):
        with pytest.raises(Undefined, match="at least 1 token"):
            method(np.zeros((2, 0)))
        with pytest.raises(ValueError, match=r"shape \[M,L\]"):
            method([-1.0, -2])
    for method in (t_tu, ep_t_tu):
        with pytest.raises(Undefined, match="at least 1 token"):
            method([])
    with pytest.raises(Undefined, match="after the start token"):
        t_tu_he2024([[]], [-1.0], [1])  # the release divides by zero
    with pytest.raises(Undefined, match="after the start token"):
        s_tu_he2024([np.zeros((2, 0))], [1])
    with pytest.raises(ValueError, match="same hypotheses"):
        beam_weights([-1.0], [2, 3])
    with pytest.raises(ValueError, match=r"got log p of \[2\]"):
        s_tu_he2024([[[-1.0, -1]]], [2])


def test_no_input_is_changed():
    rng = np.random.default_rng(1)
    inputs = dict(
        **{f"pe_{term}": rng.random(4) for term in ("tu", "mi", "rmi", "epkl")},
        **{f"ep_{term}": rng.random(4) for term in ("tu", "mi", "rmi", "epkl")},
        member_du=rng.random(4),
        member_logp=-rng.random((3, 4)),
        beam_score=-rng.random(2),
        beam_length=np.array([3, 4]),
        beam_pe_tu=[rng.random(2), rng.random(3)],
        beam_pe_rmi=[rng.random(2), rng.random(3)],
        beam_member_logp=[-rng.random((3, 2)), -rng.random((3, 3))],
    )
    before = copy.deepcopy(inputs)
    mine = [
        entry for entry in reg.values() if entry.kind == "ue" and entry.fn.__module__ == "uetrust.ue.ensemble"
    ]
    for entry in mine:
        assert type(entry.fn(**{name: inputs[name] for name in entry.needs})) is float
    assert len(mine) == 15 and all(
        np.array_equal(after, initial)
        for name in inputs
        for after, initial in zip(inputs[name], before[name])
    )
