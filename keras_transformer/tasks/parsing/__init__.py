"""Constituency parsing: sentences to trees, labelled F1 (Vaswani et al. 2017, section 6.3)."""
