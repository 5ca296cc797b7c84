"""Jia et al. 2023: faithfulness of a summary from the probabilities of one language model (FFLM)."""
