"""A bias for each distance, in the place of section 3.5's encodings (Vaswani et al. 2017)."""

import math

import keras
from keras import ops

from keras_transformer.layers.heads.relative_positions import NoRelativePositions, distances
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class RelativeBias(NoRelativePositions):
    """T5's positions: each head adds a learned number to the score, by the bucket of the distance.

        score(t, s) + b[bucket(s - t), head]

    Half of a direction's buckets hold one distance each. The others grow like its logarithm, up to
    `max_distance`; beyond that all distances share the last. With `bidirectional`, half of the
    buckets are for the keys after the query. Without it, those keys share bucket 0.

    Each layer has a table of its own, where T5 shares one among all layers of a stack.

    Args:
        bidirectional: whether keys after the query are attended to: True in an encoder.
        num_buckets: buckets of both directions together; T5's 32.
        max_distance: distance in tokens from which on all are alike; T5's 128.

    Reference: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified
        Text-to-Text Transformer", section 2.1.
    """

    def __init__(
        self,
        bidirectional: bool = True,
        num_buckets: int = 32,
        max_distance: int = 128,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.bidirectional = bidirectional
        self.num_buckets = num_buckets
        self.max_distance = max_distance

    def build(self, query_shape, value_shape):
        heads = query_shape[1]
        # As T5 starts it, where h d_k = d_model.
        stddev = (heads * query_shape[-1]) ** -0.5
        self.bias = self.add_weight(
            name="bias",
            shape=(heads, self.num_buckets),
            initializer=keras.initializers.RandomNormal(stddev=stddev),
            autocast=False,
        )

    def added(self, scores: Tensor, query: Tensor, following: int | Tensor = 0) -> Tensor:
        shape = ops.shape(scores)
        buckets = self.buckets(distances(shape[-2], shape[-1], following))
        return scores + ops.cast(ops.take(self.bias, buckets, axis=1), "float32")

    def buckets(self, distance: Tensor) -> Tensor:
        """The bucket of each distance, integers of any shape."""
        one_direction = self.num_buckets // 2 if self.bidirectional else self.num_buckets
        distance = ops.cast(distance, "int32")
        start = ops.where(distance > 0, one_direction, 0) if self.bidirectional else 0
        far = ops.abs(distance) if self.bidirectional else ops.maximum(-distance, 0)
        exact = one_direction // 2
        # The smallest distance of each bucket after the exact ones, in exact integers.
        growth = self.max_distance / exact
        steps = one_direction - exact
        firsts = [math.ceil(exact * growth ** (step / steps) - 1e-9) for step in range(1, steps)]
        grown = ops.searchsorted(
            ops.convert_to_tensor(firsts, "int32"), ops.reshape(far, (-1,)), side="right"
        )
        grown = exact + ops.reshape(ops.cast(grown, far.dtype), ops.shape(far))
        return start + ops.where(far < exact, far, grown)

    def get_config(self):
        return {
            **super().get_config(),
            "bidirectional": self.bidirectional,
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
        }
