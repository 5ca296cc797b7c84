"""The best methods by people, and those that may be as good."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.confidence_set import methods
from uetrust.evaluation.inference.confidence_set import winners_table
from uetrust.evaluation.prr import prr
from uetrust.papers.people.orders import best_by_people
from uetrust.papers.people.translations import JudgedTranslations


def judged_by_people():
    quality, uncertainty, _ = methods(noises=(1.0, 1.0, 5.0))
    scores = uncertainty.rename(columns=dict(a="msp", b="perplexity", c="min_token")).assign(
        token_count=-quality
    )
    documents = pd.Series(np.arange(240) // 4)
    return JudgedTranslations("xx-en", quality.to_frame("da_z"), scores, documents, {})


def test_translations_are_ranked_by_people_on_few_and_all_sentences():
    one = judged_by_people()
    winners = winners_table(best_by_people({"xx-en": one, "yy-en": one}, texts=40, splits=4))
    assert winners["n"].tolist() == [40, 240, 40, 240] and set(winners["methods"]) == {3}
    row, best = winners.iloc[1], one.uncertainty[winners["winner"][1]]
    want = prr(one.quality["da_z"], best, document=one.documents)
    assert (row["prr"], (row["hi"] - row["lo"]) / 3.92) == pytest.approx((want.value, want.se))
