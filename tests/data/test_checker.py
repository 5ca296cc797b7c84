"""Checker of bulletins: correct text has no error, each edit has its own error, any text gets a verdict."""

import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.data.bulletins import (
    ACTIONS,
    BULLETIN_SPLITS,
    DATES,
    OBJECTS,
    PEOPLE,
    PLACE_NAMES,
    QUANTIFIER_WORDS,
    _is_about,
    bulletins,
    derived_facts,
    fact_question,
    facts_to_text,
)
from uetrust.data.checker import (
    ERROR_TYPES,
    RELEVANCE_WEIGHTS,
    _mark_errors,
    _statement_errors,
    check_summaries,
    check_summary,
    index_facts,
    insert_error,
    labelled_hypotheses,
    parse_clause,
    parse_summary,
    wrong_versions,
)
from uetrust.data.loaders import TOFU_ERRORS

N = 300
SETS = {split: bulletins(split, N) for split in BULLETIN_SPLITS}
TRAIN = SETS["train"]
PARTS = ["relevance", "coherence", "fluency", "concision", "truth"]
VOCABULARY = sorted({word for rows in SETS.values() for text in rows["source"] for word in text.split()})
each_split = pytest.mark.parametrize("split", BULLETIN_SPLITS)
each_error = pytest.mark.parametrize("error", ERROR_TYPES)


def found(verdict):
    return {error for error, ratio in verdict.ratios.items() if ratio}


def numbers(verdict):
    return [*verdict.ratios.values(), *(getattr(verdict, part) for part in PARTS)]


def test_the_errors_are_those_of_tofueval():
    assert ERROR_TYPES == tuple(TOFU_ERRORS)


# Clean text
@each_split
@pytest.mark.parametrize("column", ["reference", "paraphrase"])
def test_references_are_clean_and_complete(split, column):
    table = check_summaries(SETS[split][column], SETS[split])
    assert (table[[*ERROR_TYPES, "unparsed"]] == 0).all(axis=None) and (table[PARTS] == 1).all(axis=None)


@each_split
def test_the_source_is_a_clean_summary_of_itself(split):
    table = check_summaries(SETS[split]["source"], SETS[split], concise=False)
    assert (table[[*ERROR_TYPES, "unparsed"]] == 0).all(axis=None)
    assert (table[["relevance", "coherence", "fluency", "truth"]] == 1).all(axis=None)


@each_split
def test_the_source_is_no_perfect_summary_of_itself(split):
    "Where a bulletin has side matters, copying it costs exactly their share of the words."
    table, rows = check_summaries(SETS[split]["source"], SETS[split]), SETS[split]
    side = [
        any(fact.kind != "topic" and not _is_about(fact, row.facts[row.main[0]].object) for fact in row.facts)
        for row in rows.itertuples()
    ]
    assert (table["truth"] == table["concision"]).all() and table["truth"].min() > 0
    assert ((table["truth"] < 1) == side).all() and np.mean(side) > 0.7


@each_split
def test_another_bulletins_reference_is_extrinsic(split):
    rows = SETS[split]
    table = check_summaries([*rows["reference"][1:], rows["reference"][0]], rows)
    assert (table["truth"] == 0).all() and table["EI"].mean() > 0.97 and (table["fluency"] == 1).all()


# Seven edits
@each_split
@each_error
def test_an_edit_raises_its_own_error_in_one_clause(split, error):
    rng, none = np.random.default_rng(0), 0
    for row in SETS[split].itertuples():
        if (summary := insert_error(row, error, rng)) is None:
            none += 1
            continue
        verdict, parsed, bulletin = (
            check_summary(summary, row.facts, row.main),
            parse_summary(summary),
            index_facts(row.facts, row.main),
        )
        assert found(verdict) == {error}, summary
        ((start, stop),) = [span for fact, span in parsed.facts if _statement_errors(fact, bulletin)]
        assert verdict.labels[start:stop, ERROR_TYPES.index(error)].all()
        assert verdict.labels.sum() == stop - start
        assert verdict.ratios[error] == (stop - start) / len(verdict.words)
        assert not verdict.unparsed.any() and verdict.fluency == 1 and verdict.truth < 1
    assert none <= N * (0.5 if error in ("RE", "SOAF") else 0.05)


@each_error
def test_an_edit_is_reproducible(error):
    for row in TRAIN[:20].itertuples():
        assert insert_error(row, error, np.random.default_rng(3)) == insert_error(
            row, error, np.random.default_rng(3)
        )


def test_an_edit_joins_its_first_two_statements_as_often_as_a_reference_does():
    "Else the number of sentences would tell which summaries are wrong."

    def joined(texts):  # Share with fewer sentences than statements, by the number of statements
        parsed = [(len(parse_summary(text).facts), text.count(".")) for text in texts]
        return {n: np.mean([sentences < n for facts, sentences in parsed if facts == n]) for n in (2, 3)}

    rng, rows = np.random.default_rng(0), SETS["train"]
    edits = [insert_error(row, error, rng) for row in rows.itertuples() for error in ("EI", "CO")]
    wrong, right = joined(filter(None, edits)), joined(rows["reference"])
    assert all(abs(wrong[n] - right[n]) < 0.15 and 0.3 < right[n] < 0.7 for n in (2, 3)), (wrong, right)


def test_an_unknown_edit_is_refused():
    with pytest.raises(ValueError, match="no error type 'XX'"):
        insert_error(TRAIN.iloc[0], "XX", np.random.default_rng(0))


@each_error
def test_changes_of_one_fact_are_wrong_in_one_way(error):
    rng, n = random.Random(0), 0
    for row in TRAIN.itertuples():
        bulletin = index_facts(row.facts, row.main)
        for fact in row.facts:
            for _, wrong in wrong_versions(fact, error, bulletin, rng):
                n += 1
                assert _statement_errors(wrong, bulletin) == {error}, (fact, wrong)
    assert n > N / 4


# Thousands of edits
EDITS = 2000  # Of each type
EXCHANGED = dict(
    actor=("person", [*PEOPLE["usual"], *PEOPLE["shifted"]]),
    holder=("person", [*PEOPLE["usual"], *PEOPLE["shifted"]]),
    object=("object", OBJECTS),
    place=("place", [*PLACE_NAMES["usual"], *PLACE_NAMES["shifted"]]),
    date=("date", DATES),
    action=("action", list(ACTIONS)),
)


def exchanged(fact, slot, new, bulletin, rng):
    "The fact with another value in one slot: new to the bulletin, or from elsewhere in it; or None."
    entity, words = EXCHANGED[slot]
    if fact.kind in ("sum", "order") or not getattr(fact, slot):
        return None
    fits = [word for word in words if (word not in bulletin.values[entity]) == new]
    if slot == "action":  # Inside a family an exchange is no exchange of entities
        fits = [word for word in fits if ACTIONS[word].family != ACTIONS[fact.action].family]
    fits = [word for word in fits if word not in (fact.actor, fact.holder, getattr(fact, slot))]
    return fact._replace(**{slot: rng.choice(fits)}) if fits else None


def differing_slots(statement, fact):
    "Slots in which two facts about actions differ; action, negation, attitude and quantifier are one slot."
    subjects = fact.actor or fact.team, statement.actor or statement.team
    entities = [
        (getattr(fact, slot), getattr(statement, slot)) for slot in ("holder", "object", "place", "date")
    ]
    mood, meaning = (
        [(one.tense, one.modality) for one in (fact, statement)],
        [(one.action, one.positive, one.stance, one.quant) for one in (fact, statement)],
    )
    named = sum(bool(stated) and stated != known for known, stated in [subjects, *entities])
    return named + (mood[0] != mood[1]) + (meaning[0] != meaning[1])


def read_two_ways(statement, fact, bulletin):
    "Another fact states it, or would after one edit as well: nobody can say which of the two was changed."
    if statement.kind == "quantity":
        return bulletin.measures.get((statement.object, statement.unit)) == statement.amount
    others = [other for other in bulletin.facts.values() if other.action and other != fact]
    return bool(statement.action) and any(differing_slots(statement, other) <= 1 for other in others)


def drawn_edits(versions_of, rng):
    "(bulletin, wrong fact) until there are EDITS that can be read in one way, and the share of the others."
    rows, edits, unclear = pd.concat(SETS.values(), ignore_index=True), [], 0
    while len(edits) < EDITS:
        row = rows.iloc[rng.randrange(len(rows))]
        bulletin = index_facts(row.facts, row.main)
        fact = rng.choice([*row.facts, *derived_facts(row.facts)])
        if versions := [version for version in versions_of(fact, bulletin) if version]:
            wrong = rng.choice(versions)
            if read_two_ways(wrong, fact, bulletin):
                unclear += 1
            else:
                edits.append((row, wrong))
    return edits, unclear / (unclear + EDITS)


def misread(edits, error, rng):
    "Texts of edits in which the checker finds anything but this error."
    texts = [(row, facts_to_text([wrong], rng)) for row, wrong in edits]
    return [text for row, text in texts if found(check_summary(text, row.facts, row.main)) != {error}]


@each_error
def test_two_thousand_edits_are_read_back(error):
    rng = random.Random(ERROR_TYPES.index(error))
    edits, unclear = drawn_edits(
        lambda fact, bulletin: [wrong for _, wrong in wrong_versions(fact, error, bulletin, rng)], rng
    )
    assert misread(edits, error, rng) == [] and unclear < 0.05


@pytest.mark.parametrize("slot", EXCHANGED)
@pytest.mark.parametrize("new, error", [(True, "EI"), (False, "MR")])
def test_two_thousand_exchanges_are_one_error(slot, new, error):
    rng = random.Random(f"{slot} {new}")
    edits, unclear = drawn_edits(lambda fact, bulletin: [exchanged(fact, slot, new, bulletin, rng)], rng)
    assert misread(edits, error, rng) == [] and unclear < 0.05, unclear


# By hand
BULLETIN = """
Ms Reed, the engineer of the roads team, approved the new bridge at Mill Street on 3 May.
Mr Cole believes that Ms Lane will sell the new bridge.
Ms Lane denied that Mr Cole cleaned the old mill. Most members of the parks team supported the old mill.
The new bridge costs 40 thousand euros. The old mill costs 90 thousand euros.
Mr Cole is the treasurer of the parks team. Ms Lane will inspect the old mill on 9 June.
"""
STATED = tuple(fact for fact, _ in parse_summary(BULLETIN).facts)
MAIN = (0, 1, 4)


@pytest.mark.parametrize(
    "summary, types",
    [
        ("Ms Reed approved the new bridge", ""),
        ("the new bridge was approved by Ms Reed of the roads team at Mill Street on 3 May", ""),
        ("Mr Pike approved the new bridge", "EI"),
        ("Ms Reed approved the new bridge on 4 May", "EI"),
        ("Ms Reed approved the new bridge at Rose Park", "EI"),
        ("Ms Reed sold the new tower", "EI"),
        ("Ms Reed tested the new bridge", "EI"),
        ("the new bridge costs 50 thousand euros", "EI"),
        ("50 residents signed the petition on the new bridge", "EI"),
        ("40 residents signed the petition on the new bridge", "EI"),
        ("Mr Cole is the planner of the parks team", "EI"),
        ("Mr Pike is the treasurer of the parks team", "EI"),
        ("Mr Ellis believes that Ms Lane will sell the new bridge", "EI"),
        ("the petition on the new bridge has more signatures than the petition on the old mill", "EI"),
        ("this bulletin is about the new tower", "EI"),
        ("Mr Cole approved the new bridge", "MR"),
        ("Ms Reed approved the new bridge on 9 June", "MR"),
        ("Ms Lane will inspect the new bridge", "MR"),
        ("the new bridge costs 90 thousand euros", "MR"),
        ("Ms Reed is the treasurer of the parks team", "MR"),
        ("Ms Reed of the parks team approved the new bridge", "MR"),
        ("Ms Reed believes that Ms Lane will sell the new bridge", "MR"),
        ("Mr Cole said that Ms Reed approved the new bridge", "MR"),
        ("most members of the roads team supported the old mill", "MR"),
        ("this bulletin is about the old mill", "MR"),
        ("Ms Lane will sell the new bridge", "SOAF"),
        ("Mr Cole did not clean the old mill", "SOAF"),
        ("Mr Cole cleaned the old mill", "CO"),
        ("Ms Lane will not sell the new bridge", "CO"),
        ("Ms Lane admitted that Mr Cole cleaned the old mill", "CO"),
        ("Mr Cole doubts that Ms Lane will sell the new bridge", "CO"),
        ("Ms Reed rejected the new bridge", "CO"),
        ("Ms Reed did not approve the new bridge", "CO"),
        ("Mr Cole believes that Ms Lane will not sell the new bridge", "CO"),
        ("Ms Reed welcomed the new bridge", "NMS"),
        ("Ms Reed did not reject the new bridge", "NMS"),
        ("all members of the parks team supported the old mill", "NMS"),
        ("Mr Cole said that Ms Lane will sell the new bridge", "NMS"),
        ("Ms Lane doubts that Mr Cole cleaned the old mill", "NMS"),
        ("Ms Reed might approve the new bridge", "TME"),
        ("Ms Reed may have approved the new bridge", "TME"),
        ("Ms Reed plans to approve the new bridge", "TME"),
        ("together, the new bridge and the old mill cost 130 thousand euros", ""),
        ("together, the old mill and the new bridge cost 130 thousand euros", ""),
        ("the old mill costs more than the new bridge", ""),
        ("the new bridge costs less than the old mill", ""),
        ("the date for the new bridge is earlier than the date for the old mill", ""),
        ("together, the new bridge and the old mill cost 90 thousand euros", "RE"),
        ("the new bridge is more expensive than the old mill", "RE"),
        ("in the calendar, the old mill comes before the new bridge", "RE"),
        ("the old mill costs more than the old mill", "RE"),
        ("Mr Cole might sell the new bridge", "MR SOAF TME"),
        ("Ms Reed might reject the new bridge", "CO TME"),
    ],
)
def test_errors_by_hand(summary, types):
    assert parse_clause(summary) is not None
    assert _statement_errors(parse_clause(summary), index_facts(STATED, MAIN)) == set(types.split())


@pytest.mark.parametrize(
    "summary, want",
    [  # relevance, coherence, fluency, truth
        ("", (0, 0, 0, 0)),
        ("Ms Reed approved the new bridge.", (3 / 7, 1, 1, 3 / 7)),
        ("Ms Reed approved the new bridge", (3 / 7, 1, 0, 3 / 14)),
        ("ms Reed approved the new bridge.", (0, 0, 0, 0)),
        ("the new bridge was approved by Ms Reed.", (3 / 7, 1, 0, 3 / 14)),
        (
            "Ms Reed approved the new bridge. Which costs 40 thousand euros.",
            (3 / 7, 1, 6 / 11, 3 / 7 * 6 / 11 * (1 + 6 / 11) / 2),
        ),
        ("Ms Reed approved the new bridge! It costs a lot.", (0, 0, 0, 0)),
        ("Ms Reed approved the new bridge. It costs a lot.", (3 / 7, 1, 0.6, 3 / 7 * 0.6 * 0.8)),
        (
            "Ms Reed approved the new bridge. The new bridge was approved by Ms Reed.",
            (3 / 7, 1 / 2, 1, 3 / 7 * 3 / 4),
        ),
        ("Ms Reed approved the new bridge, which costs 40 thousand euros.", (5 / 7, 1, 1, 5 / 7)),
        ("Also, Ms Reed approved the new bridge.", (3 / 7, 0, 1, 3 / 14)),
        (
            "The old mill costs more than the new bridge. The old mill costs 90 thousand euros.",
            (0, 1 / 2, 1, 0),
        ),
        ("The old mill costs 90 thousand euros. The old mill costs more than the new bridge.", (0, 1, 1, 0)),
        ("She approved the new bridge.", (3 / 7, 0, 1, 3 / 14)),
        ("Which costs 40 thousand euros.", (0, 0, 0, 0)),
        ("Ms Reed will sell the new bridge.", (0, 1, 1, 0)),
    ],
)
def test_scores_by_hand(summary, want):
    verdict = check_summary(summary, STATED, MAIN)
    assert (verdict.relevance, verdict.coherence, verdict.fluency, verdict.truth) == pytest.approx(
        want, abs=1e-12
    )


def test_weights_by_hand():
    assert [RELEVANCE_WEIGHTS[kind] for kind in ("event", "report", "quantity")] == [3, 2, 2]


def test_a_pronoun_means_the_person_before():
    assert found(
        check_summary(
            "Ms Reed approved the new bridge. She will inspect the old mill on 9 June.", STATED, MAIN
        )
    ) == {"MR"}
    assert not found(
        check_summary(
            (
                "Ms Lane will inspect the old mill on 9 June. Mr Cole is the treasurer of the parks "
                "team. He believes that Ms Lane will sell the new bridge."
            ),
            STATED,
            MAIN,
        )
    )
    assert parse_summary(
        "Mr Cole is the treasurer of the parks team. She will inspect the old mill."
    ).loose == {1}


def test_an_error_takes_its_clause_only():
    verdict = check_summary("Mr Pike approved the new bridge, which costs 40 thousand euros.", STATED, MAIN)
    assert verdict.labels[:, ERROR_TYPES.index("EI")].tolist() == [True] * 6 + [False] * 5
    assert found(verdict) == {"EI"}
    assert verdict.relevance == 2 / 7
    assert _mark_errors(verdict) == "EI[Mr Pike approved the new bridge,] which costs 40 thousand euros."


def test_unread_words_carry_no_error():
    verdict = check_summary("Ms Reed approved the new bridge. Ms Reed liked the new bridge.", STATED, MAIN)
    assert verdict.unparsed.tolist() == [False] * 6 + [True] * 6
    assert not verdict.labels.any()
    assert verdict.fluency == 1 / 2
    assert _mark_errors(verdict) == "Ms Reed approved the new bridge. ?[Ms Reed liked the new bridge.]"


# Broken text
def salads():
    rng = np.random.default_rng(0)
    for row in TRAIN.itertuples():
        yield row, " ".join(rng.permutation(row.reference.split()))
        yield row, " ".join(rng.choice(VOCABULARY, 25))


def test_word_salad_scores_low():
    verdicts = [check_summary(summary, row.facts, row.main) for row, summary in salads()]
    assert np.mean([verdict.truth < 0.1 for verdict in verdicts]) > 0.98
    assert np.mean([verdict.fluency for verdict in verdicts]) < 0.05
    assert np.mean([verdict.fluency < 0.3 for verdict in verdicts]) > 0.98


@pytest.mark.parametrize(
    "spoil",
    [
        lambda words: words[: len(words) // 2] + ["of"],
        lambda words: [x for y in words for x in (y, y)],
        lambda words: [x.lower() for x in words],
        lambda words: words[:-1],
        lambda words: [*words, "and"],
        lambda words: [*words, "Blorp."],
    ],
)
def test_broken_references_lose_truth(spoil):
    for row in TRAIN.itertuples():
        verdict = check_summary(" ".join(spoil(row.reference.split())), row.facts, row.main)
        assert verdict.truth < 1 and verdict.fluency < 1 and not verdict.labels.any()


@pytest.mark.parametrize(
    "summary, share",
    [  # 6 words about the bridge, 9 about a post
        ("Ms Reed approved the new bridge. Mr Cole is the treasurer of the parks team.", 6 / 15),
        ("Ms Reed approved the new bridge.", 1),
        # A wrong side matter is paid for as an error, not twice
        ("Ms Reed approved the new bridge. Mr Pike is the treasurer of the parks team.", 1),
        # 9 words compare the bridge with something else: they are about the bridge
        ("Ms Reed approved the new bridge. The new bridge costs less than the old mill.", 1),
        ("Ms Reed approved the new bridge. This bulletin is about the new bridge.", 1),
        ("Mr Pike sleeps.", 1),
        ("", 1),
    ],
)
def test_concision_by_hand(summary, share):
    verdict = check_summary(summary, STATED, MAIN)
    assert verdict.concision == pytest.approx(share, abs=1e-12)
    free = check_summary(summary, STATED, MAIN, concise=False)
    assert (
        verdict.truth == pytest.approx(share * free.truth, abs=1e-12) and free.concision == verdict.concision
    )


broken = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from([*VOCABULARY, "the", "and", "which", "said", "that", "She", ".", "Ms", "Mr"]),
        max_size=40,
    ).map(" ".join),
)


@given(summary=broken, i=st.integers(0, N - 1))
def test_any_text_gets_a_verdict(summary, i):
    row = TRAIN.iloc[i]
    verdict, again = check_summary(summary, row.facts, row.main), check_summary(summary, row.facts, row.main)
    assert verdict.words == summary.split()
    assert verdict.labels.shape == (len(verdict.words), 7)
    assert verdict.unparsed.shape == (len(verdict.words),)
    assert all(0 <= x <= 1 for x in numbers(verdict))
    assert verdict.truth <= min(
        verdict.relevance, 1 - (verdict.labels.any(1) | verdict.unparsed).mean() if verdict.words else 0
    )
    assert not (verdict.labels.any(1) & verdict.unparsed).any()
    assert numbers(verdict) == numbers(again)
    assert (verdict.labels == again.labels).all()


def outside_reports(row):  # The beginning of a report is missing in some pieces, and then it is a bare event
    return not any(row.facts[i].stance for i in row.main)


@given(i=st.integers(0, N - 1), n=st.integers(0, 40))
def test_the_start_of_a_reference_has_no_error(i, n):
    row = TRAIN.iloc[i]
    verdict = check_summary(" ".join(row.reference.split()[:n]), row.facts, row.main)
    assert not verdict.labels.any() and all(0 <= x <= 1 for x in numbers(verdict))


@given(
    i=st.sampled_from([i for i, row in enumerate(TRAIN.itertuples()) if outside_reports(row)]),
    start=st.integers(0, 40),
    stop=st.integers(0, 40),
)
def test_a_piece_of_a_reference_without_reports_has_no_error(i, start, stop):
    row = TRAIN.iloc[i]
    assert not check_summary(" ".join(row.reference.split()[start:stop]), row.facts, row.main).labels.any()


def test_deeply_nested_reports_are_survived():
    assert check_summary(
        "Ms Reed said that " * 5000 + "Ms Reed approved the new bridge.", STATED, MAIN
    ).unparsed.all()


@given(i=st.integers(0, N - 1), n=st.integers(0, 4))
def test_more_correct_main_facts_are_never_less_relevant(i, n):
    row = TRAIN.iloc[i]
    parts = row.reference.split(". ")

    def relevance(k):
        return check_summary(". ".join(parts[:k]).rstrip(".") + ".", row.facts, row.main).relevance

    assert relevance(n) <= relevance(n + 1)


def test_judge_names_rows_and_refuses_other_lengths():
    rows = SETS["test"][:3]
    table = check_summaries(rows["reference"], rows)
    assert table["id"].tolist() == rows["id"].tolist()
    assert list(table) == [
        "id",
        "words",
        "unparsed",
        *ERROR_TYPES,
        *PARTS,
    ]
    with pytest.raises(ValueError, match="got 2 summaries and 3 bulletins"):
        check_summaries(["", ""], rows)


# Statements
@each_split
def test_statements_agree_with_the_checker(split):
    rng, labels = np.random.default_rng(0), []
    for row in SETS[split].itertuples():
        bulletin = index_facts(row.facts, row.main)
        for summary, label in labelled_hypotheses(row, rng):
            parsed = parse_summary(summary)
            ((fact, _),) = parsed.facts
            assert not parsed.unparsed and bool(_statement_errors(fact, bulletin)) == (
                label != "entailment"
            ), (
                summary,
                label,
            )
            assert label != "contradiction" or not _statement_errors(fact, bulletin) & {"SOAF", "TME", "NMS"}
            labels.append(label)
    assert all(
        0.3 < labels.count(label) / len(labels) < 0.37 for label in ("entailment", "neutral", "contradiction")
    )


def test_statements_that_can_be_argued_about_are_left_out():
    "Some opposites can both be true (might, might not); a weaker statement can follow from a stronger one."
    rng, seen = np.random.default_rng(1), set()
    for row in TRAIN.itertuples():
        bulletin = index_facts(row.facts, row.main)
        for summary, label in labelled_hypotheses(row, rng):
            fact = parse_summary(summary).facts[0][0]
            for error in _statement_errors(fact, bulletin):
                seen.add((error, label))
                answer = bulletin.facts.get(fact_question(fact))
                if error == "CO":
                    assert fact.modality != "might" and fact.quant != "some"
                if error == "TME":
                    assert fact.tense != answer.tense
                if error == "NMS" and fact.quant != answer.quant:
                    assert QUANTIFIER_WORDS.index(fact.quant) > QUANTIFIER_WORDS.index(answer.quant)
    assert seen == {
        (error, label)
        for label, errors_of_label in dict(contradiction="CO RE EI MR", neutral="EI MR SOAF NMS TME").items()
        for error in errors_of_label.split()
    }
