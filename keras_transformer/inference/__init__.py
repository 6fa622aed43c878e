"""Trained models in Python: strings or pictures in; text, labels, vectors or attention out."""
