"""Fixtures of several files of this folder."""

from tests.helpers.banks_of_pages import toy_bank  # noqa: F401
