"""Old keywords are answered with the new ones, and mistyped names with the nearest."""

import inspect

import pytest

from uetrust.core.vocabulary import SYNONYMS, VOCABULARY, renamed, suggestion


@renamed(clusters="document", scales="scale")
def counted(quality, document=None, scale=None):
    "Count."
    return len(quality), document, scale


def test_an_old_keyword_is_refused_with_the_new_one():
    assert counted([1, 2], document="d") == (2, "d", None)
    with pytest.raises(TypeError, match="^counted: clusters is now document$"):
        counted([1], clusters="d")
    with pytest.raises(TypeError, match="^counted: clusters is now document, scales is now scale$"):
        counted([1], scales={}, clusters="d")


def test_a_renamed_function_keeps_its_name_its_signature_and_its_docstring():
    assert list(inspect.signature(counted).parameters) == ["quality", "document", "scale"]
    assert (counted.__name__, counted.__doc__) == ("counted", "Count.")


@pytest.mark.parametrize(
    "name, said",
    [
        ("demoo", "Did you mean 'demo'?"),
        ("DEMO", "Did you mean 'demo'?"),
        ("rouge", "Did you mean 'rouge_l', 'rouge_2' or 'rouge_1'?"),
        ("nosuch", "No name is near."),
        (7, "No name is near."),
        ("sum", "Did you mean 'Rouge_lsum'?"),
    ],
)
def test_the_nearest_names_are_said_and_at_most_three(name, said):
    assert suggestion(name, ["demo", "rouge_l", "rouge_1", "rouge_2", "Rouge_lsum", 3]) == said


def test_no_word_is_a_synonym_of_another():
    words = [word for text in SYNONYMS.values() for word in text.split()]
    assert list(SYNONYMS) == list(VOCABULARY) and len(set(words)) == len(words)
    assert not set(words) & set(VOCABULARY)
