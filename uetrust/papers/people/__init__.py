"""Judgements of people: translations, summaries and hallucinations that people rated, and what a metric changes."""
