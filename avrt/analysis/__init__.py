"""Schedulability: what can be known of a pipeline before it runs, each number with its label."""
