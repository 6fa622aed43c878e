"""What a translation must and must not hold, besides what makes it likely: rules on top of section
6.1's decoding.
"""

import dataclasses

import tensorflow as tf

from keras_transformer.decoding.candidates import FREE
from pipelines.special_ids import EOS, PAD


def wanted(limits, minima=None, prefixes=None):
    """What is wanted of each sentence, as the searches carry it from step to step.

    Args:
        limits: most tokens, EOS among them, integers (B,).
        minima: fewest tokens, EOS among them, integers (B,); a limit below one counts more. Left
            out: 1.
        prefixes: tokens to begin with, integers (B, P), padded with PAD. A limit grows to hold them
            and EOS.

    Returns:
        A dictionary of tensors with B rows.
    """
    sentences = {"limit": tf.cast(limits, tf.int32)}
    if prefixes is not None:
        # A column more, so that there is one to read where no sentence has a prefix.
        sentences["prefix"] = tf.pad(
            tf.cast(prefixes, tf.int32), [[0, 0], [0, 1]], constant_values=PAD
        )
        length = tf.math.count_nonzero(sentences["prefix"], axis=1, dtype=tf.int32)
        sentences["limit"] = tf.maximum(sentences["limit"], tf.where(length > 0, length + 1, 0))
    if minima is not None:
        sentences["minimum"] = tf.minimum(tf.cast(minima, tf.int32), sentences["limit"])
    return sentences


@dataclasses.dataclass(frozen=True)
class Constraints:
    """Rules on the next token, from what came before it.

    What is forced comes at any price. What is barred gets no share of the probability, but takes
    none from the rest either: a score stays log P(Y | X) of the model. The repetition penalty alone
    changes the distribution itself, and with it the scores.

    Args:
        no_repeat_ngram_size: n, no n tokens in a row come twice in a translation; 0: any may.
        repetition_penalty: theta, the logit of a token that has come is divided by it where it is
            positive, else multiplied; 1: nothing.

    Raises:
        ValueError: naming the argument that is out of range.

    Reference: Keskar et al. 2019, "CTRL: A Conditional Transformer Language Model", section 4.1,
        for theta.
    """

    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0

    def __post_init__(self):
        if not isinstance(self.no_repeat_ngram_size, int) or self.no_repeat_ngram_size < 0:
            raise ValueError(
                "`no_repeat_ngram_size` must be an integer, at least 0. Received: "
                f"no_repeat_ngram_size={self.no_repeat_ngram_size}."
            )
        if not 0 < self.repetition_penalty < float("inf"):
            raise ValueError(
                "`repetition_penalty` must be above 0 and finite. Received: "
                f"repetition_penalty={self.repetition_penalty}."
            )

    def __call__(self, logits, history, position, sentences):
        """Apply the rules to K hypotheses a sentence.

        Args:
            logits: float32 (b, K, V).
            history: BOS and the tokens after it, (b, K, position + 1).
            position: how many tokens have come, a scalar.
            sentences: of `wanted`, b rows.

        Returns:
            For the b K rows: logits (b K, V) of the distribution; logits of what may come of it,
            -inf elsewhere; the forced token or FREE, (b K,); and whether EOS may come, (b K,), or
            None where it may everywhere.
        """
        width = tf.shape(history)[1]
        vocabulary_size = logits.shape[-1]
        logits = tf.reshape(logits, [-1, vocabulary_size])
        history = tf.reshape(history, [-1, tf.shape(history)[2]])
        forced = tf.repeat(_forced(position, sentences), width)
        if self.repetition_penalty != 1.0:
            logits = self._penalized(logits, history[:, 1:])
        allowed = (
            self._without_repeats(logits, history[:, 1:]) if self.no_repeat_ngram_size else logits
        )
        if allowed is not logits:
            allowed = tf.where((forced == FREE)[:, None], allowed, logits)
        may_end = (
            tf.repeat(position + 1 >= sentences["minimum"], width)
            if "minimum" in sentences
            else None
        )
        return logits, allowed, forced, may_end

    def _penalized(self, logits, came):
        values = tf.gather(logits, came, batch_dims=1)
        values = tf.where(
            values > 0, values / self.repetition_penalty, values * self.repetition_penalty
        )
        return tf.tensor_scatter_nd_update(logits, _places(came), values)

    def _without_repeats(self, logits, came):
        """Bars each token that followed the last n - 1 tokens where these stood before."""
        n = self.no_repeat_ngram_size
        length = tf.shape(came)[1]
        starts = tf.maximum(length - n + 1, 0)  # of the n-grams that have come
        context = came[:, tf.maximum(length - n + 1, 0) :]
        repeats = tf.ones([tf.shape(came)[0], starts], tf.bool)
        for offset in range(n - 1):
            # Where fewer than n tokens have come, there is no start, and both sides are cut to
            # nothing.
            repeats &= (
                came[:, offset : offset + starts]
                == context[:, offset : offset + 1][:, : tf.minimum(starts, 1)]
            )
        following = came[:, n - 1 : n - 1 + starts]
        return tf.tensor_scatter_nd_min(
            logits, _places(following), tf.where(repeats, -float("inf"), float("inf"))
        )


def _forced(position, sentences):
    """Each sentence's only token that may come now, of its prefix or EOS at its limit, or FREE:
    (b,).
    """
    forced = tf.where(sentences["limit"] == position + 1, EOS, FREE)
    if "prefix" not in sentences:
        return forced
    prefix = sentences["prefix"]
    now = prefix[:, tf.minimum(position, tf.shape(prefix)[1] - 1)]
    return tf.where(now != PAD, now, forced)


def _places(tokens):
    """(row, token) of each token, for scattering into (rows, V)."""
    rows = tf.broadcast_to(tf.range(tf.shape(tokens)[0])[:, None], tf.shape(tokens))
    return tf.stack([rows, tokens], axis=-1)
