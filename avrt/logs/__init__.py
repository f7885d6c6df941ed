"""Recorded sensor logs and the run record."""
