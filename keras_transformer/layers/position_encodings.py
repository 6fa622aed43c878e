"""Positions that are added to embeddings (Vaswani et al. 2017, section 3.5)."""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers.positions import sinusoidal_positions
from keras_transformer.layers.prototypes import Part
from keras_transformer.layers.tensors import Tensor


class PositionEncoding(Part):
    """What `PositionalEmbedding` adds to the scaled embeddings."""

    def build(self, x_shape):
        """Make the weights for embeddings (B, T, d_model)."""

    def added(self, x: Tensor, positions: Tensor) -> Tensor:
        """Embeddings that know where they stand.

        Args:
            x: (B, T, d_model).
            positions: integers broadcastable to (B, T).

        Returns:
            (B, T, d_model), of the dtype of `x`.
        """
        raise NotImplementedError


@keras.saving.register_keras_serializable("keras_transformer")
class SinusoidalEncoding(PositionEncoding):
    """The paper's sinusoids, of any length: see `sinusoidal_positions`."""

    def added(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + ops.cast(sinusoidal_positions(positions, x.shape[-1]), x.dtype)


@keras.saving.register_keras_serializable("keras_transformer")
class LearnedEncoding(PositionEncoding):
    """A learned vector for each position (table 3, row E), one table for source and target.

    Positions beyond the last of the table get the last one's vector.

    Args:
        max_positions: rows of the table.

    Reference: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1.
    """

    def __init__(self, max_positions: int = 1024, **kwargs: Any):
        super().__init__(**kwargs)
        self.max_positions = max_positions

    def build(self, x_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.max_positions, x_shape[-1]),
            initializer=keras.initializers.RandomNormal(stddev=x_shape[-1] ** -0.5),
        )

    def added(self, x: Tensor, positions: Tensor) -> Tensor:
        rows = ops.minimum(positions, self.max_positions - 1)
        return x + ops.cast(ops.take(self.table, rows, axis=0), x.dtype)

    def get_config(self):
        return {**super().get_config(), "max_positions": self.max_positions}


@keras.saving.register_keras_serializable("keras_transformer")
class NoEncoding(PositionEncoding):
    """Nothing: for attentions that know positions themselves, or for none at all.

    An encoder without any positions reads a bag of words. A decoder still knows how many tokens it
    may attend to.
    """

    def added(self, x: Tensor, positions: Tensor) -> Tensor:
        return x
