"""Searching for a translation (Vaswani et al. 2017, section 6.1).

A search knows a stepper, a state and a source, never a model. Shapes: B sentences, b of them
unfinished, K hypotheses for each, V the vocabulary, S the source's length.

**A stepper** adds one token to each hypothesis:

    stepper(ids, position, state, source) -> logits, state, attention

    ids        the newest tokens, (b, K)
    position   how many tokens came before them, a scalar
    state      any nest of tensors with b K rows: what the stepper keeps of those tokens
    source     any nest of tensors with b rows: what it needs of the source
    logits     float32 (b, K, V)
    attention  how much each hypothesis attends to the source, float32 (b, K, S); None from a model
               that attends to no source

`stepper.start(rows)` is the state before the first token. `stepper.growing` has the structure of
the state: for each tensor the axis along which it grows by one at every step, or -1 if its size is
fixed. `stepper.is_token(source)` says which source positions are no padding, booleans (b, S). Only
a coverage penalty asks for that and for the attention.

A stepper that reads blocks of k tokens also has `block_size`, k, and

    stepper.block(ids, lengths, state, source) -> logits, given, state
    stepper.first_proposals(source) -> logits
    stepper.proposals(given, ids, lengths, source) -> logits

    ids        a token that is certain and k - 1 that are proposed after it, (b, k)
    lengths    how many tokens came before them, (b,)
    state      has as many positions as the longest sentence; a sentence's own are the last ones;
               the new state has k more, and the search may cut off those of rejected tokens
    logits     after each token of the block, float32 (b, k, V)
    given      the decoder's output at each position, (b, k, any). `proposals` takes that of one
               position, (b, any), the token `ids` (b,) that it predicted, and how many came before
               that, `lengths` (b,); it gives logits of the k - 1 tokens after it, (b, k - 1, V).
               `first_proposals` gives those after BOS

**Every search** is called like this:

    search(stepper, source, limits, minima=None, prefixes=None, seeds=None) -> ids, scores

    limits     most tokens of each sentence, EOS among them, integers (B,), each at least 1; EOS is
               forced there
    minima     fewest tokens of each sentence, EOS among them, integers (B,); at a smaller limit,
               the limit decides
    prefixes   tokens to begin with, integers (B, P), padded with PAD; a limit grows to hold them
               and EOS
    seeds      a number for each sentence, int64 (B,); only a search that draws reads it

    ids        int32 (B, n, L), each row closed by EOS and filled with PAD
    scores     float32 (B, n), best first; if a sentence has fewer than n hypotheses, the others
               score -inf, and their ids are all PAD

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
