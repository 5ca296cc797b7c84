"""Degraded truths: each dose has its strength, regret is that of a loop, and facts are those of tables."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from uetrust.evaluation.inference.dose import standardised
from uetrust.evaluation.prr import prr
from uetrust.papers.bulletins.inputs import CrossScores
from uetrust.papers.bulletins.world import MAIN_GENERATORS
from uetrust.papers.people import doses as doses_module
from uetrust.papers.people.doses import (
    LENGTH_DOSES,
    OWN_DOSES,
    RELIABILITIES,
    _choice_regrets,
    _dose_rows,
    _doses_of,
    _metric_rows,
    bias_costs,
    noise_losses,
    plot_doses,
    real_metric_facts,
)
from uetrust.papers.people.promises import inference_dir, stored_inference

RNG = np.random.default_rng(8)
TRUTH, LENGTH = RNG.normal(size=600), RNG.normal(size=600)
METHODS = pd.DataFrame({f"u{sd}": -TRUTH + sd * RNG.normal(size=600) for sd in (1, 2, 4)})


def test_a_dose_of_noise_is_the_correlation_that_it_leaves():
    found = _doses_of(TRUTH, LENGTH, np.arange(600) < 300)
    assert len(found) == len(RELIABILITIES) + len(LENGTH_DOSES) + len(OWN_DOSES)
    for share in RELIABILITIES:
        assert np.corrcoef(TRUTH, found["noise", share])[0, 1] == pytest.approx(share, abs=0.09)
    for dose in LENGTH_DOSES:
        moved = np.corrcoef(found["length", dose] - TRUTH, LENGTH)[0, 1]
        assert moved == pytest.approx(np.sign(dose), abs=1e-4)
    gain = found["own texts", 1.0] - TRUTH
    assert gain[:300].mean() - gain[300:].mean() == pytest.approx(1, abs=0.05) and gain.std() < 0.51
    assert not any(kind == "own texts" for kind, _ in _doses_of(TRUTH, LENGTH))


def test_regret_is_that_of_a_loop():
    metrics = np.stack([TRUTH, np.random.default_rng(1).normal(size=600), -TRUTH], 1)
    regret, error = _choice_regrets(TRUTH, metrics, METHODS.to_numpy(), 50, draws=20, seed=5)
    by_truth, rng = [prr(TRUTH, METHODS[name]).value for name in METHODS], np.random.default_rng(5)
    losses = np.zeros((20, 3))
    for i in range(20):
        at = rng.choice(600, 50, replace=False)
        for k in range(3):
            seen = [prr(metrics[at, k], METHODS[name].to_numpy()[at]).value for name in METHODS]
            losses[i, k] = max(by_truth) - by_truth[int(np.argmax(seen))]
    assert regret == pytest.approx(losses.mean(0)) and error == pytest.approx(losses.std(0) / np.sqrt(20))
    assert regret[0] < regret[1] < regret[2]


def test_rows_hold_every_dose_and_size_and_the_regret_of_any_method():
    rows = _dose_rows(TRUTH, LENGTH, METHODS, draws=5)
    assert len(rows) == 3 * (len(RELIABILITIES) + len(LENGTH_DOSES)) and set(rows["n"]) == {50, 100, 400}
    value = [prr(TRUTH, METHODS[name]).value for name in METHODS]
    assert rows["random"].unique().tolist() == pytest.approx([max(value) - np.mean(value)])
    clean = rows[(rows["kind"] == "noise") & (rows["dose"] == 1.0)]
    assert clean["correlation"].tolist() == pytest.approx([1, 1, 1])


def test_a_real_metric_keeps_its_correlation():
    metrics = pd.DataFrame(dict(good=TRUTH, bad=np.random.default_rng(1).normal(size=600)))
    rows = _metric_rows(TRUTH, metrics, METHODS, draws=5)
    assert rows["metric"].tolist() == ["good", "bad"] and rows["correlation"][0] == pytest.approx(1)
    assert rows["spread"][0] == pytest.approx(0, abs=1e-9) and rows["regret"][0] <= rows["regret"][1]


def made_bulletins(generator):
    "Texts of a made-up generator: msp and mte score the texts of all, the third method those of this one"
    k = MAIN_GENERATORS.index(generator)
    rng, n = np.random.default_rng(k), 410 + 20 * k
    truth, own_method = rng.normal(k, 1, n), ("perplexity", "sar", "lex_sim")[k]
    noise = {"msp": 1, "mte": 3, own_method: 0.1}
    uncertainty = pd.DataFrame({name: -truth + sd * rng.normal(size=n) for name, sd in noise.items()})
    quality = pd.DataFrame(dict(truth=truth, rouge_l=truth + rng.normal(size=n)))
    lengths = uncertainty.assign(output_length=rng.poisson(20 + 10 * k, n))
    return CrossScores(quality, lengths, dict(rouge_l="similarity"), pd.DataFrame())


def test_a_preference_for_own_texts_is_made_where_two_generators_are_pooled(monkeypatch):
    "The pooled set has the texts of both and the methods of both, and as a yardstick the truth alone."
    monkeypatch.setattr(doses_module, "world_scores", made_bulletins)
    rows, real = doses_module._world_doses(draws=2)
    pooled = rows[rows["set"] == "bulletins, tiny-bart and tiny-llama pooled"]
    assert sorted(zip(pooled["n"], pooled["kind"], pooled["dose"])) == sorted(
        (n, *dose)
        for n in (50, 100, 400)
        for dose in (("noise", 1.0), *(("own texts", d) for d in OWN_DOSES))
    )
    first, last = made_bulletins("tiny-bart"), made_bulletins("tiny-llama")
    truth = np.r_[first.quality["truth"], last.quality["truth"]]
    own = np.repeat([0, 1], [len(first.quality), len(last.quality)])
    for dose, part in pooled[pooled["kind"] == "own texts"].groupby("dose"):
        expected = np.corrcoef(truth, standardised(truth) + dose * own)[0, 1]
        assert part["correlation"].tolist() == pytest.approx([expected] * 3)
    value = [prr(truth, np.r_[first.choices[name], last.choices[name]]).value for name in ("msp", "mte")]
    assert pooled["random"].unique().tolist() == pytest.approx([max(value) - np.mean(value)])
    alone = rows[~rows["set"].str.contains("pooled")]
    assert set(alone["kind"]) == {"noise", "length"}
    assert list(dict.fromkeys(alone["set"])) == [f"bulletins, {name}" for name in MAIN_GENERATORS]
    assert real[["set", "metric"]].values.tolist() == [
        [name, "rouge_l"] for name in dict.fromkeys(alone["set"])
    ]


def test_a_plot_has_a_line_for_each_size_and_a_dot_for_each_metric():
    "Sets stand side by side in the given order; one metric is enough."
    doses = pd.DataFrame(
        [
            ("a", "noise", 1.0, 1.0, 50, 0.1, 0.01, 0.4),
            ("a", "noise", 0.5, 0.6, 50, 0.3, 0.02, 0.4),
            ("a", "noise", 1.0, 1.0, 100, 0.0, 0.01, 0.4),
            ("a", "noise", 0.5, 0.6, 100, 0.2, 0.01, 0.4),
            ("a", "length", 1.0, 0.7, 50, 0.9, 0.01, 0.4),
            ("b", "noise", 1.0, 1.0, 50, 0.2, 0.01, 0.5),
        ],
        columns=["set", "kind", "dose", "correlation", "n", "regret", "error", "random"],
    )
    real = pd.DataFrame(dict(set=["a", "b"], correlation=[0.3, 0.2], regret=[0.25, 0.35], n=100))
    fig = plot_doses(doses, real, ["b", "a"])
    b, a = fig.axes
    assert (b.get_title(), a.get_title(), b.get_ylabel()) == ("b", "a", "regret (PRR)")
    small, large = (one.lines[0].get_xydata().tolist() for one in a.containers)
    assert small == [[1.0, 0.1], [0.6, 0.3]] and large == [[1.0, 0.0], [0.6, 0.2]]
    (bars,) = a.containers[0].lines[2]
    assert bars.get_segments()[1][:, 1].tolist() == pytest.approx([0.3 - 1.96 * 0.02, 0.3 + 1.96 * 0.02])
    for ax, dot, random in ((a, [0.3, 0.25], 0.4), (b, [0.2, 0.35], 0.5)):
        (dots,) = (line for line in ax.lines if line.get_marker() == ".")
        assert dots.get_xydata().tolist() == [dot] and list(ax.lines[-1].get_ydata()) == [random] * 2
    words = {text.get_text() for text in a.get_legend().get_texts()}
    assert words == {"metrics, 100", "noise, 50", "noise, 100"}
    plt.close(fig)


def test_facts_are_those_of_the_stored_tables():
    doses, real = stored_inference("doses"), stored_inference("dose_metrics")
    whole = doses["set"][(doses["kind"] == "noise") & (doses["dose"] < 1)]
    noise = doses[(doses["kind"] == "noise") & doses["set"].isin(whole)]
    means = noise[noise["n"] == 400].groupby("dose")["regret"].mean()
    found = noise_losses(doses).set_index("n")
    assert found.loc[400, ["clean", "half", "tenth"]].tolist() == means[[1.0, 0.5, 0.1]].tolist()
    assert found["sets"].unique().tolist() == [noise["set"].nunique()]
    costs = bias_costs(doses)
    assert costs[["kind", "dose"]].values.tolist() == [["length", -1], ["length", 1], ["own texts", 1]]
    assert (costs["n"] == 400).all() and (costs["lowest"] <= costs["highest"]).all()
    facts = real_metric_facts(doses, real)
    assert facts.pairs == facts.more + facts.less == (real["correlation"] > 0.1).sum()


def test_a_real_metric_is_compared_with_noise_of_its_correlation():
    "Noise loses 0.2 at a correlation of 0.5, halfway between the doses; below 0.1 nothing is compared."
    noise = pd.DataFrame(dict(kind="noise", correlation=[0.0, 1.0], regret=[0.4, 0.0], n=100)).assign(set="a")
    real = pd.DataFrame(dict(set="a", correlation=[0.5, 0.5, 0.05], regret=[0.3, 0.1, 9.0], n=100))
    facts = real_metric_facts(noise, real)
    assert facts[:4] == (2, 100, 1, 1) and facts.median == pytest.approx(0)
    assert (facts.low, facts.high) == pytest.approx((-0.08, 0.08))


def test_without_a_number_of_draws_the_doses_are_made_as_the_stored_ones_were(monkeypatch):
    "The command that a stored table names takes the draws and the seed that the table names."
    stored, made = {}, []

    def tables(draws, seed):
        made.append((draws, seed))
        return pd.DataFrame(dict(dose=[1])), pd.DataFrame(dict(metric=["hter"]))

    monkeypatch.setattr(doses_module, "_world_doses", tables)
    monkeypatch.setattr(doses_module, "_people_doses", tables)
    monkeypatch.setattr(
        doses_module,
        "store_inference",
        lambda name, table, **about: stored.update({name: (list(table), about)}),
    )
    doses_module.store_doses()
    assert {name: columns for name, (columns, _) in stored.items()} == dict(
        doses=["dose"], dose_metrics=["metric"]
    )
    for name, (_, about) in stored.items():
        kept = json.loads((inference_dir() / f"{name}.json").read_text(encoding="utf-8"))
        assert about == {key: kept[key] for key in ("command", "draws", "seed")}
        assert made == [(kept["draws"], kept["seed"])] * 2
