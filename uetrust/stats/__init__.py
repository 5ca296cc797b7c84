"""Statistics of generated texts: token log-probabilities, entropies, attention, entailment and embeddings,
computed once and stored."""
