"""Runs: the folder that training writes and other commands read, and what a new run starts from."""
