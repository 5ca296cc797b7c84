"""The checker of bulletins: clean text is clean, each edit is its own error, anything else is survived."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.data.bulletins import QUANTS, SPLITS, bulletins, key
from uetrust.data.checker import (
    ERRORS,
    WEIGHTS,
    changes,
    check,
    edit,
    errors,
    hypotheses,
    judge,
    known,
    marked,
    parse,
    read,
)
from uetrust.data.loaders import TOFU_ERRORS

N = 300
SETS = {s: bulletins(s, N) for s in SPLITS}
TRAIN = SETS["train"]
PARTS = ["relevance", "coherence", "fluency", "truth"]
VOCABULARY = sorted({w for d in SETS.values() for t in d["source"] for w in t.split()})
each_split = pytest.mark.parametrize("split", SPLITS)
each_error = pytest.mark.parametrize("error", ERRORS)


def found(v):
    return {e for e, x in v.ratios.items() if x}


def numbers(v):
    return [*v.ratios.values(), v.relevance, v.coherence, v.fluency, v.truth]


def test_the_errors_are_those_of_tofueval():
    assert ERRORS == tuple(TOFU_ERRORS)


# Clean text
@each_split
@pytest.mark.parametrize("column", ["reference", "paraphrase"])
def test_references_are_clean_and_complete(split, column):
    v = judge(SETS[split][column], SETS[split])
    assert (v[[*ERRORS, "unparsed"]] == 0).all(axis=None) and (v[PARTS] == 1).all(axis=None)


@each_split
def test_the_source_is_a_clean_summary_of_itself(split):
    v = judge(SETS[split]["source"], SETS[split])
    assert (v[[*ERRORS, "unparsed"]] == 0).all(axis=None) and (v[PARTS] == 1).all(axis=None)


@each_split
def test_another_bulletins_reference_is_extrinsic(split):
    d = SETS[split]
    v = judge([*d["reference"][1:], d["reference"][0]], d)
    assert (v["truth"] == 0).all() and v["EI"].mean() > 0.97 and (v["fluency"] == 1).all()


# Seven edits
@each_split
@each_error
def test_an_edit_raises_its_own_error_in_one_clause(split, error):
    rng, none = np.random.default_rng(0), 0
    for r in SETS[split].itertuples():
        if (s := edit(r, error, rng)) is None:
            none += 1
            continue
        v, p, k = check(s, r.facts, r.main), parse(s), known(r.facts, r.main)
        assert found(v) == {error}, s
        ((a, b),) = [span for f, span in p.facts if errors(f, k)]
        assert (
            v.labels[a:b, ERRORS.index(error)].all()
            and v.labels.sum() == b - a
            and v.ratios[error] == (b - a) / len(v.words)
        )
        assert not v.unparsed.any() and v.fluency == 1 and v.truth < 1
    assert none <= N * (0.5 if error in ("RE", "SOAF") else 0.05)


@each_error
def test_an_edit_is_reproducible(error):
    for r in TRAIN[:20].itertuples():
        assert edit(r, error, np.random.default_rng(3)) == edit(r, error, np.random.default_rng(3))


def test_an_unknown_edit_is_refused():
    with pytest.raises(ValueError, match="no error type 'XX'"):
        edit(TRAIN.iloc[0], "XX", np.random.default_rng(0))


@each_error
def test_changes_of_one_fact_are_wrong_in_one_way(error):
    r, n = random.Random(0), 0
    for row in TRAIN.itertuples():
        k = known(row.facts, row.main)
        for f in row.facts:
            for _, g in changes(f, error, k, r):
                n += 1
                assert errors(g, k) == {error}, (f, g)
    assert n > N / 4


# By hand
BULLETIN = """Ms Reed, the engineer of the roads team, approved the new bridge at Mill Street on 3 May. Mr Cole believes that Ms Lane will sell the new bridge.
Ms Lane denied that Mr Cole cleaned the old mill. Most members of the parks team supported the old mill. The new bridge costs 40 thousand euros.
The old mill costs 90 thousand euros. Mr Cole is the treasurer of the parks team. Ms Lane will inspect the old mill on 9 June."""
STATED = tuple(f for f, _ in parse(BULLETIN).facts)
MAIN = (0, 1, 4)


@pytest.mark.parametrize(
    "s, types",
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
def test_errors_by_hand(s, types):
    assert read(s) is not None
    assert errors(read(s), known(STATED, MAIN)) == set(types.split())


@pytest.mark.parametrize(
    "s, want",
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
def test_scores_by_hand(s, want):
    v = check(s, STATED, MAIN)
    assert (v.relevance, v.coherence, v.fluency, v.truth) == pytest.approx(want, abs=1e-12)


def test_weights_by_hand():
    assert [WEIGHTS[k] for k in ("event", "report", "quantity")] == [3, 2, 2]


def test_a_pronoun_means_the_person_before():
    assert found(
        check("Ms Reed approved the new bridge. She will inspect the old mill on 9 June.", STATED, MAIN)
    ) == {"MR"}
    assert not found(
        check(
            "Ms Lane will inspect the old mill on 9 June. Mr Cole is the treasurer of the parks team. He believes that Ms Lane will sell the new bridge.",
            STATED,
            MAIN,
        )
    )
    assert parse("Mr Cole is the treasurer of the parks team. She will inspect the old mill.").loose == {1}


def test_an_error_takes_its_clause_only():
    v = check("Mr Pike approved the new bridge, which costs 40 thousand euros.", STATED, MAIN)
    assert (
        v.labels[:, ERRORS.index("EI")].tolist() == [True] * 6 + [False] * 5
        and found(v) == {"EI"}
        and v.relevance == 2 / 7
    )
    assert marked(v) == "EI[Mr Pike approved the new bridge,] which costs 40 thousand euros."


def test_unread_words_carry_no_error():
    v = check("Ms Reed approved the new bridge. Ms Reed liked the new bridge.", STATED, MAIN)
    assert v.unparsed.tolist() == [False] * 6 + [True] * 6 and not v.labels.any() and v.fluency == 1 / 2
    assert marked(v) == "Ms Reed approved the new bridge. ?[Ms Reed liked the new bridge.]"


# Broken text
def salads():
    rng = np.random.default_rng(0)
    for r in TRAIN.itertuples():
        yield r, " ".join(rng.permutation(r.reference.split()))
        yield r, " ".join(rng.choice(VOCABULARY, 25))


def test_word_salad_scores_low():
    v = [check(s, r.facts, r.main) for r, s in salads()]
    assert (
        np.mean([x.truth < 0.1 for x in v]) > 0.98
        and np.mean([x.fluency for x in v]) < 0.05
        and np.mean([x.fluency < 0.3 for x in v]) > 0.98
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda w: w[: len(w) // 2] + ["of"],
        lambda w: [x for y in w for x in (y, y)],
        lambda w: [x.lower() for x in w],
        lambda w: w[:-1],
        lambda w: [*w, "and"],
        lambda w: [*w, "Blorp."],
    ],
)
def test_broken_references_lose_truth(spoil):
    for r in TRAIN.itertuples():
        v = check(" ".join(spoil(r.reference.split())), r.facts, r.main)
        assert v.truth < 1 and v.fluency < 1 and not v.labels.any()


def test_a_correct_side_fact_does_not_hurt():
    v = check("Ms Reed approved the new bridge. Mr Cole is the treasurer of the parks team.", STATED, MAIN)
    assert v.truth == pytest.approx(3 / 7, abs=1e-12)


broken = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from([*VOCABULARY, "the", "and", "which", "said", "that", "She", ".", "Ms", "Mr"]),
        max_size=40,
    ).map(" ".join),
)


@given(s=broken, i=st.integers(0, N - 1))
def test_any_text_gets_a_verdict(s, i):
    r = TRAIN.iloc[i]
    v, w = check(s, r.facts, r.main), check(s, r.facts, r.main)
    assert (
        v.words == s.split() and v.labels.shape == (len(v.words), 7) and v.unparsed.shape == (len(v.words),)
    )
    assert all(0 <= x <= 1 for x in numbers(v)) and v.truth <= min(
        v.relevance, 1 - (v.labels.any(1) | v.unparsed).mean() if v.words else 0
    )
    assert (
        not (v.labels.any(1) & v.unparsed).any() and numbers(v) == numbers(w) and (v.labels == w.labels).all()
    )


def outside_reports(r):
    return not any(
        r.facts[i].stance for i in r.main
    )  # A report without its beginning is a bare event: rightly an error


@given(i=st.integers(0, N - 1), n=st.integers(0, 40))
def test_the_start_of_a_reference_has_no_error(i, n):
    r = TRAIN.iloc[i]
    v = check(" ".join(r.reference.split()[:n]), r.facts, r.main)
    assert not v.labels.any() and all(0 <= x <= 1 for x in numbers(v))


@given(
    i=st.sampled_from([i for i, r in enumerate(TRAIN.itertuples()) if outside_reports(r)]),
    a=st.integers(0, 40),
    b=st.integers(0, 40),
)
def test_a_piece_of_a_reference_without_reports_has_no_error(i, a, b):
    r = TRAIN.iloc[i]
    assert not check(" ".join(r.reference.split()[a:b]), r.facts, r.main).labels.any()


def test_deeply_nested_reports_are_survived():
    assert check(
        "Ms Reed said that " * 5000 + "Ms Reed approved the new bridge.", STATED, MAIN
    ).unparsed.all()


@given(i=st.integers(0, N - 1), n=st.integers(0, 4))
def test_more_correct_main_facts_are_never_less_relevant(i, n):
    r = TRAIN.iloc[i]
    parts = r.reference.split(". ")

    def relevance(k):
        return check(". ".join(parts[:k]).rstrip(".") + ".", r.facts, r.main).relevance

    assert relevance(n) <= relevance(n + 1)


def test_judge_names_rows_and_refuses_other_lengths():
    d = SETS["test"][:3]
    v = judge(d["reference"], d)
    assert v["id"].tolist() == d["id"].tolist() and list(v) == ["id", "words", "unparsed", *ERRORS, *PARTS]
    with pytest.raises(ValueError, match="got 2 summaries and 3 bulletins"):
        judge(["", ""], d)


# Statements
@each_split
def test_statements_agree_with_the_checker(split):
    rng, labels = np.random.default_rng(0), []
    for r in SETS[split].itertuples():
        k = known(r.facts, r.main)
        for s, label in hypotheses(r, rng):
            p = parse(s)
            ((f, _),) = p.facts
            assert not p.unparsed and bool(errors(f, k)) == (label != "entailment"), (s, label)
            assert label != "contradiction" or not errors(f, k) & {"SOAF", "TME", "NMS"}
            labels.append(label)
    assert all(0.3 < labels.count(l) / len(labels) < 0.37 for l in ("entailment", "neutral", "contradiction"))


def test_statements_that_can_be_argued_about_are_left_out():
    "What only might happen, or what some did, can hold beside its opposite; a vaguer statement can follow from a sharper one."
    rng, seen = np.random.default_rng(1), set()
    for r in TRAIN.itertuples():
        k = known(r.facts, r.main)
        for s, label in hypotheses(r, rng):
            f = parse(s).facts[0][0]
            for e in errors(f, k):
                seen.add((e, label))
                c = k.facts.get(key(f))
                if e == "CO":
                    assert f.modality != "might" and f.quant != "some"
                if e == "TME":
                    assert f.tense != c.tense
                if e == "NMS" and f.quant != c.quant:
                    assert QUANTS.index(f.quant) > QUANTS.index(c.quant)
    assert seen == {
        (e, l)
        for l, es in dict(contradiction="CO RE EI MR", neutral="EI MR SOAF NMS TME").items()
        for e in es.split()
    }
