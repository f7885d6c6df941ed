"""The loops that supply time and data to the kernel."""
