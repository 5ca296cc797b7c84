"""Exams: answers are those of a plain loop, the same for the same seed, and kept separately."""

import re
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import norm

from uetrust.report.lessons.exam import EXAM_KINDS, _exam_questions, exam_markdown

# Exams


def means(risks):
    return [sum(risks[:k]) / k for k in range(1, len(risks) + 1)]


def ratio(risks, curve=means, last=0):
    "PRR by a plain loop; `last`: how many curve values count, from the end"
    method, oracle = curve(list(risks))[-last:], curve(sorted(risks))[-last:]
    orders = [curve(list(order))[-last:] for order in permutations(risks)]
    chance = sum(map(sum, orders)) / len(orders)
    return (chance - sum(method)) / (chance - sum(oracle))


def of_ties(v):
    risks, groups = list(v["risks"]), list(v["uncertainty"])
    mean = {g: np.mean([r for r, h in zip(risks, groups) if h == g]) for g in groups}
    oracle, chance = means(sorted(risks)), 6 * np.mean(risks)
    return (chance - sum(means([mean[g] for g in groups]))) / (chance - sum(oracle))


def pairs_in_order(v):
    wrong, right = ([i for i, label in enumerate(v["labels"]) if label == l] for l in (0, 1))
    return np.mean([i > j for i in wrong for j in right])


def average_precision(v):
    wrong = 1 - v["labels"][::-1]
    return np.mean([wrong[: i + 1].mean() for i in range(8) if wrong[i]])


SOLVED = dict(
    prr=lambda v: ratio(v["risks"]),
    prr_sum=lambda v: ratio(v["risks"], lambda risks: list(np.cumsum(risks))),
    half=lambda v: ratio(v["risks"], last=3),
    ties=of_ties,
    weight=lambda v: sum(1 / k for k in range(v["position"], v["n"] + 1)) / v["n"],
    auroc=pairs_in_order,
    auprc=average_precision,
    aurc=lambda v: np.mean([1 - v["labels"][:k].mean() for k in range(1, 9)]),
    kept=lambda v: v["labels"][: v["kept"]].mean(),
    holm=lambda v: min(1, 4 * min(v["p"])),
    texts=lambda v: ((norm.ppf(0.975) + norm.ppf(0.8)) * v["spread"] / v["effect"]) ** 2,
    paired=lambda v: (v["first"] ** 2 + v["second"] ** 2 - 2 * v["r"] * v["first"] * v["second"]) ** 0.5,
    people=lambda v: 1 / (1 + (1 - v["r"]) / (v["m"] * v["r"])),
    carriers=lambda v: sum(v["risks"]) ** 2 / sum(r * r for r in v["risks"]),
)


@pytest.mark.parametrize("kind", EXAM_KINDS)
def test_answers_of_exams_are_those_of_a_plain_loop(kind):
    drawn = [q for seed in range(4) for q in _exam_questions(seed, len(EXAM_KINDS)) if q.kind == kind]
    assert len(drawn) == 4
    for question in drawn:
        assert np.isclose(question.answer, SOLVED[kind](question.values), rtol=1e-6)


def test_an_exam_is_the_same_for_the_same_seed_and_keeps_answers_separate():
    text = exam_markdown(7, 10)
    assert text == exam_markdown(7, 10) != exam_markdown(8, 10)
    questions, answers = text.split("\n---\n")
    assert (
        len(re.findall(r"^\d+\. ", questions, re.M)) == len(re.findall(r"^\d+\. \*\*", answers, re.M)) == 10
    )
    assert "**" not in questions


def test_errors_on_the_same_texts_correlate_so_that_pairing_shortens_the_error():
    drawn = [EXAM_KINDS["paired"](np.random.default_rng(seed)) for seed in range(40)]
    for text, values, answer, _ in drawn:
        assert 0 < values["r"] < 1 and answer < np.hypot(values["first"], values["second"])
        assert [float(number) for number in re.findall(r"\d\.\d+", text)] == list(values.values())
