"""Sentences of the threshold study: what was not run is named."""

from uetrust.papers.threshold import sentences as threshold


def test_ways_that_were_not_run_are_named():
    said = threshold.coverage_sentence([("indata", "stump"), ("outdata", "isotonic")])
    assert said.startswith("13 of 15") and said.endswith("Missing: indata, stump; outdata, isotonic.")
