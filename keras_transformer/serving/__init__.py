"""The trained translator, strings to strings: live in Python, or as a SavedModel for TF Serving."""
