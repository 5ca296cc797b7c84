"""The stored large run: what it says of itself, by which models, and the README."""

import json

import numpy as np
import pandas as pd

from uetrust.core.registry import reg
from uetrust.core.settings import root
from uetrust.papers.bulletins import world


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


def test_the_readme_says_and_shows_what_the_large_run_found(tmp_path):
    from uetrust.report.plots import plot_interval_panels, save_figure

    text, rows = world.world_headline()
    readme = (root() / "README.md").read_text(encoding="utf-8")
    assert f"<!-- world -->\n{text}\n<!-- end -->" in readme
    save_figure(
        plot_interval_panels(rows, "PRR lost by choosing a method with 100 texts"), tmp_path / "regret"
    )
    assert (tmp_path / "regret.png").read_bytes() == (root() / "docs" / "regret.png").read_bytes()
