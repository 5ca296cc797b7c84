"""What must hold for every uncertainty score of the registry, whatever it computes.

An item is drawn from certain to uniform, and much of how it is given must not matter.
"""

import copy
from dataclasses import replace
from functools import cache, wraps

import numpy as np
import pytest
from scipy.special import rel_entr, xlogy

from tests.helpers.laws import check_law
from uetrust.core.checks import Undefined
from uetrust.core.registry import Registry
from uetrust.core.run import ScoreRun, compute_score, required_scores, score_values
from uetrust.data.generations import Generation
from uetrust.report.cards import score_card
from uetrust.scoring.units import text_units, unit_scores
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts import STATISTICS

reg = load_scores()
ALL = sorted(reg.of("ue"))
# One item
V, END, M, SURE = (
    27,
    26,
    3,
    6.0,
)  # Words of the toy vocabulary, the last of them ends a text; members; logit of a sure entailment


def entropy(p):
    return -xlogy(p, p).sum(-1)


def log(p):
    with np.errstate(divide="ignore"):
        return np.log(p)


def texts(ids):
    return [" ".join(f"w{i}" for i in x if i != END) for x in ids]


def written(rng, t, K, L):
    "The greedy text [L] and K samples [K,L]: the further t, the more words of a sample are its own"
    n = L - 1 if L > 1 else L  # A text of one token has no end
    words = rng.permutation(END)[: (1 + K) * n].reshape(1 + K, n)
    own = np.stack([rng.permutation(n) for _ in range(K)]) if K else np.zeros((0, n), int)
    ids = np.vstack([words[:1], np.where(own < round(t * n), words[1:], words[0])])
    return np.hstack([ids, np.full((1 + K, L - n), END)]) if L else ids


def judged(rng, ids):
    "Logits from the share of words that differ: equal texts entail each other, others contradict"
    n = max((ids[0] != END).sum(), 1)
    d = (ids[:, None] != ids).sum(-1) / n
    z = SURE * np.where(d > 0, rng.uniform(0.5, 1.2, d.shape) - 2 * d, 1)
    return d, np.stack([-z, 0 * z, z], -1)


def predicted(rng, ids, t):
    "Distributions [M,L,V] of members whose mean goes from certain to uniform"
    m = (t ** rng.uniform(0.6, 1.6, len(ids)))[:, None]
    side = np.eye(M)[rng.permutation(V) % M].T[:, None] * M
    return (1 - m) * np.eye(V)[ids] + m * (0.4 + 0.6 * side) / V


def joint(p, ids):
    "Terms of the ensemble at each token, members weighted equally"
    l, pe = np.take_along_axis(log(p), np.broadcast_to(ids[:, None], (M, len(ids), 1)), 2)[..., 0], p.mean(0)
    du, rmi = entropy(p).mean(0), rel_entr(pe, p).sum(-1).mean(0)
    mi = entropy(pe) - du
    return dict(member_logp=l, member_du=du, pe_tu=entropy(pe), pe_mi=mi, pe_rmi=rmi, pe_epkl=mi + rmi)


def by_prefix(p, ids):
    "The same, members weighted by the words before"
    l = joint(p, ids)["member_logp"]
    w = np.exp(np.cumsum(l, 1) - l)
    ep = (w / w.sum(0))[..., None] * p
    tu, rmi = entropy(ep.sum(0)), rel_entr(ep.sum(0), p).sum(-1).mean(0)
    mi = tu - entropy(p).mean(0)
    return dict(ep_tu=tu, ep_rmi=rmi, ep_mi=mi, ep_epkl=mi + rmi)


def toys(t):
    "Statistics that give an example of their own"
    return {name: value for one in STATISTICS.values() if one.toy for name, value in one.toy(t).items()}


def item(rng, t, K=4, L=5):
    """All stored statistics of one item.

    At t=0 the model is certain, samples and members agree, and the state is the mean of training; at t=1 all
    words are equally likely and nothing agrees.
    """
    ids = written(rng, t, K, L)
    y, steps = ids[0], np.arange(L)
    d, nli = judged(rng, ids)
    members = predicted(rng, y, t)
    p = members.mean(0)
    logp, flat = log(p), np.sqrt(p) / np.sqrt(p).sum(1, keepdims=True)
    like = np.sqrt(flat / V).sum(1).clip(0, 1)
    top = np.argsort(-p - np.eye(V)[y], 1, kind="stable")[:, :5]
    weight, labels = rng.uniform(0.2, 1, L) * (y != END), rng.integers(0, 3, (3, L, 5))
    seen = np.array(
        [np.bincount(x[x != END], minlength=V + 1) if (x != END).any() else np.eye(V + 1)[V] for x in ids],
        float,
    )
    part = dict(all=y, other=np.r_[(y[:1] + 1) % END, y[1:]], short=y[: max(L - 1, min(L, 1))])
    beams = [joint(members[:, : len(h)], h) for h in part.values()]
    rare = np.where(p < 0.01, 0, p) * rng.uniform(1, 8, V)
    rare = rare / rare.sum(1, keepdims=True)
    side = rng.normal(size=3)
    said = f"Confidence: {100 * (1 - t):.0f}%"
    return dict(
        source="a source",
        reference="a reference",
        greedy_text=texts(ids)[0],
        sample_texts=texts(ids)[1:],
        answer=texts(ids)[0],
        other_texts=texts(ids)[1:],
        other_vectors=seen,
        greedy_ids=y,
        greedy_special=y == END,
        greedy_logp=logp[steps, y],
        greedy_entropy=entropy(p),
        greedy_allowed=np.full(L, V),
        greedy_top_ids=top,
        greedy_top_logp=np.take_along_axis(logp, top, 1),
        greedy_self_certainty=-np.log(V) - logp.mean(1),
        greedy_renyi=-2 * np.log(like),
        greedy_fisher_rao=2 / np.pi * np.arccos(like),
        greedy_dominant=p[steps, y],
        greedy_logit=10 + logp[steps, y],
        sample_logit=[10 + logp[steps, x] for x in ids[1:]],
        processed_logp=np.where(steps > 0, logp[steps, y], 0),
        processed_entropy=np.where(steps > 0, entropy(p), 0),
        processed_finite=np.where(steps > 0, V, 1),
        context_divergence=(1 - t) * np.log(2) * np.ones(L),
        unconditional_logp=np.log(rng.dirichlet(np.ones(V)))[y],
        sample_logp=[logp[steps, x] for x in ids[1:]],
        sample_special=[x == END for x in ids[1:]],
        nli=nli,
        nli_sentences=np.stack([nli[1:, 0] - rng.uniform(0, 1, (K, 1)) * [-1, 0, 1] for _ in range(2)], 1),
        vectors=seen,
        sample_states=np.hstack([seen, -seen])[1:],
        sample_similarity=1 - d[1:, 1:],
        greedy_relevance=weight,
        sample_relevance=[weight.copy() for _ in range(K)],
        ccp_labels=labels[0],
        ccp_forward=labels[1],
        ccp_backward=labels[2],
        greedy_state=WHOLE["train_states"].mean(0) + 6 * t * side / np.linalg.norm(side),
        **joint(members, y),
        **by_prefix(members, y),
        beam_pe_tu=[b["pe_tu"] for b in beams],
        beam_pe_rmi=[b["pe_rmi"] for b in beams],
        beam_member_logp=[b["member_logp"] for b in beams],
        beam_length=np.array([len(h) + 1 for h in part.values()]),
        beam_score=np.array(
            [b["member_logp"].mean(0).sum() / (1 + b["member_logp"].shape[1]) for b in beams]
        ),
        attention_previous=(1 - t * rng.uniform(0.3, 0.9, (6, L))) * (steps > 0),
        attention_log_self=np.log(1 - t * rng.uniform(0.3, 0.9, L)),
        prompt_log_self=float(3 * np.log(1 - 0.9 * t)),
        elicited_attention=rng.uniform(0.1, 1, L),
        focus_surprisal=np.exp(entropy(rare)) - np.log(rare[steps, y] + 1e-5),
        keywords=(steps == 0) | (rng.random(L) < 0.5),
        attention_max=np.tril(rng.random((L, L)), -1),
        lookback_ratio=1 - t * rng.uniform(0.3, 0.9, 12),
        true_logp=float(log(1 - t)),
        false_logp=float(log(t)),
        true_processed_logp=float(log(1 - t)),
        verbal_1s=said,
        verbal_2s=said,
        **toys(t),
    )


def whole(rng):
    "What belongs to all items: the background is three times as wide as the training states"
    x = rng.normal(size=(150, 3)) * [1, 0.7, 0.4]
    return dict(
        train_states=x,
        background_states=x.mean(0) + 3 * (x - x.mean(0)),
        train_perplexity=rng.exponential(size=50),
    )


WHOLE = whole(np.random.default_rng(0))  # Fits to it are made once and kept here


def drawn(seed, t, **kw):
    return item(np.random.default_rng(seed), t, **kw)


def run_of(items):
    return ScoreRun(range(len(items)), reg, WHOLE, **{k: [x[k] for x in items] for k in items[0]})


def table(run, name):
    "One score of every item; scores that it rests on are computed first"
    first = required_scores(name, reg)
    return compute_score(
        ScoreRun(run.samples, reg, **{n: list(compute_score(run, n)["value"]) for n in first})
        if first
        else run,
        name,
    )


def values(run, name):
    return table(run, name)["value"].to_numpy()


def rests_on(name):
    "All statistics under a score"
    return {name}.union(*(rests_on(k) for k in reg[name].needs if k in reg and k != name), reg[name].needs)


def lacking(name):
    "Statistics that a score needs and that an item does not have"
    run, first = run_of([drawn(0, 0.5)]), required_scores(name, reg)
    return {need for one in (name, *first) for need in run.lacks(one)} - first


# No score may be forgotten
SCORES = [name for name in ALL if not lacking(name)]


@pytest.mark.parametrize("name", ALL)
def test_an_item_has_what_a_score_needs(name):
    assert not lacking(name), (
        f"{name} needs {', '.join(lacking(name))}, of which the tests have no example. Give one in its "
        "@statistic: toy=lambda doubt: dict(NAME=VALUE), where the model is certain at doubt=0, and all "
        "words are equally likely at 1"
    )


@pytest.mark.parametrize("name", SCORES)
def test_no_score_has_the_name_of_what_it_is_made_from(name):
    "Such a score would be handed to others in place of the stored statistic."
    assert name not in reg[name].needs and not set(reg[name].needs) & set(ALL)


@pytest.mark.parametrize("name", SCORES)
def test_every_score_has_a_formula_and_a_trap(name):
    e = reg[name]
    assert e.formula.strip() and "$" not in e.formula and e.formula.count("{") == e.formula.count("}"), (
        f"formula of {name}: LaTeX without dollar signs, as many opening braces as closing ones"
    )
    assert e.pitfall.endswith(".") and len(e.pitfall) > 20 and e.pitfall.count(". ") < 2, (
        f"pitfall of {name}: what goes wrong in use, in one or two sentences that end with a full stop"
    )


# More certain input never scores as less certain
SEEDS, TS = range(8), (0, 0.25, 0.5, 0.75, 1)


@cache
def paths():
    return run_of([drawn(s, t) for s in SEEDS for t in TS])


def along(name):
    "Values of each path, where defined"
    return [v[~np.isnan(v)] for v in values(paths(), name).reshape(len(SEEDS), len(TS))]


def falls(v):
    return (v[1:] < v[:-1] - 1e-9).any()


@pytest.mark.parametrize("name", SCORES)
def test_more_certain_input_never_scores_as_less_certain(name):
    check_law(reg[name], "not_monotone", any(map(falls, along(name))))


@pytest.mark.parametrize("name", [n for n in SCORES if reg[n].role != "baseline"])
def test_the_certain_end_scores_lower_than_the_uniform_one(name):
    rises = all(len(v) > 1 and v[0] < v[-1] - 1e-9 for v in along(name))
    check_law(reg[name], "not_rising", not rises)


@pytest.mark.parametrize("name", SCORES)
def test_every_value_lies_on_the_scale_that_the_unit_states(name):
    lowest, highest = reg[name].scale or (-np.inf, np.inf)
    found = np.concatenate(along(name))
    assert len(found) and lowest - 1e-9 <= found.min() and found.max() <= highest + 1e-9, (
        f"{name} goes from {found.min():g} to {found.max():g}, and its unit {reg[name].unit!r} says "
        f"[{lowest:g}, {highest:g}]: correct the unit in its decorator, or the formula"
    )


def test_every_score_has_a_role():
    assert {e.role for e in reg.of("ue").values()} == {"method", "baseline"}
    assert {e.role for e in reg.of("nlg").values()} == {"metric"}
    assert reg["lex_sim"].scale == (-1, 0) and reg["msp"].scale is None


# How the samples, items and repetitions are given
OF_SAMPLES = dict(
    sample_texts=0,
    other_texts=0,
    other_vectors=1,
    sample_logp=0,
    sample_logit=0,
    sample_special=0,
    sample_relevance=0,
    nli_sentences=0,
    sample_states=0,
    sample_similarity=2,
    nli=3,
    vectors=1,
)


def chosen(x, at, how):
    "Samples `at` of a statistic: 0 a list or rows, 2 rows and columns; 1 and 3 after the greedy one"
    if isinstance(x, list):
        return [x[i] for i in at]
    g = np.r_[0, 1 + np.array(at)] if how % 2 else np.array(at)
    return x[np.ix_(g, g)] if how > 1 else x[g]


def resampled(x, at):
    return x | {k: chosen(x[k], at, how) for k, how in OF_SAMPLES.items()}


FROM_SAMPLES = [n for n in SCORES if rests_on(n) & set(OF_SAMPLES)]


@cache
def shuffled():
    "Runs with the samples of each item in four orders"
    items = [drawn(s, t) for s in SEEDS for t in (0.25, 0.5, 0.75)]
    return [
        run_of([resampled(x, at) for x in items])
        for at in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1])
    ]


@pytest.mark.parametrize("name", FROM_SAMPLES)
def test_the_order_of_samples_does_not_matter(name):
    one, *others = (values(r, name) for r in shuffled())
    assert np.isfinite(one).all()
    same = all(np.allclose(one, v, rtol=1e-9, atol=1e-9) for v in others)
    check_law(reg[name], "sample_order_matters", not same)


REPEATED = [0, 0, 1, 2, 1, 0, 3]


@pytest.mark.parametrize("name", [n for n in SCORES if "sample_texts" in rests_on(n)])
def test_repeated_texts_are_worth_their_work_once(name):
    "Pairs of unique texts, repeated afterwards, give what pairs of all texts give."
    pairs = [k for k in rests_on(name) if k == "jaccard" or k.endswith("_pairs")]
    for s in SEEDS:
        x = drawn(s, 0.5)
        assert len(set(x["sample_texts"])) == 4
        all7 = resampled(x, REPEATED)
        once = all7 | (
            {
                k: ScoreRun([0], reg, sample_texts=[x["sample_texts"]])[k][0][np.ix_(REPEATED, REPEATED)]
                for k in pairs
            }
            or dict(sample_texts=[f"text {i}" for i in REPEATED])
        )
        assert values(run_of([all7]), name) == pytest.approx(values(run_of([once]), name), rel=1e-12)


@cache
def mixed():
    return [drawn(s, t) for s, t in zip(range(10, 16), (0.3, 0.9, 0, 0.6, 1, 0.1))]


@pytest.mark.parametrize("name", SCORES)
def test_the_order_of_items_does_not_matter(name):
    got, n = values(run_of(mixed()), name), len(mixed())
    for at in (range(n)[::-1], [2, 5, 0, 4, 1, 3]):
        np.testing.assert_allclose(
            values(run_of([mixed()[i] for i in at]), name),
            got[list(at)],
            rtol=1e-6 if reg[name].fn.__module__ == "uetrust.ue.density" else 1e-12,
        )


# What is given stays as it was
@pytest.mark.parametrize("name", SCORES)
def test_inputs_are_not_modified(name):
    items = [drawn(20, 0.4), drawn(21, 0)]
    run, given = run_of(items), copy.deepcopy(items)
    for k in rests_on(name) - {name}:
        if not run.lacks(k) and (k not in reg or reg[k].kind == "stat"):
            run[k]
    made = copy.deepcopy(run._values)
    table(run, name)
    np.testing.assert_equal(items, given)
    np.testing.assert_equal({k: run._values[k] for k in made}, made)
    fresh = whole(np.random.default_rng(0))
    np.testing.assert_equal({k: WHOLE[k] for k in fresh}, fresh)


# Items at the edge
def never(x, *names):
    "The first token of statistics is impossible"

    def one(v):
        v = np.array(v)
        v[..., :1] = -np.inf
        return v

    return x | {k: [one(v) for v in x[k]] if isinstance(x[k], list) else one(x[k]) for k in names}


IMPOSSIBLE = (
    "greedy_logp",
    "processed_logp",
    "unconditional_logp",
    "sample_logp",
    "sample_logit",
    "member_logp",
    "beam_member_logp",
)


def without_first_sample(x):
    "One sample has no tokens"
    nothing = dict(
        sample_texts="",
        other_texts="",
        sample_logp=np.zeros(0),
        sample_special=np.zeros(0, bool),
        sample_relevance=np.zeros(0),
    )
    return x | {k: [v, *x[k][1:]] for k, v in nothing.items()}


def one_member(x):
    return x | dict(member_logp=x["member_logp"][:1], beam_member_logp=[b[:1] for b in x["beam_member_logp"]])


EDGES = {
    "one sample": drawn(30, 0.5, K=1),
    "no sample": drawn(30, 0.5, K=0),
    "no tokens": drawn(30, 0.5, L=0),
    "one token": drawn(30, 0.5, L=1),
    "one sample without tokens": drawn(30, 0.5, K=1, L=0),
    "identical texts": drawn(30, 0),
    "uniform": drawn(30, 1),
    "an empty sample": without_first_sample(drawn(30, 0.5)),
    "one empty sample": without_first_sample(drawn(30, 0.5, K=1)),
    "one member": one_member(drawn(30, 0.5)),
    "impossible words": never(drawn(30, 0.5), *IMPOSSIBLE),
    "impossible words in identical texts": never(drawn(30, 0), *IMPOSSIBLE),
    "an impossible greedy word": never(drawn(30, 0.5), "greedy_logp"),
    "nothing entails anything": drawn(30, 0.5) | dict(nli=np.broadcast_to([1e3, 0, -1e3], (5, 5, 3))),
    "all is neutral": drawn(30, 0.5) | dict(nli=np.broadcast_to([-1e3, 1e3, -1e3], (5, 5, 3))),
    "nothing is similar": drawn(30, 0.5) | dict(sample_similarity=np.zeros((4, 4))),
    "nothing is relevant": drawn(30, 0.5)
    | dict(greedy_relevance=np.zeros(5), sample_relevance=[np.zeros(5)] * 4),
    "no attention": drawn(30, 0.5)
    | dict(
        attention_previous=np.zeros((6, 5)),
        attention_log_self=np.full(5, -np.inf),
        elicited_attention=np.zeros(5),
        attention_max=np.zeros((5, 5)),
        lookback_ratio=np.full(12, np.nan),
    ),
    "no keyword": drawn(30, 0.5) | dict(keywords=np.zeros(5, bool)),
    "a state that is no number": drawn(30, 0.5) | dict(greedy_state=np.full(3, np.nan)),
    "no answer": drawn(30, 1) | dict(false_logp=-np.inf, verbal_1s="", verbal_2s="I cannot say."),
}


@pytest.mark.parametrize("name", SCORES)
def test_at_the_edge_a_score_is_a_number_or_says_why_not(name):
    found = {edge: table(run_of([item]), name).iloc[0] for edge, item in EDGES.items()}
    silent = [edge for edge, row in found.items() if np.isnan(row["value"]) != bool(row["note"])]
    assert not silent, f"{name} is NaN where there is {silent}: raise Undefined with the reason there"


# A batched twin is its function, for many items at once
TWINS = [name for name in SCORES if reg[name].batch]


def nested_nan(x, name):
    "The first number of one statistic is not a number"

    def one(v):
        v = np.array(v, float)
        v.reshape(-1)[:1] = np.nan
        return v

    return x | {name: [one(v) for v in x[name]] if isinstance(x[name], list) else one(x[name])}


def real(value):
    return np.asarray(value[0] if isinstance(value, list) else value).dtype.kind == "f"


def without(x, name):
    return x | {name: Undefined(f"no {name} here")}


@cache
def twin_runs():
    "Items of one shape; of every shape and at the edge; with NaN; with inputs that do not exist"
    numbers = [name for name, value in mixed()[0].items() if real(value)]
    lacking = [without(mixed()[i % 6], name) for i, name in enumerate(mixed()[0])]
    return dict(
        equal=run_of([drawn(s, t) for s in range(8) for t in TS]),
        ragged=run_of([drawn(40 + i, 0.5, K=i % 4, L=i % 7) for i in range(28)] + list(EDGES.values())),
        nan=run_of([nested_nan(mixed()[i % 6], name) for i, name in enumerate(numbers)] + mixed()),
        lacking=run_of([*lacking, drawn(3, 0.5)]),
        one=run_of([drawn(5, 0.5)]),
    )


def with_and_without_twin(run, name):
    "The table of a score with its twin and without"
    alone = Registry(reg)
    alone[name] = replace(reg[name], batch=None)
    without_twin = ScoreRun(run.samples, alone, run.whole, **run._values)
    return [compute_score(r, name, errors="note") for r in (run, without_twin)]


@pytest.mark.parametrize("name", TWINS)
def test_a_batched_twin_gives_what_its_function_gives(name):
    for kind, run in twin_runs().items():
        first = {n: list(compute_score(run, n, "note")["value"]) for n in required_scores(name, reg)}
        twin, function = with_and_without_twin(ScoreRun(run.samples, reg, **first) if first else run, name)
        np.testing.assert_allclose(twin["value"], function["value"], rtol=1e-12, atol=1e-12, err_msg=kind)
        assert twin["note"].tolist() == function["note"].tolist(), kind


def test_twins_are_asked_and_answer():
    "Of ordinary items no function is called"
    run = twin_runs()["equal"]
    for name in TWINS:
        if required_scores(name, reg):
            continue
        alone = Registry(reg)
        alone[name] = replace(reg[name], fn=never_called(reg[name].fn))
        assert (
            compute_score(ScoreRun(run.samples, alone, run.whole, **run._values), name)["value"].notna().all()
        )


def test_without_items_a_twin_has_nothing_to_say():
    assert compute_score(ScoreRun([], reg, greedy_logp=[]), "perplexity").empty


def never_called(fn):
    @wraps(fn)
    def refuse(*_, **__):
        raise AssertionError(f"{fn.__name__} was called")

    return refuse


# A sentence, a word or a claim is scored by the tokens that spell it
@pytest.mark.parametrize("name", sorted(name for name, entry in reg.of("ue").items() if entry.pool))
def test_a_unit_that_is_the_whole_text_has_its_score_to_the_last_bit(name):
    run = ScoreRun(*[twin_runs()["ragged"].samples, reg], **twin_runs()["ragged"]._values)
    sizes = [len(tokens) for tokens in run[reg[name].needs[0]]]
    units = [text_units(Generation("x" * n, tokens=["x"] * n), "text") for n in sizes]
    found = unit_scores(run, units, [name])[name].to_numpy()
    expected, notes = score_values(run, name, "note")
    spelled = np.array(sizes) > 0
    np.testing.assert_array_equal(found[spelled], expected[spelled])
    assert np.isfinite(found).sum() > 10 and np.isnan(found[~spelled]).all()


def test_a_card_says_how_the_parts_of_a_text_are_scored():
    parts = {name: "**Parts** a" in score_card(name, reg) for name in reg.of("ue")}
    none = {name for name in reg.of("ue") if "**Parts** none" in score_card(name, reg)}
    assert all(parts[name] == bool(entry.pool) for name, entry in reg.of("ue").items())
    assert {"token_std", "median_token", "rauq", "token_sar", "ccp"} <= none
