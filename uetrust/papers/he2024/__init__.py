"""He et al. 2024: fourteen uncertainty methods under 31 quality metrics."""
