"""Masked language modelling: text of one language, an encoder-only model, hidden pieces."""
