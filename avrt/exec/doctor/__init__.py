"""What a host lacks for real time, what to do about it, and what it costs not to."""
