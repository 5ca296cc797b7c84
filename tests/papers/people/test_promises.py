"""Promises with the wrong label: risks by a loop, a row by hand, tables kept with their command."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from uetrust.evaluation.inference.guarantee import rejection_guarantee
from uetrust.papers.people import promises
from uetrust.papers.people.promises import (
    _promise_row,
    _promise_table,
    _true_risks,
    broken_facts,
    inference_dir,
    label_ranges,
    own_label_facts,
    plot_promises,
    store_inference,
    stored_inference,
    worst_share,
)

RNG = np.random.default_rng(2)
TRUTH = RNG.normal(size=800)
UNSURE = pd.Series(-TRUTH + RNG.normal(size=800))
BAD = pd.DataFrame(dict(truth=worst_share(TRUTH, 0.3), judge=worst_share(TRUTH + RNG.normal(size=800), 0.3)))


def test_as_many_are_bad_as_the_share_says_and_ties_go_by_row():
    assert worst_share([3, 1, 2, 1], 0.5).tolist() == [False, True, False, True]
    assert worst_share([1, 1, 1, 1], 0.25).tolist() == [True, False, False, False]
    assert BAD.sum().tolist() == [240, 240]


def test_the_risk_of_a_threshold_is_that_of_the_texts_it_keeps():
    bad, u = BAD["truth"].to_numpy(), UNSURE.to_numpy()
    thresholds = np.array([*np.quantile(u, [0.1, 0.5, 1.0]), np.nan, 0.0, u[17]])
    expected = [bad[u <= t].mean() if (u <= t).any() else None for t in thresholds]
    found = _true_risks(bad, u, thresholds)
    assert np.isnan(found[3]) and found[[0, 1, 2, 5]].tolist() == pytest.approx(
        [expected[i] for i in (0, 1, 2, 5)]
    )


@pytest.mark.parametrize("label", ["truth", "judge"])
def test_a_row_counts_what_calibration_sets_promise_and_break(label):
    row = _promise_row(BAD, UNSURE, label, 200, 0.18, draws=30, seed=9)
    rng, risks, made = np.random.default_rng(9), {"truth": [], label: []}, 0
    for _ in range(30):
        at = rng.choice(800, 200, replace=False)
        threshold = rejection_guarantee(
            ~BAD[label].to_numpy()[at], UNSURE.to_numpy()[at], 0.18, 0.1
        ).threshold
        made += not np.isnan(threshold)
        for name in risks:
            kept = BAD[name][UNSURE <= threshold]
            risks[name].append(kept.mean() if len(kept) else 0)
    assert row["promised"] == made / 30 and row["base"] == 0.3
    assert row["broken_own"] == np.mean(np.array(risks[label]) > 0.18)
    assert row["broken_truth"] == np.mean(np.array(risks["truth"]) > 0.18)


def test_a_table_has_every_label_and_few_labels_of_the_truth():
    table = _promise_table(dict(mine=(BAD, UNSURE)), n=300, draws=4)
    assert table[["label", "n"]].to_numpy().tolist() == [
        ["truth", 300],
        ["judge", 300],
        ["truth", 100],
        ["truth", 200],
    ]
    assert (table["alpha"] == 0.18).all() and (table["set"] == "mine").all()


def test_what_is_stored_says_which_command_made_it(tmp_path, monkeypatch):
    monkeypatch.setattr(promises, "inference_dir", lambda: tmp_path)
    path = store_inference("mine", BAD.head(3), "uetrust bench --part mine", draws=4)
    about = json.loads(path.with_suffix(".json").read_text())
    assert about["command"] == "uetrust bench --part mine" and about["draws"] == 4
    assert set(about["versions"]) == {"numpy", "pandas", "scipy"}
    assert stored_inference("mine").equals(BAD.head(3).astype(stored_inference("mine").dtypes))
    with pytest.raises(FileNotFoundError, match=r"other.csv is not there; stored are .*mine"):
        stored_inference("other")


def test_the_facts_name_the_worst_of_the_stored_rows():
    rows = stored_inference("guarantee")
    own, broken, ranges = own_label_facts(rows), broken_facts(rows), label_ranges(rows)
    full = rows[rows["n"] == rows["n"].max()]
    metrics = full[~full["label"].isin(["truth", "people"])]
    worst = metrics.loc[metrics["broken_truth"].idxmax()]
    assert broken.worst.equals(worst) and broken.truths == full["set"].nunique()
    assert (broken.often, broken.metrics) == ((metrics["broken_truth"] > 0.1).sum(), len(metrics))
    assert len(broken.where) == metrics["set"][metrics["broken_truth"] > 0.1].nunique()
    assert (own.combinations, own.sets) == (len(full), full["set"].nunique())
    assert own.highest == full["broken_own"].max() and own.error == pytest.approx(0.3 / np.sqrt(own.draws))
    assert ranges["n"].tolist() == [100, 200, 500] and ranges["promised"].str.fullmatch(r"\d+% to \d+%").all()


def test_a_range_of_one_value_is_one_number():
    rows = _promise_table(dict(mine=(BAD, UNSURE)), n=300, draws=4)
    few = rows[(rows["n"] == 100) & (rows["label"] == "truth")].iloc[0]
    found = label_ranges(rows).set_index("n").loc[100]
    assert found["kept"] == f"{few['kept']:.0%}" and found["broken"] == f"{few['broken_truth']:.1%}"


def test_without_a_number_of_draws_the_promises_are_made_as_the_stored_ones_were(monkeypatch):
    "The command that a stored table names takes the draws and the seed that the table names."
    stored, made = {}, []
    monkeypatch.setattr(promises, "_world_labels", lambda name: name)
    monkeypatch.setattr(promises, "_people_labels", lambda pair: pair)
    monkeypatch.setattr(promises, "_promise_table", lambda sets, **given: made.append((set(sets), given)))
    monkeypatch.setattr(
        promises,
        "store_inference",
        lambda name, table, *command, **about: stored.update({name: (*command, about)}),
    )
    promises.store_promises()
    kept = json.loads((inference_dir() / "guarantee.json").read_text(encoding="utf-8"))
    given = {key: kept[key] for key in ("draws", "seed")}
    assert stored == dict(guarantee=(kept["command"], given))
    assert made == [(set(stored_inference("guarantee")["set"]), given)]


def test_a_plot_has_a_row_for_each_set_with_a_mark_for_each_label():
    "From the largest calibration sets alone: metrics by the truth and by themselves, the truth as a diamond."
    rows = pd.DataFrame(
        [
            ("one", "truth", 500, 0.05, 0.05),
            ("one", "judge", 500, 0.3, 0.04),
            ("one", "other", 500, 0.6, 0.06),
            ("two", "people", 500, 0.08, 0.08),
            ("two", "judge", 500, 0.9, 0.02),
            ("two", "people", 100, 0.5, 0.5),
        ],
        columns=["set", "label", "n", "broken_truth", "broken_own"],
    ).assign(delta=0.1)
    ax = plot_promises(rows).axes[0]
    marks = {mark: [] for mark in ("o", "D", "|")}
    for line in ax.lines[:-1]:
        marks[line.get_marker()] += [tuple(point) for point in line.get_xydata()]
    assert marks["o"] == [(0.3, 0), (0.6, 0), (0.9, 1)] and marks["D"] == [(0.05, 0), (0.08, 1)]
    assert [x for x, _ in marks["|"]] == [0.04, 0.06, 0.02]
    assert [round(y) for _, y in marks["|"]] == [0, 0, 1]
    assert list(ax.lines[-1].get_xdata()) == [0.1, 0.1]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["one", "two"] and ax.yaxis_inverted()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    shown = dict(zip(names, (handle.get_marker() for handle in ax.get_legend().legend_handles)))
    assert shown == {"metric, by the truth": "o", "metric, by itself": "|", "truth or people": "D"}
    plt.close(ax.figure)
