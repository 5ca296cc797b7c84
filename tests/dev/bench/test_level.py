"Level of every p and interval: a part of the stored table is made anew, a twentieth or less"

import numpy as np
import pandas as pd
import pytest

from uetrust.dev.bench import level


def stored():
    return level._stored_levels().set_index(["check", "quality", "texts", "documents"])


def tasks(part):
    studies = int(stored()["studies"].max())
    return level._level_tasks(studies // part, seed=44)


@pytest.mark.parametrize("at", range(len(level._null_worlds()) + len(level._label_worlds())))
def test_a_part_agrees_with_the_stored_table_and_with_what_is_promised(at, draws):
    function, *arguments = tasks(draws(20, 200))[at]
    found = pd.DataFrame(function(*arguments)).set_index(["check", "quality", "texts", "documents"])
    known = stored().loc[found.index]
    both = (found["studies"] > 0) & (known["studies"] > 0)
    found, known = found[both], known[both]
    pooled = (found["level"] * found["studies"] + known["level"] * known["studies"]) / (
        found["studies"] + known["studies"]
    )
    error = np.sqrt(np.maximum(pooled, 0.002) * (1 / found["studies"] + 1 / known["studies"]))
    assert (abs(found["level"] - known["level"]) <= 4.5 * error).all()
    promised = level.HIGHEST_LEVEL
    spread = 4.5 * np.sqrt(promised * (1 - promised) / found["studies"])
    assert (found["level"] <= promised + spread).all()


def test_the_stored_table_holds_every_world_and_no_level_is_too_high():
    table = level._stored_levels()
    worlds = table.groupby(["quality", "texts", "documents"]).ngroups
    assert worlds == len(level._null_worlds()) + len(level._label_worlds()) - 10, "ten are in both"
    assert set(table["check"]) == {*level.CHECKS, "prr_from_labels", "prr_difference_from_labels"}
    off = level._outside_levels(table)
    assert "too high" not in set(off["reason"]), off[off["reason"] == "too high"]


def test_a_wrong_test_is_seen_to_be_too_high():
    "Documents that are not named: p by rows finds something in far more than 5 % of studies."
    world = level._NullWorld("normal", (16,) * 10, "", 0.5, 0.5)
    rows = pd.DataFrame(level._level_rows(world, 200, (0,)))
    off = level._outside_levels(rows)
    assert "too high" in set(off.loc[off["check"] == "p of prr", "reason"])


def test_the_table_is_the_same_for_any_number_of_processes():
    world = level._NullWorld("5 % errors", (5,) * 6, "6 of 5", 0.5, 0.5)
    tasks = [(level._level_rows, world, 6, (0, i)) for i in range(3)]
    one, two = level._level_table(tasks), level._level_table(tasks, workers=2)
    pd.testing.assert_frame_equal(one, two)


def test_the_command_makes_and_prints_the_table(monkeypatch, tmp_path, capsys):
    from uetrust.dev.bench.parts import bench_command
    from uetrust.papers.people import promises

    monkeypatch.setattr(promises, "inference_dir", lambda: tmp_path)
    monkeypatch.setattr(level, "_null_worlds", lambda: [level._NullWorld("normal", (1,) * 30, "")])
    monkeypatch.setattr(level, "_label_worlds", lambda: [level._LabelWorld("normal", 50)])
    bench_command(["level", "--studies", "8", "--out", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "p of prr" in shown and "levels (a check in a world" in shown and (tmp_path / "level.csv").exists()
