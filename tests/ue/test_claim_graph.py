"""Graph of claims and responses: centralities of uqlm 0.6.7 and of slow definitions."""

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.paths import ROOT
from uetrust.core.run import ScoreRun, compute_score
from uetrust.statistics.scores import load_scores
from uetrust.ue.claim_graph import CENTRALITIES, claim_centralities, most_between, path_counts

reg = load_scores()
GRAPHS = json.loads((ROOT / "tests" / "fixtures" / "claims.json").read_text())["graphs"]
METHODS = {name: f"claim_{name}" for name in CENTRALITIES}


def run_of(entails, document="a text"):
    "A run with a row for each claim of one text"
    with np.errstate(divide="ignore"):
        logits = [np.log([[1 - p, 0, p] for p in claim]) for claim in entails]
    names = [f"{document} {i}" for i in range(len(logits))]
    return ScoreRun(names, reg, claim_nli=logits, claim_document=[document] * len(logits))


def centralities(run):
    return {name: 1 - compute_score(run, method)["value"].to_numpy() for name, method in METHODS.items()}


@pytest.mark.parametrize("case", [case for case in GRAPHS if "error" not in case])
def test_centralities_are_those_of_uqlm(case):
    found = centralities(run_of(case["entails"]))
    for name in ("degree", "betweenness", "closeness", "harmonic", "laplacian"):
        theirs = case[f"{name}_centrality"]
        assert found[name] == pytest.approx(theirs, rel=1e-9, abs=1e-9), name
    assert found["page_rank"] == pytest.approx(case["page_rank_exact"], abs=1e-9)
    nodes = sum(np.shape(case["entails"]))
    assert found["page_rank"] == pytest.approx(case["page_rank"], abs=nodes * 1e-6 / 0.15)


def test_where_uqlm_fails_at_most_one_centrality_is_undefined():
    "It divides by 0 for a text with one claim, with one response, and without any edge."
    single, without_edges, one_response = (case for case in GRAPHS if "error" in case)
    for case, missing in ((single, None), (without_edges, "laplacian"), (one_response, "betweenness")):
        notes = {name: compute_score(run_of(case["entails"]), METHODS[name])["note"][0] for name in METHODS}
        assert [name for name in notes if notes[name]] == [missing] * (missing is not None)
    assert notes["betweenness"] == "no claim can be between others: a text needs at least two responses"
    assert claim_centralities(without_edges["entails"])["degree"].tolist() == [0, 0]


def shortest(edges, start):
    "All shortest paths from a node, by length: a slow search"
    found, front = {start: [(start,)]}, [(start,)]
    while front:
        longer = [(*path, n) for path in front for n in np.flatnonzero(edges[path[-1]]) if n not in found]
        for path in longer:
            found.setdefault(path[-1], []).append(path)
        front = longer
    return found


@given(st.integers(0, 999), st.integers(1, 5), st.integers(2, 5))
def test_paths_and_betweenness_are_those_of_a_slow_search(seed, claims, responses):
    entails = np.random.default_rng(seed).random((claims, responses))
    n = claims + responses
    edges = np.zeros((n, n), bool)
    edges[:claims, claims:] = entails >= 0.5
    edges |= edges.T
    steps, counts = path_counts(edges)
    between = np.zeros(n)
    for s, t in combinations(range(n), 2):
        paths = shortest(edges, s).get(t, [])
        assert counts[s, t] == counts[t, s] == len(paths)
        assert steps[s, t] == (len(paths[0]) - 1 if paths else np.inf)
        for v in {*range(n)} - {s, t}:
            between[v] += sum(v in path for path in paths) / max(len(paths), 1)
    found = claim_centralities(entails)["betweenness"] * most_between(claims, responses)
    assert found == pytest.approx(between[:claims], abs=1e-9)


@given(st.integers(0, 999), st.integers(1, 6), st.integers(1, 6))
def test_centralities_lie_between_0_and_1_and_do_not_depend_on_the_order(seed, claims, responses):
    rng = np.random.default_rng(seed)
    entails = rng.random((claims, responses))
    rows, columns = rng.permutation(claims), rng.permutation(responses)
    found, other = claim_centralities(entails), claim_centralities(entails[np.ix_(rows, columns)])
    for name in CENTRALITIES:
        np.testing.assert_allclose(found[name][rows], other[name], atol=1e-9)
        values = found[name][~np.isnan(found[name])]
        assert (-1e-12 <= values).all() and (values <= 1 + 1e-12).all()


def test_the_claims_of_a_text_make_its_graph_whatever_else_is_in_the_run():
    one, two = (run_of(GRAPHS[i]["entails"], str(i)) for i in (0, 1))
    mixed = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2), (0, 3), (0, 4)]
    runs = [one, two]
    together = ScoreRun(
        range(8),
        reg,
        claim_nli=[runs[r]["claim_nli"][i] for r, i in mixed],
        claim_document=[str(r) for r, _ in mixed],
    )
    for name, values in centralities(together).items():
        alone = [centralities(run)[name] for run in runs]
        assert values == pytest.approx([alone[r][i] for r, i in mixed], rel=1e-12), name


def test_a_text_whose_claims_lack_an_answer_has_no_graph():
    logits = np.zeros((3, 3))
    half = logits.copy()
    half[1, 2] = np.nan
    claims = [logits, half, logits, logits[:2], logits]
    run = ScoreRun(range(5), reg, claim_nli=claims, claim_document=["a", "a", "b", "b", "c"])
    notes = compute_score(run, "claim_degree")["note"].tolist()
    assert notes[:2] == ["a claim of this text has no probability of entailment"] * 2
    assert notes[2:] == ["the claims of a text need the same responses"] * 2 + [""]


def test_a_graph_needs_claims_and_responses():
    for wrong in (np.zeros(3), np.zeros((0, 3)), np.zeros((2, 0))):
        with pytest.raises(ValueError, match="needs a matrix of claims and responses"):
            claim_centralities(wrong)
