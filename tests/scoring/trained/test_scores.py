"""Scores out of fold of a user's table, and scores of another generator."""

import numpy as np
import pandas as pd
import pytest

from uetrust.scoring.trained.features import TRAINED_METHODS
from uetrust.scoring.trained.scores import trained_scores, transferred_scores
from uetrust.scoring.user_scores import read_scores


@pytest.fixture
def made():
    "(features, quality, source): two texts about each of 60 sources"
    rng = np.random.default_rng(0)
    names = [f"t{i}" for i in range(120)]
    quality = pd.Series(rng.normal(size=120), names)
    noise = rng.normal(size=(120, 3))
    features = pd.DataFrame(noise - quality.to_numpy()[:, None] * (1, 0, 0), names, ["a", "b", "c"])
    return features, quality, pd.Series(np.arange(120) // 2, names)


def test_a_file_of_scores_gives_an_ensemble_with_an_honest_prr(made, tmp_path):
    features, quality, source = made
    path = tmp_path / "scores.csv"
    features.assign(human=quality, document=source.astype(str)).rename_axis("sample").to_csv(path)
    table = read_scores(path, "sample")
    for below in (0, None):
        found = trained_scores(
            table[["a", "b", "c"]], table["human"], below=below, document=table["document"]
        )
        assert found.prr.value > 0.4 > found.prr.null and found.prr.n == 120 and found.notes == ()
        assert list(found.scores.index) == list(table.index)
        assert all(len(set(found.folds[source == one])) == 1 for one in set(source))


@pytest.mark.parametrize("name", TRAINED_METHODS)
def test_every_method_finds_what_is_there(made, name):
    features, quality, source = made
    far = (
        features.assign(a=features["a"] * 3 + np.sign(features["a"]) * 3) if name == "haloscope" else features
    )
    target = dict(entropy=-quality) if name == "semantic_entropy_probe" else dict(below=0)
    known = -(far["a"].abs()) if name == "haloscope" else quality
    target |= dict(below=known.median()) if name == "haloscope" else {}
    found = trained_scores(far, known, name, document=source, **target)
    assert found.prr.value > found.prr.null, found


def test_a_chance_result_says_so(made):
    features, quality, source = made
    shuffled = pd.Series(np.random.default_rng(1).permutation(quality), quality.index)
    found = trained_scores(features, shuffled, below=0, document=source)
    assert "is within +-" in found.notes[0] and "chance" in found.notes[0]


def test_missing_stays_missing(made):
    features, quality, source = made
    features.loc["t5", "b"], quality["t7"] = np.nan, np.nan
    found = trained_scores(features, quality, below=0, document=source)
    assert list(found.scores.index[found.scores.isna()]) == ["t5", "t7"] and found.prr.n == 118
    assert found.notes == ("2 of 120 texts lack a feature, a label or a source and have no score",)


def test_what_a_method_cannot_learn_is_named(made):
    features, quality, _ = made
    with pytest.raises(ValueError, match="saplma learns from right and wrong texts: say below which quality"):
        trained_scores(features, quality, "saplma")
    with pytest.raises(ValueError, match="semantic_entropy_probe learns semantic entropy: give entropy="):
        trained_scores(features, quality, "semantic_entropy_probe")
    with pytest.raises(LookupError, match="no trained method 'probe'"):
        trained_scores(features, quality, "probe")


def test_another_generator_is_scored_where_the_features_are_the_same(made):
    features, quality, source = made
    found = transferred_scores(features, quality, features.iloc[::-1] + 1, below=0, document=source)
    assert found.corr(quality[::-1], method="spearman") < -0.4
    gap = transferred_scores(
        features, quality, features.mask(features.index.to_series() == "t3", axis=0), below=0
    )
    assert list(gap.index[gap.isna()]) == ["t3"]
    with pytest.raises(ValueError, match=r"3 features \(a, b, c\), and the other texts have 2 \(a, c\)"):
        transferred_scores(features, quality, features[["a", "c"]], below=0)
