"""Facts, sentences and words that people judged: their tables, and what scores find in them."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.settings import mirror
from uetrust.data.translations import translations
from uetrust.papers.units import judged


def test_facts_have_the_numbers_of_their_page():
    units = judged.fact_units("InstructGPT")
    assert len(units) == 4064 and units["source"].nunique() == 180
    assert units["right"].isin([0, 1]).all() and units["position"].between(0, 1).all()


@pytest.mark.skipif(mirror() is None, reason="needs the translations of MLQE-PE and TofuEval")
def test_words_of_translations_by_a_loop():
    units = judged.word_units("ro-en")
    row = translations("ro-en").iloc[0]
    own = units[units["text"] == row["sample"]]
    assert len(own) == len(row["words"]) and own["source"].eq(row["document"]).all()
    assert own["right"].tolist() == (1 - row["bad_words"].astype(float)).tolist()
    assert own["letters"].tolist() == list(map(len, row["words"]))
    assert own["surprisal_sum"].sum() == pytest.approx(-row["logp"][:-1].sum())
    spelled = units.dropna()
    assert len(spelled) > 0.99 * len(units)
    assert (spelled["surprisal_largest"] <= spelled["surprisal_sum"] + 1e-9).all()
    assert (spelled["surprisal_mean"] <= spelled["surprisal_largest"] + 1e-9).all()


@pytest.mark.skipif(mirror() is None, reason="needs the translations of MLQE-PE and TofuEval")
def test_sentences_are_grouped_by_summary_and_clustered_by_dialogue():
    units = judged.sentence_units("TofuEval")
    assert (len(units), units["text"].nunique()) == (4946, 1777)
    assert units["source"].nunique() == 100 and 1 - units["right"].mean() == pytest.approx(0.195, abs=0.001)
    found = judged.judged_found(("sentences, TofuEval",)).found
    within = found[(found["group"] == "within a text") & (found["label"] == "position")].iloc[0]
    texts = units.groupby("text").filter(lambda part: part["right"].nunique() == 2)

    def share(part):
        wrong, right = (part.loc[part["right"] == label, "position"].to_numpy() for label in (0, 1))
        return np.sign(wrong[:, None] - right).mean()

    assert within["value"] == pytest.approx(texts.groupby("text").apply(share).mean())
    assert within["texts"] == texts["text"].nunique()


def test_a_set_that_is_not_at_hand_is_named(monkeypatch):
    def absent(name):
        raise judged.DataNotAtHand(f"{name}: fetch it first")

    monkeypatch.setattr(judged, "judged_units", absent)
    study = judged.judged_found(("words, ro-en",))
    assert len(study.found) == 0 and study.absent == {"words, ro-en": "words, ro-en: fetch it first"}


def test_kinds_of_sets():
    assert judged.chosen_sets("all") == judged.UNIT_SETS and len(judged.chosen_sets("words facts")) == 10
    with pytest.raises(ValueError, match="no sets of the kind 'claims'"):
        judged.chosen_sets("claims")


def test_facts_of_the_page_are_the_extremes():
    rows = [
        ("words, a", "surprisal_sum", 0.3),
        ("words, b", "surprisal_sum", 0.5),
        ("words, a", "letters", 0.4),
    ]
    rows += [("words, b", "letters", 0.1), ("facts, c", "position", 0.2)]
    found = pd.DataFrame(rows, columns=["set", "label", "value"]).assign(
        group="within a text", lo=0.0, hi=1.0
    )
    between = found[found["label"] == "position"].assign(group="between texts", value=-0.2)
    facts = judged.judged_facts(pd.concat([found, between]))
    assert (facts.surprisal_lo_set, facts.surprisal_hi_set, facts.length_hi_set) == ("a", "b", "a")
    assert facts.surprisal_there.startswith("0.30") and facts.position_between.startswith("-0.20")
    assert judged.judged_facts(found[found["label"] != "position"]) is None


@pytest.mark.skipif(mirror() is None, reason="needs FaithBench")
def test_a_sentence_with_an_unwanted_span_is_wrong():
    units = judged.sentence_units("FaithBench")
    table = judged.faithbench().set_index("sample")
    assert units["text"].nunique() == len(table) == 750
    assert units.groupby("text")["right"].min().eq(0).sum() == table["unwanted"].sum()
    assert units["missing_words"].dropna().between(0, 1).all() and units["source"].nunique() < 750


@pytest.mark.skipif(mirror() is None, reason="needs the annotations of XSum")
def test_a_word_that_two_of_three_people_marked_is_wrong():
    units = judged.word_units("XSum")
    spans = judged.xsum_spans()
    one = spans[(spans["document"] == "34687720") & (spans["system"] == "BERTS2S")]
    own = units[units["text"] == "34687720 BERTS2S"]
    words, place, votes = one["summary"].iloc[0].split(" "), 0, []
    for word in words:
        marked = one[one["type"].notna() & (one["start"] <= place) & (one["end"] >= place + len(word))]
        votes.append(marked["person"].nunique())
        place += len(word) + 1
    assert own["right"].tolist() == [float(n < 2) for n in votes] and one["person"].nunique() == 3
