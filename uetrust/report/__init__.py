"""Report: plots, chapters, the page that ties them together, and the cards of scores."""
