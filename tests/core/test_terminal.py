"""Tables on a terminal: words are folded at its width, and no digit of a number is cut."""

import pandas as pd
import pytest

from uetrust.core.terminal import table_text, terminal_width

TABLE = pd.DataFrame(
    dict(
        name=["a", "b"],
        value=[1 / 3, None],
        what=["few words", "many words that need a second line"],
    )
)


def test_without_a_width_every_row_is_one_line():
    lines = table_text(TABLE).splitlines()
    assert len(lines) == 3 and lines[1].split()[1] == "0.3333" and lines[2].split()[1] == "-"
    assert table_text(TABLE, digits=1).splitlines()[1].split()[1] == "0.3"


@pytest.mark.parametrize("width", [34, 42])
def test_words_are_folded_and_numbers_stay_whole(width):
    text = table_text(TABLE, width=width)
    assert max(map(len, text.splitlines())) <= width and len(text.splitlines()) > 3
    assert "0.3333" in text and "".join(text.split()).count("second") == 1


def test_numbers_next_to_folded_words_end_at_one_column():
    long = pd.DataFrame(dict(what=["several words to be folded here", "few"], value=[1.5, 12345.25]))
    lines = table_text(long, digits=2, width=30).splitlines()
    ends = {
        line.rindex(number) + len(number)
        for line in lines
        for number in ("1.50", "12345.25")
        if number in line
    }
    assert len(ends) == 1 and len(lines) == 4


def test_where_there_is_no_room_to_fold_a_text_is_cut_to_a_third():
    many = pd.DataFrame({name: ["word " * 8] for name in ("first", "second", "third")})
    text = table_text(many, width=36)
    assert max(map(len, text.splitlines())) <= 36 and text.count("word") == 3 * 2 and text.count("...") == 3


def test_a_terminal_too_narrow_for_words_shows_every_number():
    wide = pd.DataFrame({f"column_{i}": [i + 0.5] for i in range(8)})
    text = table_text(wide, digits=2, width=30)
    assert all(f"{i + 0.5:.2f}" in text for i in range(8)) and max(map(len, text.splitlines())) <= 30


def test_what_is_no_terminal_has_no_width(monkeypatch):
    assert terminal_width() is None
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "77")
    assert terminal_width() == 77


@pytest.mark.parametrize("word", ["[bold]rain[/bold]", "[/]", "[link=x]", ":umbrella:", "\\[red]", "<b>"])
def test_folded_words_stand_as_they_are_written(word):
    "Whoever prints the table may read such signs as orders: a style, or a picture."
    frame = pd.DataFrame({f"{word} name": [f"fell on {word} and on the hall of the town"], "value": [1.5]})
    text = table_text(frame, width=30)
    assert len(text.splitlines()) > 2 and "".join(text.split()).count(word) == 2


def test_a_small_number_is_not_shown_as_nothing():
    table = pd.DataFrame(dict(p=[0.25, 1e-9, 0.0, -1e-9], note=["a " * 30] * 4))
    for width in (None, 60):
        shown = table_text(table, width=width)
        assert all(text in shown for text in ("0.2500", "<0.0001", " 0.0000", ">-0.0001"))
