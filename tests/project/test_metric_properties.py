"""Laws that every quality metric keeps, over the registry: a metric that is added is held to them at once."""

import numpy as np
import pandas as pd
import pytest

from uetrust.data.bulletins import bulletins
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts.providers import shipped_models

reg = load_scores()
N = 5
BULLETINS = bulletins("test", N)


def table(hypotheses, references=None):
    "Texts to score; `references` is a column of lists"
    df = pd.DataFrame(dict(id=[f"t{i}" for i in range(N)], hypothesis=hypotheses, source=BULLETINS["source"]))
    return (
        df.assign(reference=BULLETINS["reference"])
        if references is None
        else df.assign(references=references)
    )


def scored(texts, metrics="all"):
    "Values by text and metric, and the notes of what is missing"
    found = compute_metrics(texts, shipped_models(), metrics, progress=False).table
    by = [found.pivot(index="sample", columns="name", values=v).loc[texts["id"]] for v in ("value", "note")]
    return by


NEXT = list(np.roll(BULLETINS["reference"], 1))  # The reference of another bulletin
USUAL = table(list(BULLETINS["paraphrase"]))


@pytest.fixture(scope="module")
def usual():
    return scored(USUAL)[0]


METRICS = sorted(reg.of("nlg"))


def test_every_metric_is_covered_or_lacks_a_model_or_a_reply(usual):
    "A metric of texts alone, such as one that somebody has just added, can never be passed over."
    texts = {"hypothesis", "source", "reference", "summary_words", "reference_words", "source_words"}
    assert {n for n in METRICS if set(reg[n].needs) <= texts} <= set(usual) and len(usual.columns) >= 60


def test_every_value_lies_on_the_scale_that_the_unit_states(usual):
    ends = {name: reg[name].scale for name in usual if reg[name].scale}
    assert (
        len(ends) > 40
        and {
            name
            for name, (lowest, highest) in ends.items()
            if not usual[name].dropna().between(lowest - 1e-6, highest + 1e-6).all()
        }
        == set()
    )


def test_the_order_of_texts_changes_nothing(usual):
    turned = scored(USUAL.iloc[::-1].reset_index(drop=True))[0].loc[usual.index]
    pd.testing.assert_frame_equal(turned[usual.columns], usual, atol=2e-5, rtol=0)


def test_the_texts_are_left_as_they_were():
    texts = USUAL.copy(deep=True)
    scored(texts, ["rouge_l", "summac_zs"])
    pd.testing.assert_frame_equal(texts, USUAL)


AGAINST = dict(relevance="reference", consistency="source")  # What a dimension holds the text against
NOT_BEST = dict(
    judge_own_consistency="tiny-llama rates a summary; a whole bulletin is none, and gets a middling rating"
)


def oriented(values):  # Larger is better
    return values * [reg[name].sign or 1 for name in values]


@pytest.mark.parametrize("dim", AGAINST)
def test_what_it_is_compared_to_scores_better_than_a_text_about_something_else(dim):
    same, other = scored(table(list(BULLETINS[AGAINST[dim]])))[0], scored(table(NEXT))[0]
    names = [name for name in same if reg[name].dim == dim and name in other]
    gain = oriented(same[names]).mean() - oriented(other[names]).mean()
    assert set(gain.index[~(gain > 0)]) == {name for name in NOT_BEST if reg[name].dim == dim}


def test_an_empty_text_has_a_value_or_a_note_and_never_an_error():
    values, notes = scored(table([""] + list(BULLETINS["paraphrase"][1:])))
    empty = values.index[0]
    silent = [n for n in values if np.isnan(values.at[empty, n]) and not notes.at[empty, n]]
    assert silent == [] and np.isfinite(values.fillna(0).to_numpy()).all()


def test_a_list_of_one_reference_is_that_reference(usual):
    alone = scored(table(list(BULLETINS["paraphrase"]), [[r] for r in BULLETINS["reference"]]))[0]
    pd.testing.assert_frame_equal(alone[usual.columns], usual, atol=2e-5, rtol=0)


LIKELIHOODS = ("bart_score", "t5_score", "gpt_score")  # Take the mean over references, as in BARTScore
IDF = {"bertscore_f1_idf"}  # Words weigh otherwise when there are more references to count them in


def test_a_second_reference_never_lowers_a_metric_that_counts_the_best(usual):
    both = [[r, other] for r, other in zip(BULLETINS["reference"], NEXT, strict=True)]
    more = oriented(scored(table(list(BULLETINS["paraphrase"]), both))[0])[usual.columns]
    lower = (more < oriented(usual) - 2e-5).any()
    lowered = set(lower.index[lower])
    assert IDF <= lowered and all(name.startswith(LIKELIHOODS) for name in lowered - IDF)
    other = oriented(scored(table(list(BULLETINS["paraphrase"]), [[r] for r in NEXT]))[0])
    means = sorted(lowered - IDF)
    mean = (other[means] + oriented(usual)[means]) / 2
    np.testing.assert_allclose(more[means], mean, rtol=1e-4)
