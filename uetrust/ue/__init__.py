"""Uncertainty estimation: every method is one function of the statistics of one text, registered with its
unit, direction and source."""

from uetrust.core.registry import load_package

load_package(__name__, __path__)  # All of them, always in the same order, which is the order of tables
