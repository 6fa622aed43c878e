"""Greedy search (Vaswani et al. 2017, section 6.1, with a beam of 1) in fewer steps: blockwise
parallel decoding (Stern, Shazeer and Uszkoreit 2018, "Blockwise Parallel Decoding for Deep
Autoregressive Models", sections 3 and 4).
"""

import tensorflow as tf

from keras_transformer.decoding import loop
from keras_transformer.decoding.candidates import FREE, log_normalizer
from keras_transformer.decoding.constraints import forced_tokens
from keras_transformer.decoding.sampling import GreedySearch
from pipelines.special_ids import BOS, EOS, PAD


class BlockwiseSearch(GreedySearch):
    """`GreedySearch` in fewer steps, by a stepper that proposes k tokens at once.

    1. The model reads a block: a token that is certain and the k - 1 proposed after it.
    2. A proposal is accepted if it is the likeliest token after those before it. The first that is
       not is rejected, with all after it. The block thus yields 1 to k certain tokens.
    3. The next block is proposed from the decoder's output at the last accepted position and the
       token predicted there. The first block is proposed from BOS.

    As in the authors' section 4, a single call of the decoder verifies one block (step 2) and
    proposes the next (step 3). Their first call only proposes; here BOS does, without a call.
    Results differ from `GreedySearch`'s only where two tokens are equally likely up to rounding.

    Arguments and results as in `GreedySearch`, but the stepper must have `block_size`, `block`,
    `first_proposals` and `proposals`: see `keras_transformer.decoding`.
    """

    def _one_by_one(self, stepper, source, unfinished):
        sentences = tf.shape(unfinished["limit"])[0]
        if not hasattr(stepper, "block_size"):
            raise ValueError(
                "a blockwise search needs the stepper of one model with a `block_size` of 2 or "
                f"more. Received: a {type(stepper).__name__}. Search with GreedySearch()."
            )
        unfinished = {
            **unfinished,
            "sentence": tf.range(sentences),
            "length": tf.zeros([sentences], tf.int32),
            "past": tf.zeros([sentences, 0], tf.int32),
            "block": _block(tf.fill([sentences], BOS), stepper.first_proposals(source)),
        }
        results = (tf.zeros([sentences, 0], tf.int32), tf.zeros([sentences]))

        # Each turn yields at least one token, so there are no more turns than the longest limit.
        def turn(number, *carried):
            return self._turn(stepper, *carried)

        state = stepper.start(sentences)
        growing = ({"past": 1}, (1, -1), stepper.growing)
        ids, scores = loop.turns(turn, unfinished, results, source, state, growing)
        ids = tf.where(scores[:, None] > -float("inf"), ids, PAD)
        used = tf.math.count_nonzero(tf.reduce_any(ids != PAD, axis=0), dtype=tf.int32)
        return ids[:, :used], scores

    def _turn(self, stepper, unfinished, results, source, state):
        """Read a block of each sentence, record its accepted tokens, and propose the next block."""
        block = self._with_forced(unfinished)
        logits, outputs, state = stepper.block(block, unfinished["length"], state, source)
        histories = _histories(unfinished["past"], block)
        newest, scores, is_certain = self._verified(logits, block, histories, unfinished)
        results = _recorded(results, newest, scores, is_certain, unfinished)
        count = tf.reduce_sum(tf.cast(is_certain, tf.int32), axis=1)
        last = tf.gather(newest, count - 1, batch_dims=1)
        may_go_on = tf.gather(scores, count - 1, batch_dims=1) > -float("inf")
        remaining = tf.cast(tf.where((last != EOS) & may_go_on)[:, 0], tf.int32)
        state, source = loop.take_some((state, source), remaining)
        histories, outputs, count, last, unfinished = loop.take(
            (histories, outputs, count, last, unfinished), remaining
        )
        length = unfinished["length"] + count
        output = tf.gather(outputs, count - 1, batch_dims=1)
        proposed = stepper.proposals(output, last, length, source)
        # At least 0, because the maximum of no sentences is the lowest integer.
        longest = tf.maximum(tf.reduce_max(length), 0)
        past = tf.gather(histories, count - 1, batch_dims=1)
        unfinished = {
            **unfinished,
            "length": length,
            "past": past[:, tf.shape(past)[1] - longest :],
            "block": _block(last, proposed),
        }
        state = _cut(state, stepper.growing, longest, count - stepper.block_size)
        return unfinished, results, source, state

    def _with_forced(self, unfinished):
        """Return the block with proposals replaced by the tokens that are forced there."""
        block = unfinished["block"]
        places = unfinished["length"][:, None] + tf.range(tf.shape(block)[1] - 1)
        forced = forced_tokens(places, unfinished)
        proposed = tf.where(forced == FREE, block[:, 1:], forced)
        return tf.concat([block[:, :1], proposed], axis=1)

    def _verified(self, logits, block, histories, unfinished):
        """Return the token that greedy search chooses after each token of a block, (b, k); its log
        P, float32 (b, k); and whether all of the block up to there is accepted, booleans (b, k).
        """
        position = unfinished["length"][:, None] + tf.range(tf.shape(block)[1])
        logits, allowed, forced, may_end = self.constraints(logits, histories, position, unfinished)
        chosen, newest = self._choose(allowed, forced, may_end, position, unfinished)
        newest = tf.reshape(newest, tf.shape(block))
        scores = tf.reshape(chosen - log_normalizer(logits), tf.shape(block))
        before = newest[:, :-1]
        agrees = (block[:, 1:] == before) & (before != EOS) & (scores[:, :-1] > -float("inf"))
        first = tf.ones_like(block[:, :1])
        agrees = tf.concat([first, tf.cast(agrees, tf.int32)], axis=1)
        return newest, scores, tf.math.cumprod(agrees, axis=1) > 0


def _block(certain, logits):
    """Join tokens that are certain, (b,), with those proposed after each: (b, k)."""
    proposed = tf.argmax(logits, axis=2, output_type=tf.int32)
    return tf.concat([certain[:, None], proposed], axis=1)


def _histories(past, block):
    """Return the history of each next token, as `Constraints` needs it, (b, k, t + k), from the
    tokens before a block, (b, t), with PAD in front, and the block. BOS is left out.
    """
    size = tf.shape(block)[1]
    tokens = tf.concat([past, tf.where(block == BOS, PAD, block)], axis=1)
    tokens = tf.pad(tokens, [[0, 0], [size - 1, 0]], constant_values=PAD)
    width = tf.shape(past)[1] + size
    return tf.gather(tokens, tf.range(size)[:, None] + tf.range(width), axis=1)


def _recorded(results, newest, scores, is_certain, unfinished):
    """Add the certain tokens to the ids and scores of all sentences."""
    ids, totals = results
    ids = tf.pad(ids, [[0, 0], [0, tf.shape(newest)[1]]], constant_values=PAD)
    sentence = unfinished["sentence"]
    places = unfinished["length"][:, None] + tf.range(tf.shape(newest)[1])
    rows = tf.broadcast_to(sentence[:, None], tf.shape(places))
    ids = tf.tensor_scatter_nd_update(
        ids, tf.stack([rows, places], axis=2), tf.where(is_certain, newest, PAD)
    )
    added = tf.reduce_sum(tf.where(is_certain, scores, 0.0), axis=1)
    return ids, tf.tensor_scatter_nd_add(totals, sentence[:, None], added)


def _cut(state, growing, longest, shift):
    """Cut a state to `longest` positions, which end `-shift` (b,) before each sentence's last: the
    positions behind them are of rejected tokens.
    """

    def cut(tensor, axis):
        if axis < 0:
            return tensor
        places = tf.range(tf.shape(tensor)[axis] - longest, tf.shape(tensor)[axis])
        # Positions before a sentence's first are masked, so any will do.
        places = tf.maximum(places + shift[:, None], 0)
        return tf.gather(tensor, places, axis=axis, batch_dims=1)

    return tf.nest.map_structure(cut, state, growing)
