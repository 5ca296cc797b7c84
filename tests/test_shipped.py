"""The models that ship: small, safe to load, and doing what behaviour.csv says of them."""

import json

import pandas as pd
import pytest
from safetensors import safe_open

from uetrust.core.settings import root
from uetrust.data.bulletins import bulletins
from uetrust.data.checker import ERRORS, judge
from uetrust.models.load import load
from uetrust.training import behaviour
from uetrust.training.behaviour import BEHAVIOUR, TARGETS, reached, summaries
from uetrust.training.train import RECIPES

FOLDER = root() / "data" / "models"
NAMES = sorted(p.parent.name for p in FOLDER.glob("*/training.json"))
TABLE = pd.read_csv(FOLDER / "behaviour.csv").set_index(["model", "split", "quantity"])["value"]


def test_they_are_small_and_hold_no_pickle():
    sizes = {n: sum(f.stat().st_size for f in (FOLDER / n).iterdir()) / 1e6 for n in NAMES}
    assert max(sizes.values()) <= 8 and sum(sizes.values()) <= 30, sizes
    assert {f.suffix for f in FOLDER.rglob("*") if f.is_file()} <= {".safetensors", ".json", ".csv", ".jinja"}


@pytest.mark.parametrize("name", NAMES)
def test_each_was_made_by_its_recipe_and_loads_whole(name):
    about, m = json.loads((FOLDER / name / "training.json").read_text()), load(FOLDER / name, device="cpu")
    with safe_open(FOLDER / name / "model.safetensors", "pt") as f:
        held = sum(f.get_tensor(k).numel() for k in f.keys() if k != "final_logits_bias")
    assert about["steps"] == RECIPES[name].steps and about["parameters"] == held
    assert {
        k: getattr(m.model.config, k) for k in RECIPES[name].config if k not in ("id2label", "label2id")
    } == {k: v for k, v in RECIPES[name].config.items() if k not in ("id2label", "label2id")}


def test_every_model_that_ships_was_looked_at_on_both_splits():
    assert set(TABLE.index.droplevel("quantity")) == {(n, s) for n in NAMES for s in ("test", "shifted")}
    assert {n for n in NAMES if n in TARGETS} == set(reached(TABLE.reset_index())["model"])


@pytest.mark.parametrize("name", [n for n in NAMES if behaviour.summarizing in BEHAVIOUR[n]])
def test_greedy_summaries_err_as_often_as_the_table_says(name):
    b = bulletins("test", 400 * behaviour.RARE)
    wrong = judge(list(summaries(load(FOLDER / name, device="cpu"), b)), b)[list(ERRORS)] > 0
    assert abs(wrong.any(axis=1).mean() - TABLE[name, "test", "wrong"]) <= 0.005, (
        "ten of 2,000 may differ on another machine"
    )


def test_what_ships_reaches_the_targets():
    met = reached(TABLE.reset_index())
    assert len(met) == 37 and met["met"].all(), met[~met["met"]].to_string()
