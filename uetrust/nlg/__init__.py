"""Quality metrics of generated text: every metric is one function of texts or of statistics, registered
with its unit, direction and source."""
