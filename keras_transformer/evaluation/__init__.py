"""How good a translation is (Vaswani et al. 2017, section 6.1)."""
