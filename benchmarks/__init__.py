"""Benchmarks: each prints a table of ratios measured side by side and writes its results for the page."""
