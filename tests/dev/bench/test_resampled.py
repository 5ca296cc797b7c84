"Intervals and p-values on outputs that people judged: the stored table holds, and a wrong one is seen."

from functools import partial

import numpy as np
import pandas as pd
import pytest

from uetrust.dev.bench import resampled
from uetrust.evaluation.prr import prr
from uetrust.papers.people.promises import stored_inference

HIGHEST = 0.10  # Level of an interval that draws no more than 80 units


@pytest.fixture(scope="module")
def stored():
    return stored_inference("resampled")


def test_the_stored_table_has_every_world_and_none_is_far_from_what_is_promised(stored):
    assert list(stored) == resampled.RESAMPLED_COLUMNS
    names = [world.name for world in resampled.resampled_worlds()]
    assert list(dict.fromkeys(stored["texts"])) == list(dict.fromkeys(names))
    assert (stored["level"] - 3 * stored["mc"] < HIGHEST).all()
    p = stored[stored["check"] == "p of PRR"]
    assert (p["level"] - 3 * p["mc"] < 0.065).all() and len(p) == 11


def test_a_part_made_anew_agrees_with_the_stored_table(stored, draws):
    world = resampled.resampled_worlds()[0]
    found = pd.DataFrame(resampled.resampled_rows(world, draws(100, 1000), (7,))).set_index("check")
    known = stored[stored["texts"] == world.name].set_index("check")
    pooled = (found["level"] + known["level"]) / 2
    error = np.sqrt(pooled.clip(lower=0.01) * (1 / found["studies"] + 1 / known["studies"]))
    assert (abs(found["level"] - known["level"]) <= 4 * error).all()


def test_answers_of_five_systems_as_if_they_were_of_one_err_far_too_often(monkeypatch):
    "Questions that are not named: the p of pooled answers finds something in far more than 5 % of studies."
    monkeypatch.setattr(resampled, "prr", lambda *scores, document: prr(*scores))
    pooled = partial(resampled.answer_study, systems=resampled.EVOUNA_SYSTEMS, size=60)
    world = resampled.ResampledWorld("pooled", "60 questions", pooled)
    found = pd.DataFrame(resampled.resampled_rows(world, 150, (0,))).set_index("check")["level"]
    assert found["p of PRR"] > 0.12 and found["interval of PRR"] > 0.1


def test_a_study_errs_where_its_interval_misses(monkeypatch):
    rng = np.random.default_rng(0)
    texts = resampled._answer_texts(("gpt4",), "human")
    monkeypatch.setattr(resampled, "_answer_texts", lambda *about: texts._replace(value=2.0))
    assert resampled.answer_study(rng, size=100)["interval of PRR"]
    persons, known = resampled._facts("ChatGPT")
    monkeypatch.setattr(resampled, "_facts", lambda system: (persons, known + 3))
    assert all(resampled.fact_study(rng, "ChatGPT", draws=20).values())


def test_the_command_makes_and_prints_the_table(monkeypatch, tmp_path, capsys):
    from uetrust.papers.people import promises

    monkeypatch.setattr(promises, "inference_dir", lambda: tmp_path)
    worlds = resampled.resampled_worlds()
    monkeypatch.setattr(resampled, "resampled_worlds", lambda: [worlds[0], worlds[-1]])
    (path,) = resampled.bench_resampled(studies=4)
    assert path == tmp_path / "resampled.csv" and path.exists()
    output = capsys.readouterr().out
    assert "interval of Spearman" in output and "Studies drawn from outputs that people judged" in output
