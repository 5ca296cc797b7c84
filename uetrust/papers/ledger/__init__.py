"""The ledger: every printed cell of the five papers, and what can be recomputed of it."""
