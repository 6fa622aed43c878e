"""Translation: pairs of sentences, an encoder-decoder, BLEU (Vaswani et al. 2017, section 6.1)."""
