"""Labels of texts and tags of their words, by an encoder-only model."""
