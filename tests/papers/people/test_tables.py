"""Tables of people's judgements: who never chooses."""

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


def test_the_sentence_about_judges_is_about_a_size_that_was_drawn(monkeypatch):
    "Studies of 50, 100 and 250 texts; the sentence is about 100, one number for each number of judges."
    noise = np.random.default_rng(4).normal(size=(600, 3))
    persons = pd.DataFrame({f"person_{k + 1}_z": TRUTH + noise[:, k] for k in range(3)})
    methods = NOISY.set_axis(["msp", "mte", "perplexity"], axis=1)
    judged = JudgedTranslations("ro-en", persons.assign(da_z=TRUTH), methods, DOCUMENTS, {})
    monkeypatch.setattr(people_tables, "people_only", lambda pair: judged._replace(pair=pair))
    rows = people_tables.people_regret_rows(people_tables.judges_regret(["ro-en"], draws=20), "none")
    assert sorted(set(rows["n"])) == [50, 100, 250, 600]
    pooled = rows[(rows["pair"] == "pooled") & (rows["n"] == 100)].set_index("metric")["value"]
    said = people_tables.judges_sentence(rows)
    assert said.startswith("A study of 100 texts that chooses") and "(one language pair;" in said
    for k in (1, 2, 3):
        assert f"{pooled[f'people_{k}']:.3f} [" in said and f"] with {k}" in said
