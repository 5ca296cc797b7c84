"""Facts of biographies: what the scores find within texts, between texts and over all facts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from uetrust.evaluation.inference.noisy_judge import random_signs_p
from uetrust.papers.people import biographies


@pytest.fixture(scope="module")
def facts():
    return biographies.scored_facts()


def test_auc_over_all_facts_is_what_was_measured_elsewhere(facts):
    found = biographies.facts_found(facts, draws=20)
    value = found[found["level"] == "all facts"].set_index(["system", "score"])["value"]
    expected = dict(position=(0.637, 0.619), words=(0.581, 0.576), missing_words=(0.770, 0.657))
    for score, pair in expected.items():
        for system, auc in zip(("InstructGPT", "ChatGPT"), pair):
            assert (value[system, score] + 1) / 2 == pytest.approx(auc, abs=6e-4)
            own = facts[facts["system"] == system]
            assert (value[system, score] + 1) / 2 == pytest.approx(
                roc_auc_score(1 - own["right"], own[score])
            )


def test_within_texts_only_pairs_of_one_text_count():
    rows = [("a", 1, 1), ("a", 0, 2), ("b", 1, 5), ("b", 0, 6), ("b", 0, 5), ("c", 1, 9)]
    table = pd.DataFrame(rows, columns=["person", "right", "position"]).assign(system="x")
    table = table.assign(words=table["position"], missing_words=np.nan)
    found = biographies.facts_found(table, draws=20).set_index(["score", "level"])["value"]
    assert found["position", "within a text"] == pytest.approx((1 + 1 + 0) / 3)
    assert "missing_words" not in found.index.get_level_values(0)


def test_one_system_alone_misses_no_word():
    alone = biographies.scored_facts(("ChatGPT",))
    assert alone["missing_words"].isna().all()


def test_intervals_draw_persons(facts):
    found = biographies.facts_found(facts, draws=200)
    assert (found["lo"] <= found["value"]).all() and (found["value"] <= found["hi"]).all()
    position = found[(found["system"] == "ChatGPT") & (found["score"] == "position")].set_index("level")
    assert position.at["within a text", "lo"] > 0 > position.at["between texts", "lo"]
    assert position["persons"].eq(157).all()


def test_p_by_person_is_small_where_there_is_something_and_spread_where_there_is_not(facts):
    found = biographies.facts_found(facts, draws=20).set_index(["system", "score", "level"])["p"]
    assert found["InstructGPT", "missing_words", "within a text"] == 1 / 2000
    assert found["InstructGPT", "words", "between texts"] > 0.05
    own, rng = facts[facts["system"] == "ChatGPT"], np.random.default_rng(0)
    null = []
    for _ in range(100):  # The scores of a text are those of another, in any order
        values = {person: rng.normal() + rng.normal(size=len(part)) for person, part in own.groupby("person")}
        scores = np.concatenate([values[person] for person in own["person"].unique()])
        parts = biographies.rank_products(own["right"], scores, own["person"])
        null.append(random_signs_p(parts[:, None], 199))
    assert 0.005 <= np.mean(np.array(null) < 0.05) <= 0.12


def test_products_of_ranks_add_up_to_spearmans_numerator():
    rng = np.random.default_rng(0)
    first, second, documents = rng.normal(size=40), rng.normal(size=40), np.arange(40) % 7
    parts = biographies.rank_products(first, second, documents)
    ranks = [pd.Series(values).rank() - 20.5 for values in (first, second)]
    assert len(parts) == 7 and parts.sum() == pytest.approx((ranks[0] * ranks[1]).sum())
