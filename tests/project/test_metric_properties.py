"""Laws that every quality metric keeps, over the registry: a metric that is added is held to them at once."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.laws import check_law
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
    alone = {n for n in METRICS if set(reg[n].needs) <= texts}
    assert not alone - set(usual) and len(usual.columns) >= 60


def test_every_value_lies_on_the_scale_that_the_unit_states(usual):
    ends = {name: reg[name].scale for name in usual if reg[name].scale}
    outside = {
        f"{name} goes from {usual[name].min():g} to {usual[name].max():g}, its unit is {reg[name].unit!r}"
        for name, (lowest, highest) in ends.items()
        if not usual[name].dropna().between(lowest - 1e-6, highest + 1e-6).all()
    }
    assert len(ends) > 40 and outside == set(), "correct the unit in the decorator, or the formula"


def test_the_order_of_texts_changes_nothing(usual):
    turned = scored(USUAL.iloc[::-1].reset_index(drop=True))[0].loc[usual.index]
    pd.testing.assert_frame_equal(turned[usual.columns], usual, atol=2e-5, rtol=0)


def test_the_texts_are_left_as_they_were():
    texts = USUAL.copy(deep=True)
    scored(texts, ["rouge_l", "summac_zs"])
    pd.testing.assert_frame_equal(texts, USUAL)


AGAINST = dict(relevance="reference", consistency="source")  # What a dimension holds the text against


def oriented(values):  # Larger is better
    return values * [reg[name].sign or 1 for name in values]


@pytest.mark.parametrize("dim", AGAINST)
def test_what_it_is_compared_to_scores_better_than_a_text_about_something_else(dim):
    same, other = scored(table(list(BULLETINS[AGAINST[dim]])))[0], scored(table(NEXT))[0]
    names = [name for name in same if reg[name].dim == dim and name in other]
    gain = oriented(same[names]).mean() - oriented(other[names]).mean()
    for name in gain.index:
        check_law(reg[name], "copy_may_lose", not gain[name] > 0)


def test_an_empty_text_has_a_value_or_a_note_and_never_an_error():
    values, notes = scored(table([""] + list(BULLETINS["paraphrase"][1:])))
    empty = values.index[0]
    silent = [n for n in values if np.isnan(values.at[empty, n]) and not notes.at[empty, n]]
    assert silent == [] and np.isfinite(values.fillna(0).to_numpy()).all()


def test_a_list_of_one_reference_is_that_reference(usual):
    alone = scored(table(list(BULLETINS["paraphrase"]), [[r] for r in BULLETINS["reference"]]))[0]
    pd.testing.assert_frame_equal(alone[usual.columns], usual, atol=2e-5, rtol=0)


def test_a_second_reference_never_lowers_a_metric_that_does_not_take_their_mean(usual):
    both = [[r, other] for r, other in zip(BULLETINS["reference"], NEXT, strict=True)]
    more = oriented(scored(table(list(BULLETINS["paraphrase"]), both))[0])[usual.columns]
    other = oriented(scored(table(list(BULLETINS["paraphrase"]), [[r] for r in NEXT]))[0])
    for name, one in oriented(usual).items():
        if (more[name] < one - 2e-5).any() and not reg[name].exceptions.get("other_texts_matter"):
            of_next = other[name] if name in other else one
            np.testing.assert_allclose(
                more[name],
                (of_next + one) / 2,
                rtol=1e-4,
                err_msg=f"{name} falls with a second reference, and is not the mean over both. It should be "
                "the best. If it depends on other texts, say so in its decorator: other_texts_matter='...'",
            )
