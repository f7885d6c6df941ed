"""What runs jobs: devices, their streams and their memory, and what the host has."""
