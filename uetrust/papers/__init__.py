"""Papers: the printed numbers, claims and released data of the five papers, what can be recomputed from
them, and the same studies on own runs."""
