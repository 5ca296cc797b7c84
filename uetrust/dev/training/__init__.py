"""Training of the tiny models that ship with the project, and what they do."""
