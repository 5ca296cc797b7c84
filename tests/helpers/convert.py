"""What the tests of convert share."""

from uetrust.cli.cli import main

PAIRS = [("The council met on Monday.", "It met."), ("Rain fell in the north.", "Rain fell. All day.")]


def convert(*words):
    assert main(["convert", *map(str, words)]) == 0


def refused(capsys, *words):
    assert main(["convert", *map(str, words)]) == 2
    return capsys.readouterr().err
