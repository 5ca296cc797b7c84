"""Methods that learn from labels: probes of hidden states, of attention and of entropies, and tuned ensembles, judged only on texts whose source they never saw."""
