"""Synthetic dataset `bulletin`: reproducible, varied, parsed back without loss, no leakage between splits."""

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter

import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from uetrust.data import bulletins as world
from uetrust.data.bulletins import (
    ACTIONS,
    BULLETIN_SPLITS,
    DATES,
    OBJECTS,
    PEOPLE,
    PLACE_NAMES,
    TEMPLATES,
    VERB_PATTERNS,
    Fact,
    _fact_templates,
    _fill_template,
    _split_of,
    bulletin,
    bulletin_question,
    bulletins,
    check_answers,
    derived_facts,
    fact_person,
    fact_question,
    known_quantities,
    named_values,
    questions,
)
from uetrust.data.checker import parse_clause, parse_summary

N = 400
SETS = {split: bulletins(split, N) for split in BULLETIN_SPLITS}
FACTS = {split: [fact for facts in rows["facts"] for fact in facts] for split, rows in SETS.items()}
ALL = [fact for facts_of_split in FACTS.values() for fact in facts_of_split]
each_split = pytest.mark.parametrize("split", BULLETIN_SPLITS)


def words(text):
    return len(text.split())


def sentences(text):
    return len(re.findall(r"\.(?= |$)", text))


# Reproducible
@each_split
def test_fewer_bulletins_are_a_prefix_of_more(split):
    assert bulletins(split, 7).equals(SETS[split][:7])


def test_another_seed_is_another_dataset():
    assert not set(bulletins("train", 50, seed=1)["source"]) & set(SETS["train"]["source"])


def test_hash_seed_and_process_do_not_matter():
    code = (
        "from hashlib import sha256; from uetrust.data.bulletins import bulletin; "
        "splits = 'train', 'validation', 'test', 'shifted'; "
        "rows = [bulletin(split, i) for split in splits for i in range(20)]; "
        "print(sha256(repr(rows).encode()).hexdigest())"
    )

    def run(hash_seed):
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert run("1") == run("2") != ""


def test_texts_that_are_kept_were_made_from_the_bulletins_of_today():
    "Replies of a server to the first bulletins, kept in the repository since they were requested"
    lines = (ROOT / "data" / "examples" / "replies.jsonl").read_text().splitlines()
    query = [(reply["custom_id"], reply["request"]["prompt"]) for reply in map(json.loads, lines)]
    rows = bulletins("test", len(lines))
    assert query == [(i, f"Summarize the bulletin: {text}") for i, text in zip(rows["id"], rows["source"])]


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="no split 'dev'"):
        bulletins("dev", 1)


# Without leakage
def test_every_event_belongs_to_its_split_alone():
    triples = {
        split: {
            (fact.actor, fact.action, fact.object) for fact in facts_of_split if fact.actor and fact.action
        }
        for split, facts_of_split in FACTS.items()
    }
    assert all(
        _split_of(*triple) == split
        for split, triples_of_split in triples.items()
        for triple in triples_of_split
    )
    assert all(len(triples_of_split) > 2 * N for triples_of_split in triples.values())


@each_split
def test_every_main_matter_has_an_event(split):
    assert all(
        any(facts[i].kind == "event" for i in main)
        for facts, main in zip(SETS[split]["facts"], SETS[split]["main"])
    )


@pytest.mark.parametrize("column", ["source", "reference", "paraphrase"])
def test_no_text_occurs_in_two_splits(column):
    seen = Counter(text for rows in SETS.values() for text in set(rows[column]))
    assert max(seen.values()) == 1


def test_shifted_names_occur_nowhere_else():
    def names(split):
        return {value for fact in FACTS[split] for value in (fact.actor, fact.holder, fact.place) if value}

    usual = names("train") | names("validation") | names("test")
    assert not names("shifted") & usual
    assert names("shifted") <= {*PEOPLE["shifted"], *PLACE_NAMES["shifted"]}
    assert usual <= {
        *PEOPLE["usual"],
        *PLACE_NAMES["usual"],
    }


def test_20000_training_bulletins_without_repetition():
    rows = bulletins("train", 20_000)
    assert rows["source"].nunique() == rows["id"].nunique() == 20_000


def test_hash_gives_eighty_ten_ten():
    counts = Counter(
        _split_of(actor, action, object)
        for actor in PEOPLE["usual"][:30]
        for action in ACTIONS
        for object in OBJECTS[:40]
    )
    assert [round(counts[split] / counts.total(), 1) for split in BULLETIN_SPLITS[:3]] == [
        0.8,
        0.1,
        0.1,
    ]
    assert "shifted" not in counts


# Shape
@each_split
def test_lengths(split):
    rows, (lowest, highest) = SETS[split], (8, 10) if split == "shifted" else (3, 8)
    n = rows["source"].map(sentences)
    assert set(n) == set(range(lowest, highest + 1))
    assert rows["source"].map(words).between(30, 150).all()
    for column in ("reference", "paraphrase"):
        assert rows[column].map(words).between(8, 40).all() and set(rows[column].map(sentences)) == {1, 2, 3}


@each_split
def test_paraphrase_is_another_text(split):
    assert (SETS[split]["reference"] != SETS[split]["paraphrase"]).all()


@each_split
def test_main_is_all_that_is_stated_about_one_object(split):
    for facts, main in zip(SETS[split]["facts"], SETS[split]["main"]):
        obj = facts[main[0]].object
        assert facts[main[0]].kind == "event"
        assert {*main} == {
            i for i, fact in enumerate(facts) if fact.kind != "topic" and obj in (fact.object, fact.other)
        }
        assert facts[0] == Fact("topic", object=obj) or main[0] == 0


@each_split
def test_one_answer_per_question(split):
    for facts in SETS[split]["facts"]:
        assert len({fact_question(fact) for fact in facts}) == len(facts)


@each_split
def test_what_is_derived_is_true_and_comes_after_its_parts(split):
    for facts in SETS[split]["facts"]:
        for i, fact in enumerate(facts):
            if fact.kind in ("sum", "order"):
                assert fact in derived_facts(facts[:i])


def test_derived_by_hand():
    facts = [
        Fact("quantity", object="a", amount=40, unit="euros"),
        Fact("quantity", object="b", amount=90, unit="euros"),
        Fact("quantity", object="b", amount=7, unit="signatures"),
        Fact("event", object="a", action="sell", date="28 March"),
        Fact("event", object="b", action="sell", date="1 April"),
    ]
    assert set(derived_facts(facts)) == {
        Fact("sum", object="a", other="b", amount=130, unit="euros"),
        Fact("order", object="b", other="a", unit="euros"),
        Fact("order", object="a", other="b", unit="date"),
    }
    assert known_quantities(facts)["a", "date"] + 1 == known_quantities(facts)["b", "date"]


def test_distractors_share_entities():
    "In most bulletins at least one person occurs in two facts or more."

    def shared(facts):
        people = Counter(name for fact in facts for name in {fact.actor, fact.holder} - {""})
        return max(people.values(), default=0) > 1

    assert all(sum(map(shared, rows["facts"])) > 0.6 * N for rows in SETS.values())


@each_split
def test_facts_are_varied(split):
    facts_of_split = FACTS[split]
    assert {fact.kind for fact in facts_of_split} == {template.kind for template in TEMPLATES}
    assert {(fact.tense, fact.modality) for fact in facts_of_split if fact.action} == set(VERB_PATTERNS)
    assert {fact.action for fact in facts_of_split} - {""} == set(ACTIONS)
    assert {fact.stance for fact in facts_of_split} - {""} == {
        "says",
        "believes",
        "doubts",
        "denies",
        "admits",
    }
    assert {fact.quant for fact in facts_of_split} - {""} == {"some", "most", "all"}
    assert {fact.unit for fact in facts_of_split} - {""} == {"euros", "signatures", "date"}
    assert {fact.positive for fact in facts_of_split if fact.action} == {True, False}


@pytest.mark.parametrize("split", BULLETIN_SPLITS[1:])
def test_splits_are_alike_in_kinds_of_facts(split):
    "A split whose rare triples came from dropping reports would differ here."

    def share(split):
        return {
            kind: n / len(FACTS[split]) for kind, n in Counter(fact.kind for fact in FACTS[split]).items()
        }

    train_shares, split_shares = share("train"), share(split)
    assert (
        max(abs(train_shares[kind] - split_shares[kind]) for kind in train_shares if kind != "topic") < 0.05
    )
    assert split == "shifted" or abs(train_shares["topic"] - split_shares["topic"]) < 0.05


# One language for writing and reading
def test_what_is_written_can_be_read():
    rng, seen = random.Random(0), set()
    for fact in ALL:
        for template in _fact_templates(fact):
            assert parse_clause(_fill_template(fact, template, rng)) == fact
            seen.add(template.text + str(template.fixed))
    assert seen == {template.text + str(template.fixed) for template in TEMPLATES}


def test_every_verb_phrase_has_one_meaning():
    for slot, phrases in world.VERB_PHRASES.items():
        assert Counter(form for forms in phrases.values() for form in forms).most_common(1)[0][1] == 1, slot


def test_every_template_is_used_in_sources(monkeypatch):
    used, old = set(), _fill_template
    monkeypatch.setattr(
        world,
        "_fill_template",
        lambda fact, template, rng: used.add(template.text + str(template.fixed)) or old(fact, template, rng),
    )
    for i in range(N):
        bulletin("train", i)
    assert used == {template.text + str(template.fixed) for template in TEMPLATES}


@each_split
def test_a_source_says_its_facts(split):
    for source, facts in zip(SETS[split]["source"], SETS[split]["facts"]):
        parsed = parse_summary(source)
        assert tuple(fact for fact, _ in parsed.facts) == facts
        assert not parsed.unparsed
        assert not parsed.loose
        assert parsed.fluent == len(parsed.words)


def test_pronouns_connectives_and_joined_sentences_occur():
    text = " ".join(
        one_text for rows in SETS.values() for column in ("source", "reference") for one_text in rows[column]
    )
    for phrase in (
        "She ",
        "He ",
        " which costs ",
        ", while ",
        ", and ",
        "Also, ",
        "In addition, ",
        "Meanwhile, ",
        "At the same time, ",
    ):
        assert text.count(phrase) > 2, phrase


def test_titles_fit_pronouns():
    assert all(name[:3] in ("Ms ", "Mr ") for name in PEOPLE["usual"] + PEOPLE["shifted"])
    assert len({name[3:] for name in PEOPLE["usual"] + PEOPLE["shifted"]}) == len(
        PEOPLE["usual"] + PEOPLE["shifted"]
    )
    assert fact_person(Fact("report", actor="Ms A", holder="Mr B")) == "Mr B"
    assert fact_person(Fact("event", actor="Ms A")) == "Ms A"


def test_vocabulary_is_small():
    found = {
        word
        for rows in SETS.values()
        for column in ("source", "reference", "paraphrase")
        for text in rows[column]
        for word in re.findall(r"\w+", text)
    }
    assert 400 < len(found) < 900


def test_dates_are_in_calendar_order():
    assert DATES.index("28 March") + 1 == DATES.index("1 April") and len(set(DATES)) == len(DATES)


# Questions
QUESTIONS = {split: questions(split, N) for split in BULLETIN_SPLITS}


@each_split
def test_a_question_has_one_answer_and_it_stands_in_the_bulletin(split):
    for row, query in zip(SETS[split].itertuples(), QUESTIONS[split].itertuples()):
        assert (query.id, query.source) == (row.id, f"{row.source}\n\nQuestion: {query.question}")
        (answer,) = named_values(query.reference, query.kind)
        assert answer in named_values(row.source, query.kind) - named_values(query.question, query.kind)


def _asks_about(fact, query):
    question = query.question.lower()
    if fact.kind == "quantity":
        return query.kind == fact.unit and fact.object in question
    verbs = {fact.action, ACTIONS[fact.action].past} if fact.action else set()
    return fact.object in question and bool(verbs & set(question.strip("?").split()))


def _answer_of(fact, kind):
    field = dict(who="actor", when="date", where="place").get(kind, "amount")
    return named_values(str(getattr(fact, field)), kind)


@each_split
def test_one_fact_answers_the_question_and_no_other_speaks_of_it(split):
    for row, query in zip(SETS[split].itertuples(), QUESTIONS[split].itertuples()):
        (fact,) = [fact for fact in row.facts if _asks_about(fact, query)]
        assert fact.kind in ("event", "quantity")
        assert _answer_of(fact, query.kind) == named_values(query.reference, query.kind)


@each_split
def test_questions_are_worded_as_the_bulletin_words_them(split):
    verbs = [query for query in QUESTIONS[split].itertuples() if query.kind == "who"]
    for query in verbs:
        words_of = query.question[:-1].removeprefix("Who ").removesuffix(" whom")
        text = query.source.partition("\n\n")[0]
        assert words_of in text or words_of[0].lower() + words_of[1:] in text


def test_kinds_come_in_turn_and_copying_a_bulletin_is_seldom_an_answer():
    query = QUESTIONS["test"]
    assert set(query["kind"]) == {"who", "when", "where", "euros", "signatures"}
    assert (query["kind"][::5] == "who").mean() > 0.9 and (query["kind"][1::5] == "when").mean() > 0.5
    assert check_answers(list(SETS["test"]["source"]), query)["truth"].mean() < 0.05


def test_fewer_questions_are_a_prefix_of_more_and_another_seed_asks_others():
    assert questions("test", 7).equals(QUESTIONS["test"][:7])
    assert bulletin_question("test", 3) == QUESTIONS["test"].iloc[3].to_dict()
    assert not set(questions("test", 50, seed=1)["source"]) & set(QUESTIONS["test"]["source"])
    with pytest.raises(ValueError, match="questions has no split 'dev'"):
        questions("dev", 1)


REPLIES = {
    # A reply, and what it is to a question of this kind whose answer stands first
    ("who", "Ms Duncan", "Who will paint the old pier?"): {
        "Ms Duncan": "truth",
        "It was Ms. Duncan, of the parks team.": "truth",
        "Mr Cole, as Ms Duncan said": "wrong",
        "Mr Cole": "wrong",
        "Mrs Duncan": "wrong",
        "Duncan": "unread",
        "": "unread",
    },
    ("who", "Ms Duncan", "Who did what Mr Cole denied?"): {"Not Mr Cole but Ms Duncan": "truth"},
    ("when", "3 May", "What is the date on which Ms Duncan will paint the old pier?"): {
        "On May 3rd, 2023": "truth",
        "on the 3rd of May": "truth",
        "03 May": "truth",
        "3 May or 4 May": "wrong",
        "3 June": "wrong",
        "in May": "unread",
    },
    ("where", "Mill Street", "What is the place where Ms Lane painted the old pier?"): {
        "At Mill Street": "truth",
        "Mill Street and Rose Park": "wrong",
        "Mill Road": "wrong",
        "Ms Lane did": "unread",
    },
    ("euros", "120 thousand euros", "How much does the old pier cost?"): {
        "120 thousand euros": "truth",
        "It costs 120,000 euros since 3 May.": "truth",
        "120": "truth",
        "1,200 euros": "wrong",
        "120 of 480 thousand": "wrong",
        "a lot": "unread",
    },
    ("signatures", "340", "How many residents signed the petition on the old pier?"): {
        "340 residents": "truth",
        "340,000": "wrong",
        "On 3 May": "unread",
    },
}


@pytest.mark.parametrize("kind, answer, question", REPLIES)
def test_a_reply_is_right_when_it_names_the_right_value_and_no_other(kind, answer, question):
    replies = REPLIES[kind, answer, question]
    query = pd.DataFrame(dict(kind=kind, reference=answer, question=question), range(len(replies)))
    verdicts = check_answers(list(replies), query)
    assert (verdicts.sum(axis=1) == 1).all()
    assert dict(zip(replies, verdicts.idxmax(axis=1))) == replies
