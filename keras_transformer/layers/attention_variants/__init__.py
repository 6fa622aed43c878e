"""What may stand in the place of section 3.2.1's attention (Vaswani et al. 2017)."""
