"""Residual dropout (Vaswani et al. 2017, section 5.4)."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_transformer")
class Dropout(keras.layers.Layer):
    """Each entry becomes 0 with probability `rate`, else x / (1 - rate), so that its expectation is
    x.

    An entry costs a byte of randomness: it falls where its byte is below 256 * rate, rounded up or
    down anew at every call so that each entry's probability is `rate` exactly. Random numbers of 32
    bits would be a tenth of a training step's time.

    Args:
        rate: probability in [0, 255 / 256].

    Call arguments:
        x: any shape.
        training: whether to drop anything.

    Returns:
        The shape of `x`.

    Raises:
        ValueError: if `rate` is out of its range.

    Reference: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from
        Overfitting".
    """

    def __init__(self, rate=0.0, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate <= 255 / 256:
            raise ValueError(
                f"`rate` must be a probability in [0, 255/256]. Received: rate={rate}. Try 0.1."
            )
        self.rate = rate
        self.seed_generator = keras.random.SeedGenerator() if rate else None

    def call(self, x, training=False):
        if not (training and self.rate):
            return x
        kept = self._kept(ops.shape(x))
        scale = 1 / (1 - self.rate)

        @ops.custom_gradient
        def dropped(x):
            # Of the forward pass the gradient needs the booleans alone: an eighth to a quarter of
            # the activations' memory.
            def gradient(*args, upstream=None):
                return ops.where(kept, (args[-1] if upstream is None else upstream) * scale, 0)

            return ops.where(kept, x * scale, 0), gradient

        return dropped(x)

    def _kept(self, shape):
        """Random booleans, False with probability `rate`."""
        entries = (
            math.prod(shape)
            if all(isinstance(size, int) for size in shape)
            else ops.prod(ops.stack(shape))
        )
        # Four bytes from each integer.
        integers = keras.random.randint(
            ((entries + 3) // 4, 1), -(2**31), 2**31 - 1, seed=self.seed_generator
        )
        bytes_ = ops.reshape(ops.view(integers, "uint8"), (-1,))[:entries]
        threshold = ops.floor(256 * self.rate + keras.random.uniform((), seed=self.seed_generator))
        return ops.reshape(bytes_, shape) >= ops.cast(threshold, "uint8")

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}
