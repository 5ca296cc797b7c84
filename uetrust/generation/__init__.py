"""Generation: a greedy text and K samples per source, from a local checkpoint or a server, kept as a bank
of generations."""
