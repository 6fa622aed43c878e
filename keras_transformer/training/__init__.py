"""How the Transformer is trained (Vaswani et al. 2017, section 5)."""
