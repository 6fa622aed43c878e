"""The trained translator, strings to strings, in Python."""
