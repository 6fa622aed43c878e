"""Ids to batches of alike lengths, in the order of a seed (Vaswani et al. 2017, section 5.1)."""
