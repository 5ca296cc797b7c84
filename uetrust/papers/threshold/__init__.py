"""Opitz 2024: why a high AUC does not mean right decisions."""
