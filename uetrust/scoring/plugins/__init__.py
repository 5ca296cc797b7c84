"""Uncertainty scores where other tools run: in a test of your own, in tasks of Inspect and of lm-evaluation-harness."""
