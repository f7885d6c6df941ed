"""MCAP files: where their records lie, what the summary says, and reading them by time."""
