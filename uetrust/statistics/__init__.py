"""Statistics: where a model, a server or a file turns texts into numbers (token log-probabilities, entropies,
attention, entailment, embeddings, judges), computed once and stored."""
