"""Expressions and events in keys: dimensions, key intervals, conjunctions, batches."""
