"""Replies of other tools."""

from tests.helpers.paths import ROOT

FOLDER = ROOT / "tests" / "fixtures" / "outputs"
