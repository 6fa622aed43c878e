"""Self-attention to near keys and to every R-th one, in the place of section 3.2.3's to all
(Vaswani et al. 2017).
"""

import keras
from keras import ops

from keras_transformer.layers.heads.relative_positions import distances
from keras_transformer.layers.heads.softmax import SoftmaxHeads
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class SparseHeads(SoftmaxHeads):
    """Strided sparse attention: a query at t attends to the keys at s where

        |t - s| <= R   or   (t - s) mod R = 0.

    With `causal` these are the sets A^(1) and A^(2) of the authors' strided pattern, s <= t, joined
    in each head. It replaces self-attention, in the encoder and in the decoder. The other scores
    are masked, so it takes as long as the full attention.

    Args:
        stride: R, at least 1, in tokens.
        similarity, positions, dropout: as in `SoftmaxHeads`.

    Reference: Child et al. 2019, "Generating Long Sequences with Sparse Transformers", sections 4.3
        and 5.2.
    """

    def __init__(self, stride: int, **kwargs):
        super().__init__(**kwargs)
        self.stride = stride

    def pattern(self, query: Tensor, key: Tensor) -> Tensor:
        distance = ops.abs(distances(ops.shape(query)[-2], ops.shape(key)[-2]))
        return ((distance <= self.stride) | (distance % self.stride == 0))[None]

    def get_config(self):
        return {**super().get_config(), "stride": self.stride}
