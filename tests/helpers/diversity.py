"""What the tests of diversity share."""

import pytest

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles


def cases(group):
    import json

    return json.loads((oracles() / "uncertainty.json").read_text())[group] if oracles() else []


def named(group):
    return pytest.mark.parametrize(
        "case",
        cases(group) or [pytest.param(None, marks=pytest.mark.skip("UETRUST_ORACLES is not at hand"))],
        ids=lambda case: case and case["name"],
    )


def value(method, **given):
    "A score of one item, its statistics made on the way"

    def get(name):
        if name in given:
            return given[name]
        found = reg[name].fn(**{needed: [get(needed)] for needed in reg[name].needs})[0]
        if isinstance(found, Undefined):
            raise found
        return found

    entry = reg[getattr(method, "__name__", method)]
    return entry.fn(**{name: get(name) for name in entry.needs})
