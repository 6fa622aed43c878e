"""A corpus that is tokenized once and read many times (Vaswani et al. 2017, section 5.1)."""
