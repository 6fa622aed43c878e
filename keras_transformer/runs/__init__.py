"""A run's folder, which training writes and other commands read; what a new run starts from."""
