"""Counts of values that no schema knows."""
