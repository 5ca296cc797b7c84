"""Hallucinations that people marked in summaries, and their votes on what is true."""
