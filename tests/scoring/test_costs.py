"""Costs of a profile: every checkpoint of the settings has a shape."""

# ruff: noqa: F811

from tests.helpers.plan import offline  # noqa: F401
from uetrust.report import plan as p
from uetrust.scoring.costs import checkpoint_shape


def test_every_checkpoint_of_settings_has_a_shape():
    for profile in ("paper", "ice", "fflm", "narcissism", "threshold", "people-read"):
        names = [need.name for need in p.run_plan(profile).needs if need.kind == "checkpoint"]
        assert [name for name in names if checkpoint_shape(name) is None] == []
