"""Fault registry: every way to break a command that was ever found, and what the command must answer."""
