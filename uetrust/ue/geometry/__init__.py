"""Geometry of samples: how near to each other, and how far from the text, they lie by similarities, graphs and
states."""

from uetrust.core.registry import load_package

load_package(__name__, __path__)  # A method is found because its module is here
