"""A run's folder, which training writes and other commands read; versions; starting points."""
