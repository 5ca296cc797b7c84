"""Entropies from lists of the likeliest tokens, and what they are worth by the length of the list."""

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.prr import prr_value
from uetrust.papers.improvements import list_lengths as ll


def made_lists(n=60, vocabulary=30, seed=0):
    "Texts whose distributions are flatter the worse they are, and their quality"
    rng = np.random.default_rng(seed)
    truth = pd.Series(rng.normal(size=n), index=[f"t{i}" for i in range(n)])
    rows = []
    for quality in truth:
        logits = rng.normal(size=(8, vocabulary)) * np.exp(0.5 * quality)
        logp = -np.sort(-(logits - np.logaddexp.reduce(logits, 1, keepdims=True)), 1)
        rows.append(dict(entropy=-(np.exp(logp) * logp).sum(1), top_logp=logp))
    return pd.DataFrame(rows, index=truth.index), truth


def test_a_list_of_the_whole_vocabulary_is_worth_what_the_entropy_is():
    lists, truth = made_lists()
    rows = ll.prr_by_length(lists, truth, (1, 5, 30)).set_index(["tokens", "method"])
    assert rows["whole"].nunique() == 1 and (rows["n"] == 60).all()
    assert rows.loc[30, "difference"].abs().max() == pytest.approx(0, abs=1e-12)
    assert rows.loc[1, "difference"].abs().min() > 0
    own = lists["top_logp"].map(lambda top: ll.top_k_entropy(top[:, :5]))
    assert rows.loc[(5, "top_k_entropy"), "prr"] == pytest.approx(prr_value(truth, own))
    assert (rows["lo"] <= rows["difference"]).all() and (rows["difference"] <= rows["hi"]).all()


def test_the_figure_has_a_panel_for_each_generator_and_the_whole_vocabulary_dashed():
    rows = ll.prr_by_length(*made_lists(), (1, 5, 30))
    figure = ll.plot_lengths(pd.concat([rows.assign(generator=name) for name in ("one", "two")]))
    assert [ax.get_title() for ax in figure.axes] == ["one", "two"]
    lines = figure.axes[0].get_lines()
    assert len(lines) == 4 and lines[-1].get_linestyle() == "--"
