"""Fixtures of several files of this folder."""

from tests.helpers.few_labels import texts  # noqa: F401
