"""The opening of the README and of the report comes from the data in the repository."""

import re

import pandas as pd
import pytest

from tests.helpers.pages import page_text
from uetrust.core.settings import root
from uetrust.papers.people import overview
from uetrust.report.page import overview_figure
from uetrust.report.plots import save_figure


@pytest.fixture(scope="module")
def rows():
    return overview.stored_overview()


def test_stored_numbers_are_those_of_the_data(rows):
    found = overview.people_overview()
    keys = ["kind", "label", "series", "n"]
    assert found[keys].equals(rows[keys])
    for column in ("value", "lo", "hi"):
        assert found[column].to_numpy() == pytest.approx(rows[column].to_numpy(), abs=1e-6)


def test_every_kind_has_a_panel_a_sentence_and_a_limit(rows):
    sentences = overview.overview_sentences(rows)
    kinds = list(dict.fromkeys(rows["kind"]))
    assert list(sentences) == list(overview.OUTPUT_KINDS) == kinds
    figure = overview_figure(rows)
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        overview.OUTPUT_KINDS[kind].title for kind in kinds
    ]
    assert all(kind.limit in overview.OVERVIEW_LIMIT for kind in overview.OUTPUT_KINDS.values())


def test_a_sentence_names_the_system_in_which_token_f1_is_farthest_from_people(rows):
    mine = rows.copy()
    f1 = (mine["label"] == "Bing") & (mine["series"] == "token F1")
    mine.loc[f1, ["value", "lo", "hi"]] = 0.9, 0.8, 1.0
    facts = overview.overview_facts(mine)["answers"]
    assert (facts["system"], facts["by_f1"]) == ("Bing", "0.90 [0.80, 1.00]")
    assert (
        "differ most for Bing: 0.90 [0.80, 1.00] by token F1" in overview.overview_sentences(mine)["answers"]
    )


def between(text, mark):
    "Lines of the README between a comment and the next end"
    start = text.index(f"<!-- {mark} -->\n") + len(f"<!-- {mark} -->\n")
    return text[start : text.index("\n<!-- end -->", start)].splitlines()


def test_the_readme_states_and_shows_the_stored_numbers(rows, tmp_path):
    readme = (root() / "README.md").read_text(encoding="utf-8")
    assert between(readme, "verdict") == [overview.overview_verdict(rows)]
    assert between(readme, "findings") == [f"- {text}" for text in overview.overview_headlines(rows).values()]
    save_figure(overview_figure(rows), tmp_path / "people")
    assert (tmp_path / "people.png").read_bytes() == (root() / "docs" / "people.png").read_bytes()


def test_pages_state_the_stored_numbers(rows):
    findings = page_text("findings")
    for kind, text in overview.overview_sentences(rows).items():
        assert f"- {text} *Limit: {overview.OUTPUT_KINDS[kind].limit}.*" in findings
    assert all(overview.overview_verdict(rows) in page_text(page) for page in ("findings", "index"))


def test_the_stored_numbers_bear_the_verdict_and_the_headlines(rows):
    "A poor score looks good; a choice by people beats chance; overlap says little"
    row = rows.set_index(["kind", "label", "series"])
    system = overview.overview_facts(rows)["answers"]["system"]
    poor, good = (row.loc[("answers", system, judge)] for judge in ("people", "token F1"))
    assert poor["hi"] < 0.2 and good["lo"] > 0.4
    people, chance = (row.loc[("translations", who, "chosen by")] for who in ("people", "chance"))
    assert people["hi"] < chance["lo"]
    overlap, entailed = (
        row.loc[("summaries", name, "faithful to the article")] for name in ("ROUGE-1", "entailment")
    )
    assert overlap["hi"] < 0.3 and overlap["hi"] < entailed["lo"]
    assert "100 translations" in overview.HEADLINES["translations"] and people["n"] == 100


def test_a_verdict_is_a_claim_of_few_words_and_every_headline_has_its_limit(rows):
    for claim in overview.overview_verdict(rows).split(". ")[:2]:
        assert len(claim.split()) <= 25 and not re.search(r"[\d\[(]", claim), claim
    for kind, text in overview.overview_headlines(rows).items():
        claim, limit = text.split(" *Limit: ")
        assert limit == f"{overview.OUTPUT_KINDS[kind].limit}.*" and not re.match(r"\W*\d", claim)


def test_every_set_has_the_same_columns_and_a_note_where_a_value_is_missing(monkeypatch):
    def one_column(name, systems):
        return pd.DataFrame({name: [0] for name in overview.PEOPLE_SET_COLUMNS if name != "note"})

    monkeypatch.setitem(overview.PEOPLE_SETS, "own", one_column)
    assert list(overview.people_set("own")) == overview.PEOPLE_SET_COLUMNS
    found = overview.people_set("evouna-nq", ("gpt4",))
    missing = found[found["value"].isna()]
    assert set(missing["metric"]) == {"exact_match"} and set(missing["note"]) == {
        "constant quality: there is nothing to rank"
    }
    assert set(found["documents"]) == {3019} and set(found["n"]) == {3020}


def test_unknown_sets_and_systems_are_named():
    with pytest.raises(ValueError, match="no set 'nq'; there are evouna-nq, "):
        overview.people_set("nq")
    with pytest.raises(ValueError, match="leave the system out"):
        overview.people_set("xsum", ("BERTS2S",))
