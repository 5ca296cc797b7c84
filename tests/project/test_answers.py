"""What the experiments answer, as `data/answers.csv` lists it: sentences that a stranger can read.

`scripts/nbs.py pages` and `scripts/nbs.py answers` write the list, and `scripts/nbs.py check` compares it.
"""

import re

import pandas as pd
import pytest

from tests.helpers.paths import ROOT

ANSWERS = pd.read_csv(ROOT / "data" / "answers.csv")
LINT = {
    "a number is reported that is zero": r"(?<![\d.,-])0 (of|are|have|texts|prompts|sources)\b",
    "a hash": r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b",
    "a phrase of ours": r"best of many|cannot be told|told apart|were asked|is asked|commoner",
    "German word order": r"\bhas on other\b|texts of whom|[Ww]ays on\b|\bBeyond chance are\b",
    "a list of checkpoints": r"(tiny-[\w-]+, ){2}",
}


def sentences(text):
    return [s for s in re.split(r"(?<=[.?!])\s+(?=[A-Z0-9])", text) if s]


SENTENCES = [(row.page, s) for row in ANSWERS.itertuples() for s in sentences(row.answer)]


def brackets(sentence):
    "Groups in brackets; an interval after its number counts as a part of the number"
    return len(re.findall(r"\(", sentence))


@pytest.mark.parametrize("what", LINT)
def test_no_answer_has_a_pattern_that_readers_stumbled_over(what):
    assert [(page, s) for page, s in SENTENCES if re.search(LINT[what], s)] == []


def test_the_lint_finds_each_pattern():
    bad = [
        "Of the 28, 0 are beyond chance.",
        "Read by tiny-bart 40450132d6c44ae2.",
        "It is the best of many.",
        "It has on other documents less PRR.",
        "Three generators (tiny-bart, tiny-t5, tiny-llama) wrote them.",
    ]
    for pattern, sentence in zip(LINT.values(), bad, strict=True):
        assert [s for s in bad if re.search(pattern, s)] == [sentence]


FIRST = ANSWERS.groupby("page")["answer"].first().map(lambda text: sentences(text)[0])
EXPERIMENTS = sorted((ROOT / "nbs" / "experiments").glob("*/*.ipynb"))


def test_every_page_answers_its_question():
    pages = {f"{path.parent.name}/{path.stem}" for path in EXPERIMENTS}
    assert pages - set(FIRST.index) == set()


def test_an_answer_begins_with_a_claim_of_one_breath():
    "At most 25 words and one bracket"
    long = FIRST[(FIRST.str.split().str.len() > 25) | (FIRST.map(brackets) > 1)]
    assert long.to_dict() == {}


def test_the_claim_comes_before_its_number():
    "Four words at least; a digit within a name is none"
    before = FIRST.str.split(r"(?<![\w-])\d", n=1, regex=True).str[0].str.split().str.len()
    assert FIRST[before < 4].to_dict() == {}


def test_sentences_are_short():
    "At most 25 words, but for few; a name or an interval is a word"
    words = pd.Series({s: len(s.split()) for _, s in SENTENCES})
    assert words.max() <= 40 and (words > 25).mean() <= 0.2, words[words > 25].sort_values().to_dict()


def test_a_sentence_has_one_bracket():
    found = pd.Series({s: brackets(s) for _, s in SENTENCES})
    assert found.max() <= 2 and (found > 1).mean() <= 0.1, found[found > 1].to_dict()
