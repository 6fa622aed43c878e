"""Strings to tensors: corpora, vocabulary, buckets and batches (Vaswani et al. 2017, section 5.1).

Floor 0 of the house: nothing here imports `keras_transformer`.
"""
