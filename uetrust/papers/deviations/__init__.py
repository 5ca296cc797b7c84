"""Deviations: how the set-ups of the papers differ from what a run here does, and own numbers beside printed ones."""
