"""Segments of comma2k19: folders of numpy arrays."""
