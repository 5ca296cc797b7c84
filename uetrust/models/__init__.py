"""Language models: loading a checkpoint, one forward pass, and what is computed from it (token
log-probabilities, encodings, classifiers, heads, questions). PyTorch is imported here and in the wings
generation, statistics and dev."""
