"""Every command and every public function says the same word for the same thing."""

import inspect
import re

import pytest

from tests.helpers.command_runs import APPS, EXAMPLES
from uetrust.cli.cli import main
from uetrust.cli.public import load_public, public_names
from uetrust.core.vocabulary import SYNONYMS, VOCABULARY

WORD_OF = {other: word for word, others in SYNONYMS.items() for other in others.split()}
PLURAL = {"metrics", "methods"}  # In Python, for several at once; an option of a command is singular
METAVARS = {  # Of an option with a word of the vocabulary
    **dict.fromkeys("quality uncertainty confidence truth document id".split(), {"COLUMN", "COLUMN..."}),
    "metric": {"COLUMN", "COLUMN...", "NAME..."},  # NAME: one that is computed
    "scale": {"COLUMN=LOWEST:HIGHEST..."},
    "out": {"FILE", "FOLDER"},
    "html": {"FILE"},
}


def options_of(name):
    "Option without dashes -> argument, of one command"
    found = {}
    for argument in APPS[name].assemble_argument_collection():
        for option in argument.names:
            if option.startswith("--"):
                found[option[2:]] = argument
    return found


def parameters():
    "(where, parameter) of all commands and public functions"
    for name in EXAMPLES:
        yield from ((f"uetrust {name}", option.replace("-", "_")) for option in options_of(name))
    for name in public_names():
        public = load_public(name)
        if inspect.isfunction(public):
            yield from ((name, parameter) for parameter in inspect.signature(public).parameters)


def test_no_command_and_no_public_function_has_another_word():
    used = set(parameters())  # Beside the word, as --group beside --document, another one is another thing
    pairs = [(where, word) for where, word in used if word in WORD_OF]
    wrong = {(where, word): WORD_OF[word] for where, word in pairs if (where, WORD_OF[word]) not in used}
    assert not wrong, f"say it with the word of core/vocabulary: {wrong}"


def test_an_option_is_singular():
    wrong = [(where, word) for where, word in parameters() if where.startswith("uetrust") and word in PLURAL]
    assert not wrong


def test_every_word_is_used_by_some_command_and_some_function():
    used = set(parameters())
    commands = {word for where, word in used if where.startswith("uetrust ")}
    functions = {word for where, word in used if not where.startswith("uetrust ")}
    assert set(VOCABULARY) <= commands
    assert set(VOCABULARY) - {"html", "metric", "out"} <= functions


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_word_stands_for_one_kind_of_value(name):
    for option, argument in options_of(name).items():
        assert argument.parameter.metavar in METAVARS.get(option, {argument.parameter.metavar}), option


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_help_says_what_to_type_and_not_the_type_of_a_program(name, capsys):
    assert main([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert not re.search(r"\b(STR|INT|PATH|FLOAT|BOOL|LIST)\b|\[default: \]|\[default: (True|inf)\]", shown)


@pytest.mark.parametrize("name", EXAMPLES)
def test_confidence_is_wherever_uncertainty_is_and_tables_have_all_forms(name):
    options = options_of(name)
    assert ("uncertainty" in options) == ("confidence" in options)
    if "csv" in options:
        assert {"json", "out"} <= set(options)
