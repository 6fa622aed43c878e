"""Residual dropout (Vaswani et al. 2017, section 5.4)."""

import math
import numbers

import keras
from keras import ops

from keras_transformer.layers.prototypes import KeepsShape
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class Dropout(KeepsShape):
    """Each entry becomes 0 with probability `rate`, else x / (1 - rate), so its expectation is x.

    Each entry uses one random byte. It becomes 0 where its byte is below 256 * rate. That bound is
    rounded up or down at random in every call, so that each entry's probability is exactly `rate`.
    Random numbers of 32 bits would take a tenth of a training step's time.

    Args:
        rate: probability in [0, 255 / 256].

    Reference: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from
        Overfitting".
    """

    def __init__(self, rate: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        if not (isinstance(rate, numbers.Real) and 0 <= rate <= 255 / 256):
            raise ValueError(
                f"`rate` must be a probability in [0, 255/256]. Received: rate={rate!r}. Try 0.1."
            )
        self.rate = rate
        self.seed_generator = keras.random.SeedGenerator() if rate else None
        self.built = True  # Keras quantizes no model that has an unbuilt layer.

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        if not (training and self.rate):
            return x
        mask = self._mask(ops.shape(x))
        scale = 1 / (1 - self.rate)

        @ops.custom_gradient
        def dropped(x):
            # The gradient needs only the booleans of the forward pass, a byte an entry.
            def gradient(*args, upstream=None):
                return ops.where(mask, (args[-1] if upstream is None else upstream) * scale, 0)

            return ops.where(mask, x * scale, 0), gradient

        return dropped(x)

    def _mask(self, shape):
        """Draw random booleans, False with probability `rate`."""
        is_known = all(isinstance(size, int) for size in shape)
        entries = math.prod(shape) if is_known else ops.prod(ops.stack(shape))
        # Each integer gives four bytes.
        integers = keras.random.randint(
            ((entries + 3) // 4, 1), -(2**31), 2**31 - 1, seed=self.seed_generator
        )
        bytes_ = ops.reshape(ops.view(integers, "uint8"), (-1,))[:entries]
        threshold = ops.floor(256 * self.rate + keras.random.uniform((), seed=self.seed_generator))
        return ops.reshape(bytes_, shape) >= ops.cast(threshold, "uint8")
