"""UniEval: recorded numbers of upstream and of the benchmark's copy, the questions character for character, and one step of a decoder."""

import hashlib

import numpy as np
import pytest

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.run import Run, score
from uetrust.core.settings import oracles, root
from uetrust.data.bulletins import bulletin
from uetrust.generation.decoding import HE2024
from uetrust.models.forward import Layout
from uetrust.models.likelihoods import UNIEVAL, questions, unieval, yes_no
from uetrust.models.load import load
from uetrust.nlg.unieval import unieval_consistency, unieval_fluency, unieval_overall, yes

DIMS = ("coherence", "consistency", "fluency", "relevance")
PREFIX = HE2024.prompt.removesuffix("{source}")


@pytest.fixture(scope="module")
def t5():
    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    return load(oracles() / "metrics/models/tiny_t5", device="cpu")


@pytest.fixture(scope="module")
def run(oracle, t5):
    "All leaves of all items, in one run"
    rec, split = (
        oracle("metrics/unieval.json"),
        {x["text"]: x["punkt"] for x in oracle("metrics/sentence_splits.json")["items"]},
    )
    docs = {t["id"]: t for t in oracle("metrics/triples.json")["triples"] if t["id"] in rec["he_variant"]}
    texts = {k: [d[k] for d in docs.values()] for k in ("hypothesis", "source", "reference")} | dict(
        sentence=[split[d["hypothesis"]] for d in docs.values()]
    )
    plain, cut = unieval(t5, DIMS, texts)
    fact, _ = unieval(t5, ["consistency"], texts, "yes_no_fact")
    he, _ = unieval(t5, ["coherence", "consistency"], texts, "yes_no_{}_he2024", PREFIX)
    bare, _ = unieval(t5, ["coherence", "consistency"], texts, "yes_no_{}_he2024")
    return rec, texts, cut, Run(list(docs), reg, **plain | fact | he), Run(list(docs), reg, **plain | bare)


def values(run, name):
    return score(run, name).set_index("sample")["value"]


def near(got, want, tol=2e-5):
    np.testing.assert_allclose(got, want, rtol=0, atol=tol)


@pytest.mark.parametrize("dim", [*DIMS, "overall"])
def test_upstream_scores(run, dim):
    rec, _, _, r, _ = run
    want = {k: v[dim] for k, v in rec["upstream_scores"].items()}
    near(values(r, f"unieval_{dim}")[list(want)], list(want.values()))


def test_consistency_of_the_checkpoint_for_facts(run):
    rec, _, _, r, _ = run
    want = {k: v["consistency"] for k, v in rec["upstream_fact_consistency"].items()}
    near(values(r, "unieval_fact")[list(want)], list(want.values()))


def test_an_empty_summary_has_no_score_where_upstream_fails(run):
    rec, _, _, r, _ = run
    want = rec["upstream_on_empty_hypothesis"]
    for dim, w in want.items():
        got = score(r, f"unieval_{dim}").set_index("sample").loc["empty_hyp"]
        if isinstance(w, dict):
            assert np.isnan(got["value"]) and got["note"] == "the summary has no sentences"
        else:
            near(got["value"], w)
    assert (
        np.isnan(values(r, "unieval_overall")["empty_hyp"])
        and sum(isinstance(w, dict) for w in want.values()) == 2
    )


@pytest.mark.parametrize("which,variant", [(3, "he_variant_with_instruction_prefix"), (4, "he_variant")])
@pytest.mark.parametrize("dim", [*DIMS, "overall"])
def test_the_benchmarks_copy(run, which, variant, dim):
    want = {k: v[dim] for k, v in run[0][variant].items()}
    got = values(run[which], "unieval_relevance" if dim == "relevance" else f"unieval_{dim}_he2024")
    near(got[list(want)], list(want.values()))
    assert len(got) == 10 and (dim not in ("fluency", "consistency") or got["empty_hyp"] == 0)


def test_the_prefix_is_the_benchmarks_prompt(run):
    assert run[0]["instruction_prefix"] == PREFIX and len(PREFIX) == 39


def test_the_divisor_moves_a_score_by_a_hundred_millionth(run):
    _, _, _, _, r = run
    off = (values(r, "unieval_fluency") - values(r, "unieval_fluency_he2024")).dropna()
    assert (off > 0).all() and off.max() < 1e-8


def test_questions_are_recorded_character_for_character(run, t5):
    rec, texts, _, r, _ = run
    items = [dict(zip(texts, x)) for x in zip(*texts.values())]
    for dim, recorded in rec["per_input"].items():
        asked = dict.fromkeys(q for x in items for q in questions(dim, **x))
        known = {hashlib.sha256(q.encode()).hexdigest(): q for q in asked}
        for e in recorded:
            q = e.get("input") or known[e["input_sha256"]]
            if "input" not in e:
                assert (q[: len(e["input_head"])], len(q)) == (e["input_head"], e["input_chars"])
            if q in asked:
                asked[q] = e
        done = {q: e for q, e in asked.items() if e}
        p, cut = yes_no(t5, list(done))
        near(yes(p), [e["score"] for e in done.values()])
        full = [len(t5.tokenizer(q, verbose=False).input_ids) for q in done]
        assert (np.array(full) - cut).tolist() == [e["input_ids_len"] for e in done.values()] and len(
            done
        ) >= 9


def test_one_question_by_its_probabilities(run, t5):
    e = run[0]["example"]
    assert t5.tokenizer(e["input"]).input_ids == e["input_ids"]
    near(yes_no(t5, [e["input"]])[0][0], [e["p_yes"], e["p_no"]])


def test_long_sources_are_cut_and_counted(run):
    _, texts, cut, r, _ = run
    lost = {d: dict(zip(r.samples, cut[f"yes_no_{d}"].tolist())) for d in DIMS}
    assert (
        lost["coherence"]["copy_long"] > 0
        and lost["consistency"]["copy_long"] > lost["consistency"]["expedition_long"] > 0
    )
    assert set(lost["fluency"].values()) == {0} and lost["coherence"]["tiny"] == 0


def test_batches_and_order_change_nothing(run, t5):
    _, texts, _, r, _ = run
    back, _ = unieval(t5, DIMS[::-1], {k: v[::-1] for k, v in texts.items()}, batch_tokens=1)
    for d in DIMS:
        a, b = values(r, f"unieval_{d}"), values(Run(r.samples[::-1], reg, **back), f"unieval_{d}")
        np.testing.assert_allclose(a, b[a.index], rtol=0, atol=2e-6)


# Any model that answers
@pytest.mark.parametrize("name", ["tiny-t5", "tiny-unieval"])
def test_shipped_models_can_be_asked(name):
    at = root() / "data/models" / name
    m, rows = load(at, device="cpu"), [bulletin("test", i) for i in range(8)]
    texts = dict(
        sentence=[b["paraphrase"].split("\n") for b in rows],
        hypothesis=[b["paraphrase"] for b in rows],
        source=[b["source"] for b in rows],
        reference=[b["reference"] for b in rows],
    )
    leaves, cut = unieval(m, DIMS, texts)
    answers = np.concatenate([v.reshape(-1, 2) for d in DIMS for v in leaves[f"yes_no_{d}"]])
    assert (answers > 0).all() and (answers.sum(1) < 1 + 1e-6).all()
    if (
        name == "tiny-unieval"
    ):  # It answers, and true claims more often with Yes than the same claims of other bulletins
        assert answers.sum(1).min() > 0.9
        other, _ = unieval(m, ["consistency"], texts | dict(source=texts["source"][1:] + texts["source"][:1]))
        assert (
            np.mean([unieval_consistency(v) for v in leaves["yes_no_consistency"]])
            > np.mean([unieval_consistency(v) for v in other["yes_no_consistency"]]) + 0.2
        )


def test_a_source_that_brings_its_own_separator_is_not_removed(t5):
    "It is read as a further part of the question, as upstream does; the score's card says so."
    plain, forged = (
        yes_no(t5, [UNIEVAL["coherence"].format(hypothesis=h, source="s")])[0] for h in ("a b", "a </s> b")
    )
    assert np.abs(plain - forged).max() > 1e-6 and "</s>" in reg["unieval_coherence"].trap


def test_answers_that_cannot_be_told_apart_are_refused(t5):
    with pytest.raises(ValueError, match="begin with the same token"):
        yes_no(t5, ["q"], ("Yes", "Yes"))


def test_no_question_gives_no_answer(t5):
    assert yes_no(t5, [])[0].shape == (0, 2)


def test_sums_are_means_over_sentences():
    p = np.array([[0.2, 0.2], [0.3, 0.1], [0.1, 0.3]])
    assert unieval_fluency(p) == pytest.approx(0.5) and yes(p).tolist() == pytest.approx([0.5, 0.75, 0.25])
    assert unieval_overall(p[1], p, p, p[2]) == pytest.approx((0.75 + 0.5 + 0.5 + 0.25) / 4)
    with pytest.raises(Undefined):
        unieval_overall(p[1], p[:0], p, p[2])


def test_the_window_is_an_option(t5):
    q = [UNIEVAL["coherence"].format(hypothesis="a", source="word " * 50)]
    assert yes_no(t5, q, layout=Layout(window=30))[1][0] > 0 == yes_no(t5, q)[1][0]
