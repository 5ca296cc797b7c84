"""The models that ship: small, safe to load, and doing what behaviour.csv says of them."""

import json

import pandas as pd
import pytest
from safetensors import safe_open

from uetrust.core.settings import root
from uetrust.data.bulletins import bulletins
from uetrust.data.checker import ERROR_TYPES, check_summaries
from uetrust.dev.training import behaviour
from uetrust.dev.training.behaviour import BEHAVIOUR, BEHAVIOUR_TARGETS, _targets_reached, model_summaries
from uetrust.dev.training.train import RECIPES
from uetrust.models.load import load_model

FOLDER = root() / "data" / "models"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/training.json"))
TABLE = pd.read_csv(FOLDER / "behaviour.csv").set_index(["model", "split", "quantity"])["value"]


def test_they_are_small_and_hold_no_pickle():
    sizes = {name: sum(file.stat().st_size for file in (FOLDER / name).iterdir()) / 1e6 for name in NAMES}
    assert max(sizes.values()) <= 8 and sum(sizes.values()) <= 30, sizes
    assert {file.suffix for file in FOLDER.rglob("*") if file.is_file()} <= {
        ".safetensors",
        ".json",
        ".csv",
        ".jinja",
        ".toml",
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_was_made_by_its_recipe_and_loads_whole(name):
    about = json.loads((FOLDER / name / "training.json").read_text())
    config, recipe = load_model(FOLDER / name, device="cpu").model.config, RECIPES[name]
    with safe_open(FOLDER / name / "model.safetensors", "pt") as weights:
        held = sum(weights.get_tensor(key).numel() for key in weights.keys() if key != "final_logits_bias")
    assert about["steps"] == recipe.steps and about["parameters"] == held
    requested = {key: value for key, value in recipe.config.items() if key not in ("id2label", "label2id")}
    assert {key: getattr(config, key) for key in requested} == requested


def test_every_model_that_ships_was_looked_at_on_both_splits():
    assert set(TABLE.index.droplevel("quantity")) == {
        (name, split) for name in NAMES for split in ("test", "shifted")
    }
    assert {name for name in NAMES if name in BEHAVIOUR_TARGETS} == set(
        _targets_reached(TABLE.reset_index())["model"]
    )


@pytest.mark.parametrize("name", [n for n in NAMES if behaviour._summarizer_errors in BEHAVIOUR[n]])
def test_greedy_summaries_err_as_often_as_the_table_says(name):
    documents = bulletins("test", 400 * behaviour.SUMMARIES_PER_JUDGEMENT)
    wrong = (
        check_summaries(list(model_summaries(load_model(FOLDER / name, device="cpu"), documents)), documents)[
            list(ERROR_TYPES)
        ]
        > 0
    )
    assert abs(wrong.any(axis=1).mean() - TABLE[name, "test", "wrong"]) <= 0.005, (
        "ten of 2,000 may differ on another machine"
    )


def test_what_ships_reaches_the_targets():
    met = _targets_reached(TABLE.reset_index())
    assert len(met) == 37 and met["met"].all(), met[~met["met"]].to_string()
