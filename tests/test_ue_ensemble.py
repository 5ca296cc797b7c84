"""Ensemble methods: the recorded beam searches of the released code, and what must hold for members of any kind."""

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
    ep_t_rmi,
    ep_t_tu,
    s_rmi,
    s_rmi_he2024,
    s_tu,
    s_tu_he2024,
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
near = dict(rtol=0, atol=1e-5)  # the peer computes in float32 with clamped probabilities


class Search:
    "One recorded beam search: statistics of the beams of each of its inputs"

    def __init__(self, name, z, outputs):
        self.name, self.outputs = name, outputs
        self.z = {
            k.removeprefix(f"ensemble__{name}__"): z[k]
            for k in z.files
            if k.startswith(f"ensemble__{name}__")
        }
        self.tokens, self.n = self.z["path_tokens"], self.z["path_len"]
        self.rows = self.z["path_member_scores_processed"].astype(float)  # [items,B,T,M,V]
        self.items, self.beams = self.n.shape

    def path(self, i, name):
        return [self.z[f"path_{name}"][i, b, : self.n[i, b]].astype(float) for b in range(self.beams)]

    def length(self, i):
        return self.n[i] + 1

    def score(self, i):
        return self.z["sequences_scores"].reshape(self.n.shape)[i].astype(float)

    def chosen(self, i):
        return [
            np.stack([self.rows[i, b, t, :, self.tokens[i, b, t]] for t in range(self.n[i, b])], 1)
            for b in range(self.beams)
        ]


@pytest.fixture(scope="module", params=RUNS)
def search(request, oracle):
    cases = {c["name"]: c for c in oracle("uncertainty.json")["ensemble"]}
    assert set(cases) <= set(RUNS) and len(cases) >= 3
    return Search(
        request.param, np.load(oracles() / "uncertainty.npz"), cases.get(request.param, {}).get("outputs")
    )


def test_the_released_weights(search):
    got = [beam_weights(search.score(i), search.length(i)) for i in range(search.items)]
    np.testing.assert_allclose(got, search.z["beam_weights_used"], **near)


@pytest.mark.parametrize("q", ["pe", "ep"])
@pytest.mark.parametrize("term", TERMS)
def test_token_scores_are_those_of_the_release(search, q, term):
    each, name = np.arange(search.items), f"{q}_{TERMS[term]}"
    for i in each:
        np.testing.assert_allclose(
            [t_tu(v) for v in search.path(i, name)], search.z[f"collected_{name}"][i], **near
        )  # one hypothesis
    got = [t_tu_he2024(search.path(i, name), search.score(i), search.length(i)) for i in each]
    if search.outputs:
        np.testing.assert_allclose(got, search.outputs[f"{q.upper()}T{term}"], **near)
    assert got == [t_rmi_he2024(search.path(i, name), search.score(i), search.length(i)) for i in each]


def test_sequence_scores_are_those_of_the_release(search):
    for i in range(search.items):
        lp = np.stack([x.sum(1) / n for x, n in zip(search.chosen(i), search.length(i))], 1)
        np.testing.assert_allclose(lp, search.z["collected_pe_log_probas"][i], **near)
    if not search.outputs:
        return
    got = dict(tu=[], rmi=[], rmiabs=[])
    for i in range(search.items):
        x = search.chosen(i), search.length(i)
        for k, v in dict(
            tu=s_tu_he2024(*x), rmi=s_rmi_he2024(*x), rmiabs=s_rmi_he2024(*x, absolute=True)
        ).items():
            got[k].append(v)
    for k, v in got.items():
        for q in ("EPS", "PES"):
            np.testing.assert_allclose(v, search.outputs[q + k], **near)


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
        for f, args in ((s_rmi, (logp,)), (t_rmi, (rmi, logp)), (t_mi, (rmi, logp)), (ep_t_rmi, (rmi, logp))):
            with pytest.raises(Undefined, match="at least 2 members, got 1"):
                f(*args)
        assert s_tu(logp) == pytest.approx(-logp.mean(), abs=1e-12)


# The terms of one token from the members' rows, written from the definitions: what the reading pass must give as pe_tu, ep_rmi and so on
def plogp(p, lp):
    return np.where(p > 0, p * np.where(p > 0, lp, 0), 0).sum(-1)


def terms(lp, log_pi):  # rows [T,M,V], log weights of members [T,M] -> dict of [T]
    lq = np.logaddexp.reduce(lp + log_pi[..., None], 1)
    q = np.exp(lq)
    tu, du = -plogp(q, lq), -plogp(np.exp(lp), lp).mean(1)
    ce = -plogp(np.repeat(q[:, None], lp.shape[1], 1), lp).mean(1)
    return dict(tu=tu, du=du, mi=tu - du, rmi=ce - tu, epkl=ce - du)


def test_terms_of_the_definition_are_those_of_the_peer(search):
    if "plain" not in search.name:
        return  # only there no rule of decoding touches the rows, from the second step on
    for i in range(search.items):
        for b in range(search.beams):
            n = search.n[i, b]
            lp, before = search.rows[i, b, :n], np.zeros((n, search.rows.shape[3]))
            before[1:] = search.chosen(i)[b].T[:-1].cumsum(0)
            for q, w in (("pe", np.zeros_like(before)), ("ep", before)):
                mine = terms(lp, w - np.logaddexp.reduce(w, 1)[:, None])
                for k, name in TERMS.items():
                    np.testing.assert_allclose(mine[k][1:], search.path(i, f"{q}_{name}")[b][1:], **near)


probs = arrays(float, st.tuples(st.integers(2, 4), st.integers(1, 5)), elements=st.floats(-9, 0))


@given(probs)
def test_members_are_exchangeable_and_copies_of_all_change_nothing(x):
    for f in (s_tu, s_rmi):
        assert f(x[::-1]) == pytest.approx(f(x), abs=1e-12) == f(np.concatenate([x, x]))
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
    score, n = np.array([s for s, _ in beams]), np.array([k for _, k in beams])
    rng = np.random.default_rng(0)
    u, x = [rng.random(k - 1) for k in n], [-rng.random((3, k - 1)) for k in n]
    assert t_tu_he2024(u, score, n) == pytest.approx(t_tu_he2024(u[::-1], score[::-1], n[::-1]), abs=1e-12)
    assert s_tu_he2024(x, n) == pytest.approx(s_tu_he2024(x[::-1], n[::-1]), abs=1e-12)
    assert (
        s_rmi_he2024(x, n) == pytest.approx(s_rmi_he2024(x[::-1], n[::-1]), abs=1e-12)
        and s_rmi_he2024(x, n) >= -1e-12
    )
    assert beam_weights(score, n).sum() == pytest.approx(1)
    twice = [v for v in x for _ in range(2)]
    assert s_tu_he2024(twice, np.repeat(n, 2)) == pytest.approx(s_tu_he2024(x, n), abs=1e-12)


def test_impossible_texts():
    no, yes = [-np.inf, -1.0], [-1.0, -1.0]
    assert (
        s_tu([no, yes]) == pytest.approx(1 + np.log(2))
        and s_rmi([no, yes]) == np.inf
        and s_tu([no, no]) == np.inf
    )
    with pytest.raises(Undefined, match="impossible"):
        s_rmi([no, no])
    assert s_tu_he2024([[no, no], [yes, yes]], [3, 3]) == pytest.approx(s_tu_he2024([[yes, yes]], [3]))
    with pytest.raises(Undefined, match="every hypothesis is impossible"):
        s_tu_he2024([[no, no]], [3])
    with pytest.raises(Undefined, match="impossible"):
        s_rmi_he2024([[no, no], [yes, yes]], [3, 3])


def test_facts_and_mistakes():
    for f in (s_tu, s_rmi):
        with pytest.raises(Undefined, match="at least 1 token"):
            f(np.zeros((2, 0)))
        with pytest.raises(ValueError, match=r"shape \[M,L\]"):
            f([-1.0, -2])
    for f in (t_tu, ep_t_tu):
        with pytest.raises(Undefined, match="at least 1 token"):
            f([])
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
    x = dict(
        pe_tu=rng.random(4),
        pe_mi=rng.random(4),
        pe_rmi=rng.random(4),
        ep_tu=rng.random(4),
        ep_rmi=rng.random(4),
        member_logp=-rng.random((3, 4)),
        beam_score=-rng.random(2),
        beam_length=np.array([3, 4]),
        beam_pe_tu=[rng.random(2), rng.random(3)],
        beam_pe_rmi=[rng.random(2), rng.random(3)],
        beam_member_logp=[-rng.random((3, 2)), -rng.random((3, 3))],
    )
    before = copy.deepcopy(x)
    mine = [e for e in reg.values() if e.kind == "ue" and e.fn.__module__ == "uetrust.ue.ensemble"]
    for e in mine:
        assert type(e.fn(**{k: x[k] for k in e.needs})) is float
    assert len(mine) == 11 and all(np.array_equal(a, b) for k in x for a, b in zip(x[k], before[k]))
