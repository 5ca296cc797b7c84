"""Fixtures of several files of this folder."""

from tests.helpers.reply_files import replies  # noqa: F401
