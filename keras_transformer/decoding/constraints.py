"""What a translation must and must not contain: rules on top of section 6.1's decoding."""

import copy
import dataclasses
from collections.abc import Callable
from numbers import Real
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.candidates import FREE
from keras_transformer.decoding.forbidden_words import bias_of
from pipelines.special_ids import EOS, PAD

NOT_YET = -1


class Preference(NamedTuple):
    """Where `is_asked`, booleans (B,), the hypotheses of a beam are ordered by `count`, a function
    of ids (B, K, L) to int32 (B, K), highest first, and only then by their scores.
    """

    is_asked: tf.Tensor
    count: Callable[[tf.Tensor], tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Constraints:
    """Rules on the next token, given the tokens before it.

    Forced tokens override every rule. A barred token cannot be chosen, but the distribution is not
    renormalized: a score stays log P(Y | X) of the model. Only the repetition penalty changes the
    distribution itself, and with it the scores.

    Args:
        no_repeat_ngram_size: n; no n tokens in a row occur twice in a translation. 0: no such rule.
        repetition_penalty: theta; the logit of a token that has come before is divided by theta if
            it is positive, else multiplied by it. 1: no penalty.
        barred: ids that never come.
        forbidden: a `ForbiddenWords`, or None.
        preference: a `Preference` of beams, or None.
        free_prefix: number of tokens of each prefix that cost nothing: the score omits their log P.

    Reference: Keskar et al. 2019, "CTRL: A Conditional Transformer Language Model", section 4.1,
        for theta.
    """

    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    barred: tuple[int, ...] = ()
    free_prefix: int = 0
    forbidden: Callable[[tf.Tensor], tf.Tensor] | None = None
    preference: Preference | None = None

    def __post_init__(self):
        if not isinstance(self.no_repeat_ngram_size, int) or self.no_repeat_ngram_size < 0:
            raise ValueError(
                "`no_repeat_ngram_size` must be an integer, at least 0. Received: "
                f"no_repeat_ngram_size={self.no_repeat_ngram_size}."
            )
        theta = self.repetition_penalty
        if not (isinstance(theta, Real) and 0 < theta < float("inf")):
            received = f"Received: repetition_penalty={theta!r}."
            raise ValueError(f"`repetition_penalty` must be above 0 and finite. {received}")

    def wishes(
        self, limits: tf.Tensor, minima: tf.Tensor | None = None, prefixes: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Return the tensors with B rows that searches carry from step to step: "limit", and with
        prefixes or minima "prefix" and "minimum". Arguments as of a search.
        """
        sentences = {"limit": tf.cast(limits, tf.int32)}
        if prefixes is not None:
            # `forced_tokens` needs a column even if no sentence has a prefix.
            sentences["prefix"] = tf.pad(
                tf.cast(prefixes, tf.int32), [[0, 0], [0, 1]], constant_values=PAD
            )
            length = tf.math.count_nonzero(sentences["prefix"], axis=1, dtype=tf.int32)
            sentences["limit"] = tf.maximum(sentences["limit"], tf.where(length > 0, length + 1, 0))
        if minima is not None:
            sentences["minimum"] = tf.minimum(tf.cast(minima, tf.int32), sentences["limit"])
        return sentences

    def __call__(
        self,
        logits: tf.Tensor,
        history: tf.Tensor,
        position: tf.Tensor,
        sentences: dict[str, tf.Tensor],
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor | None]:
        """Apply the rules to K hypotheses a sentence.

        Args:
            logits: float32 (b, K, V).
            history: BOS, or PAD, and the tokens after it, (b, K, largest position + 1).
            position: number of tokens so far, a scalar or integers (b, K). If they differ, the
                shorter histories are padded in front.
            sentences: rows of what `wishes` returned, b of them.

        Returns:
            For the b K rows: the logits of the distribution, (b K, V); the same with -inf at barred
            tokens; the forced token or FREE; and whether EOS may come, or None if it always may.
        """
        width = tf.shape(history)[1]
        vocabulary_size = logits.shape[-1]
        logits = tf.reshape(logits, [-1, vocabulary_size])
        position = of_rows(position, history)
        places = tf.reshape(position, tf.shape(history)[:2])
        forced = tf.reshape(forced_tokens(places, sentences), [-1])
        past = tf.reshape(history, [-1, tf.shape(history)[2]])[:, 1:]
        if self.free_prefix:
            is_free = (position < self.free_prefix)[:, None]
            logits = tf.cond(
                tf.reduce_any(is_free),
                lambda: tf.where(
                    is_free, tf.one_hot(forced, vocabulary_size, 0.0, -float("inf")), logits
                ),
                lambda: logits,
            )
        if self.repetition_penalty != 1.0:
            logits = self._penalized(logits, past)
        allowed = self._without_repeats(logits, past) if self.no_repeat_ngram_size else logits
        if self.barred:
            allowed = allowed + bias_of(vocabulary_size, self.barred)
        if self.forbidden is not None:
            allowed = allowed + self.forbidden(past)
        if allowed is not logits:
            allowed = tf.where((forced == FREE)[:, None], allowed, logits)
        may_end = None
        if "minimum" in sentences:
            may_end = position + 1 >= tf.repeat(sentences["minimum"], width)
        return logits, allowed, forced, may_end

    def _penalized(self, logits, past):
        values = tf.gather(logits, past, batch_dims=1)
        theta = tf.where(past == PAD, 1.0, self.repetition_penalty)
        values = tf.where(values > 0, values / theta, values * theta)
        return tf.tensor_scatter_nd_update(logits, _places(past), values)

    def _without_repeats(self, logits, past):
        """Bar each token that followed an earlier occurrence of the last n - 1 tokens."""
        n = self.no_repeat_ngram_size
        length = tf.shape(past)[1]
        starts = tf.maximum(length - n + 1, 0)  # one for each earlier n-gram
        context = past[:, tf.maximum(length - n + 1, 0) :]
        repeats = tf.ones([tf.shape(past)[0], starts], tf.bool)
        for offset in range(n - 1):
            # With fewer than n tokens there is no start, and both sides are empty.
            last = context[:, offset : offset + 1][:, : tf.minimum(starts, 1)]
            repeats &= past[:, offset : offset + starts] == last
        following = past[:, n - 1 : n - 1 + starts]
        barred = tf.where(repeats, -float("inf"), float("inf"))
        return tf.tensor_scatter_nd_min(logits, _places(following), barred)


@dataclasses.dataclass(frozen=True, eq=False)
class SpanConstraints(Constraints):
    """Rules under which a hypothesis has each mark exactly as often as its source.

    1. A mark comes at most as often as in the source.
    2. EOS may come only when no mark is missing.
    3. When the limit leaves room only for the missing marks and EOS, nothing else may come.
    4. The mark of a closing tag may come only while its opening tag is the innermost open one.

    A limit too small for all marks grows to the smallest that suffices. Forced prefixes override
    the rules. As with every `Constraints`, a score stays log P(Y | X) of the model.

    Args:
        marks: ids of the M marks, int32 (M,).
        count: how often each must come, int32 (B, M).
        opened_by: for each mark the number of the mark that it closes, else -1, int32 (B, M).
    """

    _: dataclasses.KW_ONLY
    marks: np.ndarray
    count: tf.Tensor
    opened_by: tf.Tensor

    def wishes(self, limits, minima=None, prefixes=None):
        sentences = super().wishes(limits, minima, prefixes)
        smallest = tf.reduce_sum(self.count, axis=1) + 1
        if prefixes is not None:
            smallest += tf.math.count_nonzero(prefixes != PAD, axis=1, dtype=tf.int32)
        limit = tf.maximum(sentences["limit"], smallest)
        return {**sentences, "limit": limit, "count": self.count, "opened_by": self.opened_by}

    def __call__(self, logits, history, position, sentences):
        width = tf.shape(history)[1]
        logits, allowed, forced, may_end = super().__call__(logits, history, position, sentences)
        count, opened_by, limit = (
            tf.repeat(sentences[name], width, axis=0) for name in ("count", "opened_by", "limit")
        )
        occurs = tf.reshape(history, [-1, tf.shape(history)[2], 1]) == self.marks
        missing = count - tf.math.count_nonzero(occurs, axis=1, dtype=tf.int32)
        left = tf.reduce_sum(tf.maximum(missing, 0), axis=1)
        may_come = (missing > 0) & self._may_close(occurs, opened_by)
        position = of_rows(position, history)
        no_room = limit - position <= left + 1
        is_mark = np.zeros(logits.shape[-1], bool)
        is_mark[self.marks] = True
        ruled = tf.where((no_room & (left > 0))[:, None] & ~is_mark, -float("inf"), allowed)
        rows = tf.range(tf.shape(ruled)[0])[:, None]
        places = tf.stack(tf.meshgrid(rows, self.marks, indexing="ij"), axis=-1)
        bounds = tf.where(may_come, float("inf"), -float("inf"))
        ruled = tf.tensor_scatter_nd_min(ruled, places, bounds)
        ruled = tf.where((forced == FREE)[:, None], ruled, allowed)
        may_end = left <= 0 if may_end is None else may_end & (left <= 0)
        return logits, ruled, forced, may_end

    @staticmethod
    def _may_close(occurs, opened_by):
        """Return which marks close the innermost open tag or close none, booleans (rows, M)."""
        steps = tf.range(tf.shape(occurs)[1])[:, None]
        # Where each mark came last: (rows, M).
        place = tf.reduce_max(tf.where(occurs, steps, NOT_YET), axis=1)
        closes = opened_by >= 0
        opening = tf.maximum(opened_by, 0)
        of_opening = tf.where(closes, tf.gather(place, opening, batch_dims=1), NOT_YET)
        is_open = closes & (of_opening > NOT_YET) & (place == NOT_YET)
        innermost = tf.reduce_max(tf.where(is_open, of_opening, NOT_YET), axis=1, keepdims=True)
        return ~closes | (is_open & (of_opening == innermost))


def under(search: Callable, constraints: Constraints) -> Callable:
    """Return a copy of a search of `keras_transformer.decoding` with these `Constraints`."""
    constrained = copy.copy(search)
    constrained.constraints = constraints
    return constrained


def forced_tokens(position: tf.Tensor, sentences: dict[str, tf.Tensor]) -> tf.Tensor:
    """Return the forced token at each position: the prefix's, EOS at the limit, else FREE."""
    forced = tf.where(sentences["limit"][:, None] == position + 1, EOS, FREE)
    if "prefix" not in sentences:
        return forced
    prefix = sentences["prefix"]
    of_prefix = tf.gather(prefix, tf.minimum(position, tf.shape(prefix)[1] - 1), batch_dims=1)
    return tf.where(of_prefix != PAD, of_prefix, forced)


def of_rows(position: tf.Tensor, history: tf.Tensor) -> tf.Tensor:
    """Return the number of tokens so far in each of b K rows: arguments as of `Constraints`."""
    return tf.reshape(tf.broadcast_to(position, tf.shape(history)[:2]), [-1])


def _places(tokens):
    """Return indices (row, token) of tokens (rows, t), for scattering into (rows, V)."""
    rows = tf.broadcast_to(tf.range(tf.shape(tokens)[0])[:, None], tf.shape(tokens))
    return tf.stack([rows, tokens], axis=-1)
