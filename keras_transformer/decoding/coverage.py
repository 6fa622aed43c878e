"""A penalty on source words that no target token attended to: an addition to section 6.1's scores
(Wu et al. 2016, section 7, eq. 14).

cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1))     p_ij: how much target token j attends to source
                                                  token i
"""

from typing import Any

import tensorflow as tf

LEAST = 1e-10


class Covering:
    """A stepper that adds up the attention of another stepper in its state.

    Its state is a dictionary: "inner", that of the other stepper, and "coverage", how much each
    source position was attended to, (rows, S). Padding counts as covered from the start.

    Args:
        stepper: a stepper that gives its attention.
        is_token: booleans (B, S), False at the source's padding.
    """

    def __init__(self, stepper, is_token: tf.Tensor):
        self._stepper = stepper
        self._is_token = is_token
        self.growing = {"inner": stepper.growing, "coverage": -1}

    def start(self, rows: int | tf.Tensor) -> dict[str, Any]:
        """The state before the first token, of B K rows."""
        sentences = tf.maximum(tf.shape(self._is_token)[0], 1)
        covered = tf.repeat(tf.cast(~self._is_token, tf.float32), rows // sentences, axis=0)
        return {"inner": self._stepper.start(rows), "coverage": covered}

    def __call__(self, ids, position, state, source):
        logits, inner, attention = self._stepper(ids, position, state["inner"], source)
        coverage = state["coverage"] + tf.reshape(attention, tf.shape(state["coverage"]))
        return logits, {"inner": inner, "coverage": coverage}, attention


def coverage_penalty(coverage: tf.Tensor, beta: float) -> tf.Tensor:
    """cp(X; Y), at most 0, of coverages (..., S): (...)."""
    return beta * tf.reduce_sum(tf.math.log(tf.clip_by_value(coverage, LEAST, 1.0)), axis=-1)
