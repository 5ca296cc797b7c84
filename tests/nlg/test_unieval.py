"""UniEval: recorded numbers of upstream and of the benchmark's copy, the questions character for
character, and one step of a decoder."""

# ruff: noqa: F811

import hashlib

import numpy as np
import pytest

from tests.helpers.unieval import (
    DIMS,
    PREFIX,
    near,
    run,  # noqa: F401
    t5,  # noqa: F401
)
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.run import ScoreRun, compute_score
from uetrust.core.settings import root
from uetrust.data.bulletins import bulletin
from uetrust.models.likelihoods import (
    UNIEVAL_QUESTIONS,
    _unieval_questions,
    unieval_answers,
    yes_no_probabilities,
)
from uetrust.models.load import load_model
from uetrust.nlg.unieval import _yes_share, unieval_consistency, unieval_fluency, unieval_overall


def values(run, name):
    return compute_score(run, name).set_index("sample")["value"]


@pytest.mark.parametrize("dim", [*DIMS, "overall"])
def test_upstream_scores(run, dim):
    rec, _, _, recorded_run, _ = run
    want = {item: scores[dim] for item, scores in rec["upstream_scores"].items()}
    near(values(recorded_run, f"unieval_{dim}")[list(want)], list(want.values()))


def test_consistency_of_the_checkpoint_for_facts(run):
    rec, _, _, recorded_run, _ = run
    want = {item: scores["consistency"] for item, scores in rec["upstream_fact_consistency"].items()}
    near(values(recorded_run, "unieval_fact")[list(want)], list(want.values()))


def test_an_empty_summary_has_no_score_where_upstream_fails(run):
    rec, _, _, recorded_run, _ = run
    want = rec["upstream_on_empty_hypothesis"]
    for dim, expected in want.items():
        got = compute_score(recorded_run, f"unieval_{dim}").set_index("sample").loc["empty_hyp"]
        if isinstance(expected, dict):
            assert np.isnan(got["value"]) and got["note"] == "the summary has no sentences"
        else:
            near(got["value"], expected)
    assert (
        np.isnan(values(recorded_run, "unieval_overall")["empty_hyp"])
        and sum(isinstance(expected, dict) for expected in want.values()) == 2
    )


@pytest.mark.parametrize("which,variant", [(3, "he_variant_with_instruction_prefix"), (4, "he_variant")])
@pytest.mark.parametrize("dim", [*DIMS, "overall"])
def test_the_benchmarks_copy(run, which, variant, dim):
    want = {item: scores[dim] for item, scores in run[0][variant].items()}
    got = values(run[which], "unieval_relevance" if dim == "relevance" else f"unieval_{dim}_he2024")
    near(got[list(want)], list(want.values()))
    assert len(got) == 10 and (dim not in ("fluency", "consistency") or got["empty_hyp"] == 0)


def test_the_prefix_is_the_benchmarks_prompt(run):
    assert run[0]["instruction_prefix"] == PREFIX and len(PREFIX) == 39


def test_the_divisor_moves_a_score_by_a_hundred_millionth(run):
    _, _, _, _, recorded_run = run
    off = (values(recorded_run, "unieval_fluency") - values(recorded_run, "unieval_fluency_he2024")).dropna()
    assert (off > 0).all() and off.max() < 1e-8


def test_questions_are_recorded_character_for_character(run, t5):
    rec, texts, _, recorded_run, _ = run
    items = [dict(zip(texts, item)) for item in zip(*texts.values())]
    for dim, recorded in rec["per_input"].items():
        requests = dict.fromkeys(question for item in items for question in _unieval_questions(dim, **item))
        known = {hashlib.sha256(question.encode()).hexdigest(): question for question in requests}
        for example in recorded:
            question = example.get("input") or known[example["input_sha256"]]
            if "input" not in example:
                assert (question[: len(example["input_head"])], len(question)) == (
                    example["input_head"],
                    example["input_chars"],
                )
            if question in requests:
                requests[question] = example
        done = {question: example for question, example in requests.items() if example}
        probabilities, cut = yes_no_probabilities(t5, list(done))
        near(_yes_share(probabilities), [example["score"] for example in done.values()])
        full = [len(t5.tokenizer(question, verbose=False).input_ids) for question in done]
        assert (np.array(full) - cut).tolist() == [
            example["input_ids_len"] for example in done.values()
        ] and len(done) >= 9


def test_long_sources_are_cut_and_counted(run):
    _, texts, cut, recorded_run, _ = run
    cut_off = {dim: dict(zip(recorded_run.samples, cut[f"yes_no_{dim}"].tolist())) for dim in DIMS}
    assert (
        cut_off["coherence"]["copy_long"] > 0
        and cut_off["consistency"]["copy_long"] > cut_off["consistency"]["expedition_long"] > 0
    )
    assert set(cut_off["fluency"].values()) == {0} and cut_off["coherence"]["tiny"] == 0


def test_batches_and_order_change_nothing(run, t5):
    _, texts, _, recorded_run, _ = run
    back, _ = unieval_answers(
        t5, DIMS[::-1], {key: lists[::-1] for key, lists in texts.items()}, batch_tokens=1
    )
    for dim in DIMS:
        whole, single = (
            values(recorded_run, f"unieval_{dim}"),
            values(ScoreRun(recorded_run.samples[::-1], reg, **back), f"unieval_{dim}"),
        )
        np.testing.assert_allclose(whole, single[whole.index], rtol=0, atol=2e-6)


# Any model that answers
@pytest.mark.parametrize("name", ["tiny-t5", "tiny-unieval"])
def test_shipped_models_can_be_asked(name):
    folder = root() / "data/models" / name
    model, rows = load_model(folder, device="cpu"), [bulletin("test", i) for i in range(8)]
    texts = dict(
        sentence=[item["paraphrase"].split("\n") for item in rows],
        hypothesis=[item["paraphrase"] for item in rows],
        source=[item["source"] for item in rows],
        reference=[item["reference"] for item in rows],
    )
    leaves, cut = unieval_answers(model, DIMS, texts)
    answers = np.concatenate([values.reshape(-1, 2) for dim in DIMS for values in leaves[f"yes_no_{dim}"]])
    assert (answers > 0).all() and (answers.sum(1) < 1 + 1e-6).all()
    if (
        name == "tiny-unieval"
    ):  # It answers, and true claims more often with Yes than the same claims of other bulletins
        assert answers.sum(1).min() > 0.9
        other, _ = unieval_answers(
            model, ["consistency"], texts | dict(source=texts["source"][1:] + texts["source"][:1])
        )
        assert (
            np.mean([unieval_consistency(values) for values in leaves["yes_no_consistency"]])
            > np.mean([unieval_consistency(values) for values in other["yes_no_consistency"]]) + 0.2
        )


def test_a_source_that_brings_its_own_separator_is_not_removed(t5):
    "It is read as a further part of the question, as upstream does; the score's card says so."
    plain, forged = (
        yes_no_probabilities(t5, [UNIEVAL_QUESTIONS["coherence"].format(hypothesis=hypothesis, source="s")])[
            0
        ]
        for hypothesis in ("a b", "a </s> b")
    )
    assert np.abs(plain - forged).max() > 1e-6 and "</s>" in reg["unieval_coherence"].pitfall


def test_sums_are_means_over_sentences():
    probabilities = np.array([[0.2, 0.2], [0.3, 0.1], [0.1, 0.3]])
    assert unieval_fluency(probabilities) == pytest.approx(0.5) and _yes_share(
        probabilities
    ).tolist() == pytest.approx([0.5, 0.75, 0.25])
    assert unieval_overall(probabilities[1], probabilities, probabilities, probabilities[2]) == pytest.approx(
        (0.75 + 0.5 + 0.5 + 0.25) / 4
    )
    with pytest.raises(Undefined):
        unieval_overall(probabilities[1], probabilities[:0], probabilities, probabilities[2])
