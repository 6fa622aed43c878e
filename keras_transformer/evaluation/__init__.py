"""Scores of translations, trees, labels and tags (Vaswani et al. 2017, sections 6.1 and 6.3)."""
