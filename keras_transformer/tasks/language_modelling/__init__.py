"""Language modelling: text of one language, a decoder-only model, perplexity."""
