"""Scoring: from stored statistics or from a file of texts to tables of scores; caches, costs, and the
pipeline of a profile."""
