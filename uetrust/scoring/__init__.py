"""Scoring: from stored statistics or from a file of texts to tables of scores; models behind metrics,
judges, caches, and the pipeline of a profile."""
