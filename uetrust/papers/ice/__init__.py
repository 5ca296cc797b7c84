"""Jain et al. 2023: a language model that judges summaries with scored examples in its prompt (ICE)."""
