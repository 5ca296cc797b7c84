"""Applications: the runner of notebooks, tables of users, and the command `uetrust`."""
