"""Inference: few labels, guarantees, power, dose and response, and which methods cannot be told from the best."""
