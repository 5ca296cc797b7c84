"""Command line: the command `uetrust`, the runner of notebooks, and tables of users."""
