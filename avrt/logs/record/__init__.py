"""The run record: written while a pipeline runs, and read back, damage included."""
