"""Cards of methods: every need is explained, and what the demo measured is shown."""

import pandas as pd
import pytest

from tests.helpers.measured import warn_unmeasured
from tests.helpers.registered import SCORES, reg
from uetrust.core.settings import profile, root
from uetrust.report.cards import MEASURED_FILE, comment_by_parameter, score_card


# Documentation
@pytest.mark.parametrize("name", SCORES)
def test_every_need_and_the_result_are_explained_on_the_card(name):
    comments, e = comment_by_parameter(reg[name].fn), reg[name]
    assert set(e.needs) | {"return"} <= set(comments), "a parameter without a comment"
    assert e.summary and e.cite and e.unit
    assert score_card(name).startswith(f"# {name}\n\n{e.summary}") and "**Costs**" in score_card(name)


@pytest.mark.parametrize("kind", ["ue", "nlg"])
def test_every_card_says_what_each_need_is(kind):
    lacking = [
        n
        for n, e in reg.of(kind).items()
        if not all(comment_by_parameter(e.fn).get(k) for k in (*e.needs, "return"))
    ]
    assert len(reg.of(kind)) > 50 and not lacking


def test_the_cards_say_what_the_demo_measured_about_every_method():
    "After a new method or another demo: make cards"
    table = pd.read_csv(root() / MEASURED_FILE)
    warn_unmeasured(SCORES, table["method"], "make cards")
    assert not table.duplicated(["generator", "method"]).any() and table["generator"].nunique() == len(
        profile("demo")["banks"].split()
    )
    assert (
        (table["lacks"].isna() | table["prr"].isna()).all()
        and "**Measured**" in score_card("msp")
        and "gives" in score_card("mcnse_lmp")
    )


def test_the_card_of_a_method_of_several_systems_says_what_it_costs():
    assert "other_embeddings: 1+M texts read by an encoder" in score_card("other_systems_cosine", reg)
    assert "systems: 1 answer of every system" in score_card("answer_length", reg)
    assert "embedding: what `uetrust.scoring.metrics` makes" in score_card("embedding_cosine", reg)
