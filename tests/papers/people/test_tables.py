"""Tables of people's judgements: who never chooses, and facts that are those of the rows."""

import numpy as np
import pandas as pd

from tests.helpers.regret import DOCUMENTS, NOISY, TRUTH, real
from uetrust.core.roles import role_of
from uetrust.papers.people import tables as people_tables
from uetrust.papers.people.translations import JudgedTranslations, judged_translations


@real
def test_baselines_are_never_chosen_and_single_persons_never_choose():
    judged = judged_translations("ru-en", "test20", without=("chrf", "bleu", "ter", "rouge_l", "meteor"))
    assert {name for name in judged.uncertainty if role_of(name) == "baseline"} >= {
        "token_count",
        "source_length",
        "chance",
    }
    assert {role_of(name) for name in people_tables.methods_to_choose(judged)} == {"method"}
    assert list(people_tables.metrics_to_choose_by(judged)) == ["da_z", "hter", "embedding_spearman"]


def test_the_facts_about_judges_are_about_a_size_that_was_drawn(monkeypatch):
    "Studies of 50, 100 and 250 texts; the facts are about 100, one loss for each number of judges."
    noise = np.random.default_rng(4).normal(size=(600, 3))
    persons = pd.DataFrame({f"person_{k + 1}_z": TRUTH + noise[:, k] for k in range(3)})
    methods = NOISY.set_axis(["msp", "mte", "perplexity"], axis=1)
    judged = JudgedTranslations("ro-en", persons.assign(da_z=TRUTH), methods, DOCUMENTS, {})
    monkeypatch.setattr(people_tables, "people_only", lambda pair: judged._replace(pair=pair))
    rows = people_tables.people_regret_rows(people_tables.judges_regret(["ro-en"], draws=20), "none")
    assert sorted(set(rows["n"])) == [50, 100, 250, 600]
    pooled = rows[(rows["pair"] == "pooled") & (rows["n"] == 100)].set_index("metric")["value"]
    facts = people_tables.judges_facts(rows)
    assert (facts.n, facts.pairs, list(facts.losses)) == (100, 1, [1, 2, 3])
    wide = rows.assign(lo=rows["value"] - 1, hi=rows["value"] + 1)
    assert not facts.overlap and people_tables.judges_facts(wide).overlap
    for judges, loss in facts.losses.items():
        assert loss.startswith(f"{pooled[f'people_{judges}']:.3f} [")


def regret_rows():
    "Two pairs and their mean, studies of 25, 50, 100 and 500 texts; chrF chooses nothing with 500."
    rows = pd.DataFrame(
        [
            dict(pair=pair, n=n, metric=metric, value=value / n, lo=value / n - 1, hi=value / n + 1)
            for pair in ("a-b", "c-d", "pooled")
            for n in (25, 50, 100, 500)
            for metric, value in dict(people=1, metrics=2, random=4, chrf=3, hter=1).items()
        ]
    )
    return rows.assign(held_out=True)


def test_facts_of_a_size_are_those_of_the_pooled_rows():
    facts = people_tables.people_regret_facts(regret_rows(), 50)
    assert facts == (50, 2, "0.040 [-0.960, 1.040]", "0.020 [-0.980, 1.020]", "0.080 [-0.920, 1.080]")


def test_a_page_shows_the_smallest_the_middle_and_the_largest_size():
    rows = regret_rows()
    assert people_tables.shown_sizes(rows) == [25, 100, 500]
    without = rows[~((rows["n"] == 500) & (rows["metric"] == "metrics"))]
    assert people_tables.shown_sizes(without) == [25, 50, 100]


def test_with_all_texts_the_choice_that_loses_most_is_named():
    rows = regret_rows().assign(held_out=False)
    rows.loc[(rows["pair"] == "c-d") & (rows["metric"] == "hter") & (rows["n"] == 25), "value"] = 9.0
    rows.loc[(rows["pair"] == "a-b") & (rows["metric"] == "chrf"), ["value", "lo"]] = 0.0, 0.5
    rows.loc[rows["pair"] == "pooled", "value"] = 99.0  # The mean is no choice
    facts = people_tables.all_texts_facts(rows)
    assert (facts.texts, facts.choices, facts.same, facts.clear) == (500, 16, 4, 4)
    assert (facts.metric, facts.pair) == ("hter", "c-d") and facts.loss.startswith("9.000 [")


def test_rankings_are_those_of_the_mean_of_pairs():
    rows = pd.DataFrame(
        [("mean", 25, "a", 0.2), ("mean", 25, "b", 0.4), ("mean", 25, "people_half", 0.7)]
        + [("mean", 99, "a", 0.5), ("mean", 99, "people_half", 0.9), ("x-y", 10, "a", 1.0)],
        columns=["pair", "n", "metric", "value"],
    )
    found = people_tables.ranking_range(rows)
    assert found.values.tolist() == [[25, 0.2, 0.4, 0.7], [99, 0.5, 0.5, 0.9]]


def test_facts_about_words_are_those_of_the_sum_of_surprisals():
    rows = pd.DataFrame(
        [("a-b", "AUROC", "total", 0.7, 10, 0.5), ("c-d", "AUROC", "total", 0.6, 20, 0.25)]
        + [("a-b", "AUROC", "mean", 0.9, 10, 0.5), ("a-b", "PRR", "total", 0.1, 10, 0.5)],
        columns=["pair", "measure", "score", "value", "n", "bad"],
    )
    facts = people_tables.word_facts(rows.assign(lo=0.1, hi=0.8))
    assert facts[:4] == (30, 2, 0.25, 0.5)
    assert facts[4:] == ("0.600 [0.100, 0.800]", "c-d", "0.700 [0.100, 0.800]", "a-b")


def test_a_kind_of_reference_has_the_mean_of_its_metrics_and_both_ends():
    rows = pd.DataFrame(
        [(100, True, "chrf", "post-edit", 0.1, 0.5), (100, True, "bleu", "post-edit", 0.3, 0.7)]
        + [(100, True, "chrf", "reference 1", 0.4, 0.1), (50, True, "chrf", "post-edit", 9, 9)]
        + [(100, False, "chrf", "post-edit", 9, 9), (100, True, "da_z", "", 0.0, 1.0)],
        columns=["n", "held_out", "metric", "kind", "value", "sentence_rho"],
    ).assign(lo=0.0, hi=1.0)
    found = people_tables.reference_summary(rows).set_index("kind")
    assert list(found.index) == ["post-edit", "reference 1"] and found["metrics"].tolist() == [2, 1]
    assert found["mean"].tolist() == [0.2, 0.4] and found["sentence_rho"].tolist() == [0.6, 0.1]
    assert found.loc["post-edit", "highest"] == "0.300 [0.000, 1.000]"
