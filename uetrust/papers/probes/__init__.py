"""Methods that learn from labels: how many labels they need, and what is lost on another generator."""
