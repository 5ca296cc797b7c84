"""Likelihoods: what is cut keeps its end and is counted, what is missing is named, batches change nothing."""

# ruff: noqa: F811

import numpy as np
import pytest

from tests.helpers.likelihood import (
    bulletins,  # noqa: F401
    close,
    pairs,  # noqa: F401
    reader,  # noqa: F401
)
from tests.helpers.unieval import (
    near,
    run,  # noqa: F401
    t5,  # noqa: F401
)
from uetrust.core.settings import root
from uetrust.models.forward import Layout
from uetrust.models.likelihoods import DIRECTIONS, UNIEVAL_QUESTIONS, directed_logp, yes_no_probabilities
from uetrust.models.load import load_model


# What must not matter, and what must be reported
@pytest.fixture(scope="module")
def shipped():
    return load_model(root() / "data/models/tiny-bart", device="cpu")


def test_batches_and_order_change_nothing(shipped, bulletins):
    ways = ["source_hypothesis", "hypothesis_reference", "prefix_hypothesis", "empty_hypothesis"]
    given = {k: bulletins[k] for k in ("hypothesis", "source", "reference")}
    whole, _ = directed_logp(shipped, "a", ways, **given)
    small, _ = directed_logp(shipped, "a", ways, **given, batch_tokens=1)
    back, _ = directed_logp(shipped, "a", ways[::-1], **{k: lists[::-1] for k, lists in given.items()})
    for k, lists in whole.items():
        mean_whole, mean_single, mean_reversed = (
            np.array([np.mean(logps) for logps in batch]) for batch in (lists, small[k], back[k][::-1])
        )
        assert (
            np.abs(mean_whole - mean_single).max() <= 2e-6
            and np.abs(mean_whole - mean_reversed).max() <= 2e-6
        )


def test_a_text_cut_short_keeps_its_closing_token_and_is_counted(shipped, bulletins):
    whole, _ = directed_logp(
        shipped, "a", ["source_hypothesis"], bulletins["hypothesis"][:1], bulletins["source"][:1]
    )
    short, cut = directed_logp(
        shipped, "a", ["source_hypothesis"], bulletins["hypothesis"][:1], bulletins["source"][:1], most=10
    )
    whole_logps, short_logps = whole["a_logp_source_hypothesis"][0], short["a_logp_source_hypothesis"][0]
    close(short_logps[:9], whole_logps[:9])
    assert (
        len(short_logps) == 10
        and short_logps[-1] < -1
        and cut["a_logp_source_hypothesis"].tolist() == [len(whole_logps) - 10]
    )  # to end there is unlikely


def test_long_texts_of_the_second_file_are_cut_and_counted(reader, pairs):
    pair = pairs["p13_long"]
    statistics, cut = directed_logp(
        reader("seed_systems/models/tiny_bart"),
        "bart",
        ["source_hypothesis", "hypothesis_source"],
        [pair["summary"]],
        [pair["source"]],
    )
    n = len(reader("seed_systems/models/tiny_bart").tokenizer(pair["source"], verbose=False).input_ids)
    assert (
        len(statistics["bart_logp_hypothesis_source"][0]) == 1024
        and [over.tolist() for over in cut.values()] == [[n - 1024]] * 2
    )


def test_texts_may_hold_what_a_template_would_read_as_a_field(shipped):
    odd = dict(hypothesis=["{source} {0} }{"], source=["{hypothesis} %s"])
    assert len(directed_logp(shipped, "a", ["prefix_hypothesis"], **odd)[0]["a_logp_prefix_hypothesis"]) == 1


@pytest.mark.parametrize("way", DIRECTIONS)
def test_a_text_that_was_not_given_is_named(shipped, way):
    need = [k for k in ("source", "reference") if k in "".join(DIRECTIONS[way])]
    if need:
        with pytest.raises(ValueError, match=f"{way}.*reads the {need[0]}"):
            directed_logp(shipped, "a", [way], ["a"])
    else:
        assert list(directed_logp(shipped, "a", [way], ["a"])[0]) == [f"a_logp_{way}"]


def test_no_items_give_no_leaves(shipped):
    assert directed_logp(shipped, "a", ["source_hypothesis"], [], [])[0] == {"a_logp_source_hypothesis": []}


def test_one_question_by_its_probabilities(run, t5):
    example = run[0]["example"]
    assert t5.tokenizer(example["input"]).input_ids == example["input_ids"]
    near(yes_no_probabilities(t5, [example["input"]])[0][0], [example["p_yes"], example["p_no"]])


def test_answers_that_cannot_be_told_apart_are_refused(t5):
    with pytest.raises(ValueError, match="begin with the same token"):
        yes_no_probabilities(t5, ["q"], ("Yes", "Yes"))


def test_no_question_gives_no_answer(t5):
    assert yes_no_probabilities(t5, [])[0].shape == (0, 2)


def test_the_window_is_an_option(t5):
    questions = [UNIEVAL_QUESTIONS["coherence"].format(hypothesis="a", source="word " * 50)]
    assert (
        yes_no_probabilities(t5, questions, layout=Layout(window=30))[1][0]
        > 0
        == yes_no_probabilities(t5, questions)[1][0]
    )
