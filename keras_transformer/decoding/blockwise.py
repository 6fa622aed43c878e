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
    """Gives the results of `GreedySearch`, by a stepper that proposes k tokens at once.

    1. The model reads a block: a token that is certain, and k - 1 that were proposed after it.
    2. A proposal is accepted if it is the likeliest token after those before it. The first that is
       not is rejected, with all after it. The block has then given 1 to k certain tokens.
    3. The next block is proposed from the decoder's output at the last accepted position and the
       token predicted there. The first block is proposed from BOS.

    As in the authors' section 4, a single call of the decoder verifies one block (step 2) and
    proposes the next (step 3). Their first call only proposes; here BOS does, without a call.
    Results differ from `GreedySearch`'s only where two tokens are as likely but for rounding.

    Arguments and results as in `GreedySearch`, but the stepper must have `block_size`, `block`,
    `first_proposals` and `proposals`: see `keras_transformer.decoding`.
    """

    def _one_by_one(self, stepper, source, searched):
        sentences = tf.shape(searched["limit"])[0]
        size = stepper.block_size
        longest = tf.maximum(tf.reduce_max(searched["limit"]), 0)
        searched = {
            **searched,
            "sentence": tf.range(sentences),
            "length": tf.zeros([sentences], tf.int32),
            "came": tf.zeros([sentences, 0], tf.int32),
            "block": _block(tf.fill([sentences], BOS), stepper.first_proposals(source)),
        }
        found = (tf.fill([sentences, longest + size], PAD), tf.zeros([sentences]))

        # Each turn gives a token at least.
        def turn(number, *carried):
            return self._turn(stepper, *carried)

        state = stepper.start(sentences)
        growing = ({"came": 1}, (1, -1), stepper.growing)
        ids, scores = loop.turns(turn, searched, found, source, state, growing)
        ids = tf.where(scores[:, None] > -float("inf"), ids, PAD)
        used = tf.math.count_nonzero(tf.reduce_any(ids != PAD, axis=0), dtype=tf.int32)
        return ids[:, :used], scores

    def _turn(self, stepper, searched, found, source, state):
        """Read a block of each sentence, note what stands, and propose the next one."""
        block = self._with_forced(searched)
        logits, given, state = stepper.block(block, searched["length"], state, source)
        histories = _histories(searched["came"], block)
        newest, scores, stands = self._verified(logits, block, histories, searched)
        found = _noted(found, newest, scores, stands, searched)
        count = tf.reduce_sum(tf.cast(stands, tf.int32), axis=1)
        last = tf.gather(newest, count - 1, batch_dims=1)
        may_go_on = tf.gather(scores, count - 1, batch_dims=1) > -float("inf")
        going_on = tf.cast(tf.where((last != EOS) & may_go_on)[:, 0], tf.int32)
        state, source = loop.take_some((state, source), going_on)
        histories, given, count, last, searched = loop.take(
            (histories, given, count, last, searched), going_on
        )
        length = searched["length"] + count
        given = tf.gather(given, count - 1, batch_dims=1)
        proposed = stepper.proposals(given, last, length, source)
        # Where no sentence goes on there is no maximum.
        kept = tf.maximum(tf.reduce_max(length), 0)
        came = tf.gather(histories, count - 1, batch_dims=1)
        searched = {
            **searched,
            "length": length,
            "came": came[:, tf.shape(came)[1] - kept :],
            "block": _block(last, proposed),
        }
        state = _cut(state, stepper.growing, kept, count - stepper.block_size)
        return searched, found, source, state

    def _with_forced(self, searched):
        """The block, with tokens that nothing but their position decides in place of proposals."""
        block = searched["block"]
        places = searched["length"][:, None] + tf.range(tf.shape(block)[1] - 1)
        forced = forced_tokens(places, searched)
        proposed = tf.where(forced == FREE, block[:, 1:], forced)
        return tf.concat([block[:, :1], proposed], axis=1)

    def _verified(self, logits, block, histories, searched):
        """What greedy search has after each token of a block, (b, k); how likely it is, float32
        (b, k); and whether all tokens up to there stand, booleans (b, k).
        """
        position = searched["length"][:, None] + tf.range(tf.shape(block)[1])
        logits, allowed, forced, may_end = self.constraints(logits, histories, position, searched)
        chosen, newest = self._choose(allowed, forced, may_end, position, searched)
        newest = tf.reshape(newest, tf.shape(block))
        scores = tf.reshape(chosen - log_normalizer(logits), tf.shape(block))
        before = newest[:, :-1]
        agrees = (block[:, 1:] == before) & (before != EOS) & (scores[:, :-1] > -float("inf"))
        first = tf.ones_like(block[:, :1])
        agrees = tf.concat([first, tf.cast(agrees, tf.int32)], axis=1)
        return newest, scores, tf.math.cumprod(agrees, axis=1) > 0


def _block(certain, logits):
    """Tokens that are certain, (b,), and those that are proposed after each, (b, k)."""
    proposed = tf.argmax(logits, axis=2, output_type=tf.int32)
    return tf.concat([certain[:, None], proposed], axis=1)


def _histories(came, block):
    """What came before each next token, for `Constraints`: (b, k, t + k), from the tokens before a
    block, (b, t), with PAD in front, and the block. BOS is no token here.
    """
    size = tf.shape(block)[1]
    tokens = tf.concat([came, tf.where(block == BOS, PAD, block)], axis=1)
    tokens = tf.pad(tokens, [[0, 0], [size - 1, 0]], constant_values=PAD)
    width = tf.shape(came)[1] + size
    return tf.gather(tokens, tf.range(size)[:, None] + tf.range(width), axis=1)


def _noted(found, newest, scores, stands, searched):
    """The ids and scores of all sentences, with the tokens that stand added; PAD elsewhere."""
    ids, totals = found
    sentence = searched["sentence"]
    places = searched["length"][:, None] + tf.range(tf.shape(newest)[1])
    rows = tf.broadcast_to(sentence[:, None], tf.shape(places))
    ids = tf.tensor_scatter_nd_update(
        ids, tf.stack([rows, places], axis=2), tf.where(stands, newest, PAD)
    )
    added = tf.reduce_sum(tf.where(stands, scores, 0.0), axis=1)
    return ids, tf.tensor_scatter_nd_add(totals, sentence[:, None], added)


def _cut(state, growing, kept, behind):
    """The last positions of a state, so many that the longest sentence has all of its own, where
    `behind` (b,), 0 or less, says how many at a sentence's end fell.
    """

    def cut(tensor, axis):
        if axis < 0:
            return tensor
        places = tf.range(tf.shape(tensor)[axis] - kept, tf.shape(tensor)[axis])
        # Before the first position of a sentence is nothing that may be attended to.
        places = tf.maximum(places + behind[:, None], 0)
        return tf.gather(tensor, places, axis=axis, batch_dims=1)

    return tf.nest.map_structure(cut, state, growing)
