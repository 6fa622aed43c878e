"""The four ids that every vocabulary reserves (Vaswani et al. 2017, section 5.1)."""

# Padding, unknown piece, beginning and end of a sentence.
PAD, UNK, BOS, EOS = range(4)
