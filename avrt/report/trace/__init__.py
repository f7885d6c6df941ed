"""A run as a trace that Perfetto (ui.perfetto.dev) opens."""
