"""Where things are, whatever folder a test is in."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
FIXTURES = TESTS / "fixtures"
SHARED = ROOT.parent / "shared"
