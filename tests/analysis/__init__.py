"""Analyses against their sources, against brute force and against the kernel itself."""
