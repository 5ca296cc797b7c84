"""The command line on good and on malformed files."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", [(), ("prr",), ("claims",), ("run",), ("report",)])
def test_every_help_shows_an_example(command):
    out = subprocess.run(
        [sys.executable, "-c", "from uetrust.cli.cli import main; main()", *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "example: uetrust" in out
