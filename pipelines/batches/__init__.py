"""From ids to batches of similar length, in a seeded order (Vaswani et al. 2017, section 5.1)."""
