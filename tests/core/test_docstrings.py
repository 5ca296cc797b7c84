"""Docstrings from comments: what stands behind a parameter, or above it, is what `help` says of it."""

import ast

import pytest

from uetrust.core.docstrings import Parameter, comments_of, described, numpydoc


def measured(
    quality,  # Larger is better
    # One value for each text,
    # or for each sample
    *uncertainty: float,
    share: float = 0.5,  # Between 0 and 1
    **options,
) -> dict:  # Value by name
    """What was measured.

    Examples
    --------
    >>> 1 + 1
    2
    """


class Kept:
    "What is kept"

    name: str  # Of the file
    size: int = 0


class Made:
    "What is made"

    def __init__(
        self,
        at,  # Its place
    ):
        self.at = at


def test_a_comment_behind_counts_else_the_lines_above():
    parameters, result = comments_of(measured)
    assert parameters == [
        Parameter("quality", "", None, "Larger is better"),
        Parameter("*uncertainty", "float", None, "One value for each text, or for each sample"),
        Parameter("share", "float", "0.5", "Between 0 and 1"),
        Parameter("**options", "", None, ""),
    ]
    assert result == Parameter("", "dict", None, "Value by name")


def test_sections_stand_between_the_text_and_the_examples():
    doc = numpydoc(measured)
    titles = ["What was measured.", "Parameters\n---", "Returns\n---", "Examples\n---"]
    places = [doc.index(title) for title in titles]
    assert places == sorted(places) and "share : float, default 0.5\n    Between 0 and 1" in doc
    assert doc.endswith(">>> 1 + 1\n2")


def test_what_has_its_sections_stays_as_it_is():
    def done(x):  # A comment that is not used
        """Done.

        Parameters
        ----------
        x
            In words of its own
        """

    assert numpydoc(done).endswith("In words of its own") and "not used" not in numpydoc(done)


def test_a_class_has_fields_or_the_parameters_of_its_init():
    assert [p.name for p in comments_of(Kept)[0]] == ["name", "size"]
    assert "Attributes\n----------\nname : str\n    Of the file\nsize : int, default 0" in numpydoc(Kept)
    assert comments_of(Made) == ([Parameter("at", "", None, "Its place")], None)
    assert "Parameters\n----------\nat\n    Its place" in numpydoc(Made)


@pytest.mark.parametrize(
    "source, comment",
    [
        ("def f(x):  # The result\n    pass", ""),
        ("def f(\n    x,  # A text\n):\n    pass", "A text"),
        ("def f(\n    x=dict(a=1),  # Of names\n):\n    pass", "Of names"),
    ],
)
def test_a_comment_on_the_line_that_ends_the_header_is_of_the_result(source, comment):
    (parameter,), result = described(ast.parse(source).body[0], source)
    assert parameter.comment == comment and (result.comment == "The result") == (comment == "")
