"""What the tests of methods share."""

from uetrust.statistics.scores import load_scores

reg = load_scores()
SCORES = list(reg.of("ue"))
