"""How one job runs."""
