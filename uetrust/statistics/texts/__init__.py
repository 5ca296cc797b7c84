"""Statistics of texts: what an NLI model, an encoder, a likelihood or a judge says of given texts, one entry each."""

import uetrust.statistics.generator  # Its entries come first
from uetrust.core.registry import load_package
from uetrust.statistics.entry import COMPUTED_BY, MADE_BY, STATISTICS

load_package(__name__, __path__)  # A statistic is found because its module is here
