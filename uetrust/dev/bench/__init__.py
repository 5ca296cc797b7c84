"""Benchmarks: time and memory beside the published procedures and the packages of peers."""
