"""Data: downloads with their hashes, loaders of public benchmarks, and the embedded world of bulletins in
which every error is known."""
