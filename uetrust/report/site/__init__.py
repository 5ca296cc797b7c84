"""The report as a site: its pages, the index of tables and figures, and the gallery of scores."""
