"""Regret of a choice: computed again with plain loops; yardsticks, families, and the stored large run."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.registry import reg
from uetrust.evaluation.prr import prr
from uetrust.papers.bulletins import cross, inputs, regret
from uetrust.statistics.scores import load_scores

load_scores()


@pytest.fixture(scope="module")
def scores():
    "120 texts: a truth, three metrics of falling worth, four methods"
    rng = np.random.default_rng(3)
    truth = pd.Series(rng.random(120), name="truth")
    quality = pd.DataFrame({f"m{k}": truth + k * rng.normal(size=120) for k in range(3)})
    uncertainty = pd.DataFrame({f"u{k}": -truth + (k + 1) * rng.normal(size=120) * 0.3 for k in range(4)})
    return quality, uncertainty, truth


def by_hand(scores, groups, left_out=None):
    "Mean regret over studies, by loops: what the best method on the other texts has more than the choice"
    quality, uncertainty, truth = scores
    losses = {name: [] for name in [*quality, "truth", cross.RANDOM_METHOD]}
    for k, study in enumerate(groups):
        if k == left_out:
            continue
        gone = set(study) | set(groups[left_out] if left_out is not None else [])
        rest = [i for i in range(len(truth)) if i not in gone]
        worth = {c: prr(truth[rest], uncertainty.loc[rest, c]).value for c in uncertainty}
        for name, values in [*quality.items(), ("truth", truth)]:
            seen = {c: prr(values[study], uncertainty.loc[study, c]).value for c in uncertainty}
            losses[name].append(max(worth.values()) - worth[max(seen, key=seen.get)])
        losses[cross.RANDOM_METHOD].append(max(worth.values()) - np.mean(list(worth.values())))
    return {name: np.mean(values) for name, values in losses.items()}


def test_the_regret_is_that_of_a_loop_over_disjoint_studies(scores):
    found = regret._choice_regret(*scores, n=20, seed=7)
    order = np.random.default_rng(7).permutation(120)
    groups = [sorted(order[k * 20 : (k + 1) * 20]) for k in range(6)]
    assert found.mean.to_dict() == pytest.approx(by_hand(scores, groups), abs=1e-12)
    assert found.left_out.iloc[2].to_dict() == pytest.approx(by_hand(scores, groups, 2), abs=1e-12)
    assert (found.studies, found.n, found.texts) == (6, 20, 120)


def test_the_interval_of_a_mean_covers_its_expectation():
    "95 % intervals of 80 worlds: the regret of a random draw, whose expectation a million texts show"
    inside = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        truth = pd.Series(rng.random(200))
        uncertainty = pd.DataFrame({k: -truth + k * rng.normal(size=200) for k in (0.5, 1.0)})
        found = regret._choice_regret(pd.DataFrame(dict(m=truth)), uncertainty, truth, n=40, seed=seed)
        lo, hi = regret._regret_interval(found.mean[cross.RANDOM_METHOD], found.left_out[cross.RANDOM_METHOD])
        inside.append(lo <= 0.1144 <= hi)
    assert 0.87 <= np.mean(inside) <= 1


def test_equal_methods_share_a_choice():
    weights = cross.choice_weights(np.array([[0.5, np.nan], [0.5, 0.1], [0.2, 0.1]]))
    assert weights[:, 0].tolist() == [0.5, 0.5, 0] and np.isnan(weights[:, 1]).all()


def test_few_studies_have_no_interval(scores):
    table = regret.regret_table(regret._choice_regret(*scores, n=60))
    assert table["lo"].isna().all() and table["regret"].notna().all()
    facts = regret.regret_facts(dict(x=table))
    assert not facts.has_intervals and "[" not in facts.losses.at["x", "metric"]
    assert (facts.n, facts.studies, facts.texts) == (60, 2, 120)


def test_variants_of_one_idea_have_one_vote():
    names = ["rouge_1", "rouge_2", "bart_score", "mine"]
    assert cross.metric_families(names).tolist() == ["overlap", "overlap", "likelihood", "mine"]
    mean = pd.Series([0.1, 0.3, 0.4, 0.6, 0.0, 0.5], [*names, "truth", cross.RANDOM_METHOD])
    table = regret.regret_table(regret.StudyRegret(mean, mean.to_frame().T.iloc[:0], 9, 2, 20))
    losses = table.set_index("judge")["regret"]
    assert losses["overlap"] == pytest.approx(0.2) and losses["the median family"] == pytest.approx(0.4)


def test_baselines_are_never_chosen():
    truth = pd.Series(np.random.default_rng(0).random(40), name="truth")
    tidy = [
        pd.DataFrame(dict(sample=truth.index, name=name, value=values))
        for name, values in (("output_length", -truth), ("msp", truth), ("mte", truth**2 - truth))
    ]
    metric = pd.DataFrame(dict(sample=truth.index, name="rouge_l", value=truth))
    paired = inputs.paired_scores(pd.concat(tidy), metric, truth)
    assert list(paired.uncertainty) == ["output_length", "msp", "mte"]
    assert list(paired.choices) == ["msp", "mte"]
    assert set(inputs.cross_picks(paired, inputs.cross_prr(paired))["pick"]) == {"mte"}
    assert {name for name in reg if reg[name].role == "baseline"} == {
        "answer_length",
        "output_length",
        "source_length",
        "chance",
        "claim_content_words",
        "claim_position",
        "token_count",
    }
