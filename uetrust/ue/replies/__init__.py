"""Uncertainty from what replies of an API give in addition to the tokens of a text: drawn texts beside it, and
what the model answers when it is asked about it."""

from uetrust.core.registry import load_package

load_package(__name__, __path__)
