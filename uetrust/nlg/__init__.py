"""Quality metrics of generated text: every metric is one function of texts or of statistics, registered
with its unit, direction and source."""

from uetrust.core.registry import load_package

load_package(__name__, __path__)  # All of them, always in the same order, which is the order of tables
