"""The stored large run: what it says of itself, by which models, and the page of findings."""

import json
import re

import numpy as np
import pandas as pd

from tests.helpers.pages import page_text
from uetrust.core.registry import reg
from uetrust.core.settings import root
from uetrust.papers.bulletins import world
from uetrust.papers.bulletins.cross import RANDOM_METHOD


# The large run
def test_the_stored_tables_are_what_about_says():
    about = world._world_about()
    assert set(world.MAIN_GENERATORS) <= set(about["generators"]) and about["command"] == "make world"
    for name, values in about["generators"].items():
        path = world.world_dir() / f"{name}.parquet"
        table = pd.read_parquet(path)
        assert table.shape == (values["texts"], values["scores"]) and values["texts"] >= (
            2000 if name in world.MAIN_GENERATORS else 1000
        )
        assert table["truth"].between(0, 1).all() and path.stat().st_size < 3e6
        assert {reg[column].kind for column in table if column != "truth"} == {"ue", "nlg"}


def test_the_large_run_is_by_the_shipped_models():
    "The weights of the large run are the shipped ones"
    import hashlib

    about = json.loads((world.world_dir() / "about.json").read_text(encoding="utf-8"))["generators"]
    for name in world.MAIN_GENERATORS:
        weights = (root() / "data" / "models" / name / "model.safetensors").read_bytes()
        assert about[name]["model"] == hashlib.sha256(weights).hexdigest()


def test_a_score_with_gaps_is_named_and_left_out():
    table = pd.DataFrame(dict(truth=[0.0, 1, 1, 0] * 50, msp=range(200), mte=[np.nan] * 9 + [1.0] * 191))
    table["rouge_l"] = 0.5
    complete, left_out = world._complete_scores(table)
    assert list(complete) == ["truth", "msp"]
    assert left_out["why"].tolist() == ["undefined for 4.5%", "the same for all"]


def test_the_page_of_findings_says_what_the_large_run_found():
    facts, rows = world.world_losses()
    text = page_text("findings")
    assert f"studies of {facts.n} texts" in text and f"median of {facts.families} families" in text
    assert f"{facts.studies} disjoint studies in {facts.texts:,} texts" in text and world.WORLD_LIMIT in text
    for name, losses in facts.losses.iterrows():
        assert re.search(r"\s+".join(map(re.escape, [name, *map(str, losses)])), text)
    by = rows.set_index(["judge", "group"])
    for name in facts.losses.index:  # What the first sentence claims
        metric, truth, chance = (
            by.loc[(judge, name)] for judge in ("the median family", "truth", RANDOM_METHOD)
        )
        assert metric["hi"] < chance["lo"] and metric["lo"] > truth["hi"]
