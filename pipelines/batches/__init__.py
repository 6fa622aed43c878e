"""Ids to batches of examples, sorted by length, in an order that follows from a seed (Vaswani et
al. 2017, section 5.1).
"""
