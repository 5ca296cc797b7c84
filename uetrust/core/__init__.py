"""Checks of numbers, the table of scores, settings.ini, the registry of scores, stored results, and
docstrings: what every other wing uses."""
