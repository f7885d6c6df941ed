"""The scheduling kernel: pure, events in, commands out."""
