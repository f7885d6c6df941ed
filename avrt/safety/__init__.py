"""Voting over replicas: who agrees, what is decided, who is trusted."""
