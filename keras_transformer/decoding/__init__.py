"""Searching for a translation (Vaswani et al. 2017, section 6.1).

A search knows a stepper, a state and a source, never a model. Shapes: B sentences, b of them
unfinished, K hypotheses for each, V the vocabulary, S the source's length.

**A stepper** adds one token to each hypothesis:

    stepper(ids, position, state, source) -> logits, state, attention

    ids        the newest tokens, (b, K)
    position   how many tokens came before them, a scalar
    state      any nest of tensors with b K rows, such as the keys and values of those tokens
    source     any nest of tensors with b rows, such as the output of the encoder
    logits     float32 (b, K, V)
    attention  weight of each source position for each hypothesis, float32 (b, K, S); None from a
               model that attends to no source

`stepper.start(rows)` is the state before the first token. `stepper.growing` has the structure of
the state: for each tensor the axis along which it grows by one at every step, or -1 if its size is
fixed. `stepper.is_token(source)` is False at padding, booleans (b, S). Only the coverage penalty
needs that and the attention.

A stepper that reads blocks of k tokens also has `block_size`, k, and

    stepper.block(ids, lengths, state, source) -> logits, outputs, state
    stepper.first_proposals(source) -> logits
    stepper.proposals(output, ids, lengths, source) -> logits

    ids        a token that is certain and the k - 1 proposed after it, (b, k)
    lengths    how many tokens came before them, (b,)
    state      has as many positions as the longest sentence; a shorter one's are the last of these.
               The new state has k more, and the search may cut off those of rejected tokens
    logits     after each token of the block, float32 (b, k, V)
    outputs    the decoder's output at each position, (b, k, any). `proposals` takes the output at
               one position, (b, any), the token `ids` (b,) predicted there, and how many came
               before that token, `lengths` (b,); it returns the logits of the k - 1 tokens after
               it, (b, k - 1, V). `first_proposals` returns those after BOS

**Every search** is called the same way:

    search(stepper, source, limits, minima=None, prefixes=None, seeds=None) -> ids, scores

    limits     largest number of tokens of each translation, EOS included, integers (B,), at least
               1; EOS is forced there
    minima     smallest number of tokens of each translation, EOS included, integers (B,); a smaller
               limit overrides it
    prefixes   tokens to begin with, integers (B, P), padded with PAD; a limit grows to hold them
               and EOS
    seeds      a number for each sentence, int64 (B,); only `Sampling` reads it

    ids        int32 (B, n, L), each row ends in EOS and is filled up with PAD
    scores     float32 (B, n), best first; where a sentence has fewer than n hypotheses, the scores
               are -inf and the ids PAD

The result for a sentence does not depend on the other sentences of its batch. A finished sentence
leaves the batch.
"""

from keras_transformer.first_use import imported_at_first_use

# Imported when first used: commands read options without TensorFlow.
_HOMES = {
    "BeamSearch": "beam_search",
    "BlockwiseSearch": "blockwise",
    "DecodingOptions": "options",
    "GreedySearch": "sampling",
    "Sampling": "sampling",
    "length_penalty": "beam_search",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = imported_at_first_use(__name__, _HOMES)
