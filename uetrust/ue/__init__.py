"""Uncertainty estimation: every method is one function of the statistics of one text, registered with its
unit, direction and source."""
