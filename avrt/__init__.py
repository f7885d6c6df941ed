"""avrt: a real-time automotive perception runtime."""
