"""What leaves a run: SavedModels for TF Serving, and models for other engines."""
