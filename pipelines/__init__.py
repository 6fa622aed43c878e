"""Strings to tensors: corpora, vocabulary, buckets and batches (Vaswani et al. 2017, section 5.1).

The lowest layer of the code: nothing here imports `keras_transformer`.
"""
