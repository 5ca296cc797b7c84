"""The dataset `bulletin`: reproducible, varied, grammatical enough to be read back, and without leakage between its splits."""

import os
import random
import re
import subprocess
import sys
from collections import Counter

import pytest

from uetrust.data import bulletins as world
from uetrust.data.bulletins import (
    ACTIONS,
    DATES,
    MOODS,
    OBJECTS,
    PEOPLE,
    PLACES,
    SPLITS,
    TEMPLATES,
    Fact,
    bulletin,
    bulletins,
    derived,
    key,
    measures,
    person,
    phrasings,
    split_of,
    write,
)
from uetrust.data.checker import parse, read

N = 400
SETS = {s: bulletins(s, N) for s in SPLITS}
FACTS = {s: [f for x in d["facts"] for f in x] for s, d in SETS.items()}
ALL = [f for fs in FACTS.values() for f in fs]
each_split = pytest.mark.parametrize("split", SPLITS)


def words(s):
    return len(s.split())


def sentences(s):
    return len(re.findall(r"\.(?= |$)", s))


# Reproducible
@each_split
def test_fewer_bulletins_are_a_prefix_of_more(split):
    assert bulletins(split, 7).equals(SETS[split][:7])


def test_another_seed_is_another_dataset():
    assert not set(bulletins("train", 50, seed=1)["source"]) & set(SETS["train"]["source"])


def test_hash_seed_and_process_do_not_matter():
    src = "from hashlib import sha256; from uetrust.data.bulletins import *; print(sha256(repr([bulletin(s, i) for s in SPLITS for i in range(20)]).encode()).hexdigest())"

    def run(h):
        return subprocess.run(
            [sys.executable, "-c", src],
            env={**os.environ, "PYTHONHASHSEED": h},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert run("1") == run("2") != ""


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="no split 'dev'"):
        bulletins("dev", 1)


# Without leakage
def test_every_event_belongs_to_its_split_alone():
    triples = {
        s: {(f.actor, f.action, f.object) for f in fs if f.actor and f.action} for s, fs in FACTS.items()
    }
    assert all(split_of(*t) == s for s, ts in triples.items() for t in ts) and all(
        len(ts) > 2 * N for ts in triples.values()
    )


@each_split
def test_every_main_matter_has_an_event(split):
    assert all(
        any(x[i].kind == "event" for i in m) for x, m in zip(SETS[split]["facts"], SETS[split]["main"])
    )


@pytest.mark.parametrize("column", ["source", "reference", "paraphrase"])
def test_no_text_occurs_in_two_splits(column):
    seen = Counter(t for d in SETS.values() for t in set(d[column]))
    assert max(seen.values()) == 1


def test_shifted_names_occur_nowhere_else():
    def names(s):
        return {v for f in FACTS[s] for v in (f.actor, f.holder, f.place) if v}

    usual = names("train") | names("validation") | names("test")
    assert not names("shifted") & usual
    assert names("shifted") <= {*PEOPLE["shifted"], *PLACES["shifted"]} and usual <= {
        *PEOPLE["usual"],
        *PLACES["usual"],
    }


def test_20000_training_bulletins_without_repetition():
    d = bulletins("train", 20_000)
    assert d["source"].nunique() == d["id"].nunique() == 20_000


def test_hash_gives_eighty_ten_ten():
    c = Counter(split_of(p, a, o) for p in PEOPLE["usual"][:30] for a in ACTIONS for o in OBJECTS[:40])
    assert [round(c[s] / c.total(), 1) for s in SPLITS[:3]] == [0.8, 0.1, 0.1] and "shifted" not in c


# Shape
@each_split
def test_lengths(split):
    d, (lo, hi) = SETS[split], (8, 10) if split == "shifted" else (3, 8)
    n = d["source"].map(sentences)
    assert set(n) == set(range(lo, hi + 1))
    assert d["source"].map(words).between(30, 150).all()
    for c in ("reference", "paraphrase"):
        assert d[c].map(words).between(8, 40).all() and set(d[c].map(sentences)) == {1, 2, 3}


@each_split
def test_paraphrase_is_another_text(split):
    assert (SETS[split]["reference"] != SETS[split]["paraphrase"]).all()


@each_split
def test_main_is_all_that_is_said_about_one_object(split):
    for x, m in zip(SETS[split]["facts"], SETS[split]["main"]):
        obj = x[m[0]].object
        assert x[m[0]].kind == "event" and {*m} == {
            i for i, f in enumerate(x) if f.kind != "topic" and obj in (f.object, f.other)
        }
        assert x[0] == Fact("topic", object=obj) or m[0] == 0


@each_split
def test_one_answer_per_question(split):
    for x in SETS[split]["facts"]:
        assert len({key(f) for f in x}) == len(x)


@each_split
def test_what_is_derived_is_true_and_comes_after_its_parts(split):
    for x in SETS[split]["facts"]:
        for i, f in enumerate(x):
            if f.kind in ("sum", "order"):
                assert f in derived(x[:i])


def test_derived_by_hand():
    x = [
        Fact("quantity", object="a", amount=40, unit="euros"),
        Fact("quantity", object="b", amount=90, unit="euros"),
        Fact("quantity", object="b", amount=7, unit="signatures"),
        Fact("event", object="a", action="sell", date="28 March"),
        Fact("event", object="b", action="sell", date="1 April"),
    ]
    assert set(derived(x)) == {
        Fact("sum", object="a", other="b", amount=130, unit="euros"),
        Fact("order", object="b", other="a", unit="euros"),
        Fact("order", object="a", other="b", unit="date"),
    }
    assert measures(x)["a", "date"] + 1 == measures(x)["b", "date"]


def test_distractors_share_entities():
    "In most bulletins some person stands in two facts or more."

    def shared(x):
        return max(Counter(p for f in x for p in {f.actor, f.holder} - {""}).values(), default=0) > 1

    assert all(sum(map(shared, d["facts"])) > 0.6 * N for d in SETS.values())


@each_split
def test_facts_are_varied(split):
    fs = FACTS[split]
    assert {f.kind for f in fs} == {t.kind for t in TEMPLATES}
    assert {(f.tense, f.modality) for f in fs if f.action} == set(MOODS) and {f.action for f in fs} - {
        ""
    } == set(ACTIONS)
    assert {f.stance for f in fs} - {""} == {"says", "believes", "doubts", "denies", "admits"} and {
        f.quant for f in fs
    } - {""} == {"some", "most", "all"}
    assert {f.unit for f in fs} - {""} == {"euros", "signatures", "date"} and {
        f.positive for f in fs if f.action
    } == {True, False}


@pytest.mark.parametrize("split", SPLITS[1:])
def test_splits_are_alike_in_kinds_of_facts(split):
    "A split that made its rare triples by dropping reports would differ here."

    def share(s):
        return {k: n / len(FACTS[s]) for k, n in Counter(f.kind for f in FACTS[s]).items()}

    a, b = share("train"), share(split)
    assert max(abs(a[k] - b[k]) for k in a if k != "topic") < 0.05 and (
        split == "shifted" or abs(a["topic"] - b["topic"]) < 0.05
    )


# One language for writing and reading
def test_what_is_written_can_be_read():
    r, seen = random.Random(0), set()
    for f in ALL:
        for t in phrasings(f):
            assert read(write(f, t, r)) == f
            seen.add(t.text + str(t.fixed))
    assert seen == {t.text + str(t.fixed) for t in TEMPLATES}


def test_every_verb_phrase_has_one_meaning():
    for k, v in world.VERBS.items():
        assert Counter(form for forms in v.values() for form in forms).most_common(1)[0][1] == 1, k


def test_every_template_is_used_in_sources(monkeypatch):
    used, old = set(), write
    monkeypatch.setattr(world, "write", lambda f, t, r: used.add(t.text + str(t.fixed)) or old(f, t, r))
    for i in range(N):
        bulletin("train", i)
    assert used == {t.text + str(t.fixed) for t in TEMPLATES}


@each_split
def test_a_source_says_its_facts(split):
    for s, x in zip(SETS[split]["source"], SETS[split]["facts"]):
        p = parse(s)
        assert (
            tuple(f for f, _ in p.facts) == x and not p.unparsed and not p.loose and p.fluent == len(p.words)
        )


def test_pronouns_connectives_and_joined_sentences_occur():
    text = " ".join(t for d in SETS.values() for c in ("source", "reference") for t in d[c])
    for s in (
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
        assert text.count(s) > 2, s


def test_titles_fit_pronouns():
    assert all(p[:3] in ("Ms ", "Mr ") for p in PEOPLE["usual"] + PEOPLE["shifted"]) and len(
        {p[3:] for p in PEOPLE["usual"] + PEOPLE["shifted"]}
    ) == len(PEOPLE["usual"] + PEOPLE["shifted"])
    assert (
        person(Fact("report", actor="Ms A", holder="Mr B")) == "Mr B"
        and person(Fact("event", actor="Ms A")) == "Ms A"
    )


def test_vocabulary_is_small():
    found = {
        w
        for d in SETS.values()
        for c in ("source", "reference", "paraphrase")
        for t in d[c]
        for w in re.findall(r"\w+", t)
    }
    assert 400 < len(found) < 900


def test_dates_are_in_calendar_order():
    assert DATES.index("28 March") + 1 == DATES.index("1 April") and len(set(DATES)) == len(DATES)
