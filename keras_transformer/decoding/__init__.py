"""Searching for a translation (Vaswani et al. 2017, section 6.1).

A search knows a step function and a cache, never a model:

    step(ids, position, past, source) -> logits, past

with the newest ids of K hypotheses a sentence (B, K), how many tokens came before them, the cache
of those tokens, whose tensors have B K rows, and what is needed of the source, whose tensors have
B; logits are float32 (B, K, V). Every search gives ids (B, n, L), each row closed by EOS and filled
with PAD, and their scores (B, n), best first; a row without a hypothesis is all PAD, with a score
of -inf.

What a sentence is decoded with changes nothing: each has a length limit of its own, and one that is
done leaves the batch.
"""

from keras_transformer.decoding.beam_search import BeamSearch, length_penalty
from keras_transformer.decoding.greedy import GreedySearch
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.decoding.sampling import Sampling

__all__ = ["BeamSearch", "DecodingOptions", "GreedySearch", "Sampling", "length_penalty"]
