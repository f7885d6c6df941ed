"""A small deterministic world with sensors."""
