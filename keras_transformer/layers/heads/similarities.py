"""How well a query and a key fit: what the softmax takes (Vaswani et al. 2017, section 3.2.1).

The section compares its scaled dot product with the unscaled one and with additive attention.
"""

import keras
from keras import ops

from keras_transformer.layers.prototypes import Part
from keras_transformer.layers.scaled_dot_product import scaled_dot_products
from keras_transformer.layers.tensors import Tensor


class Similarity(Part):
    """A function of a query and a key, with weights or without."""

    def build(self, query_shape):
        """Make the weights for queries of (B, h, T, d_k)."""

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Compare each query with each key.

        Args:
            query: (B, h, T, d_k).
            key: (B, h, S, d_k).

        Returns:
            float32, (B, h, T, S).
        """
        raise NotImplementedError


@keras.saving.register_keras_serializable("keras_transformer")
class ScaledDotProduct(Similarity):
    """The paper's, of all three attentions: q k^T / sqrt(d_k)   (eq. 1)."""

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return scaled_dot_products(query, key)


@keras.saving.register_keras_serializable("keras_transformer")
class DotProduct(Similarity):
    """The dot product without the scaling, q k^T, in place of all three attentions.

    The variance of q k^T is d_k where the components of q and k have variance 1 (footnote 4). For
    large d_k the softmax saturates, and its gradient vanishes.

    Reference: Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine
        Translation", section 3.1.
    """

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return ops.cast(ops.matmul(query, ops.swapaxes(key, -1, -2)), "float32")


@keras.saving.register_keras_serializable("keras_transformer")
class Additive(Similarity):
    """Additive attention, in place of all three: "a feed-forward network with a single hidden
    layer".

        v^T tanh(q + k),    q = x W^Q, k = y W^K: the hidden layer has width d_k

    Each head has a vector v of its own. There are d_k hyperbolic tangents for each pair of query
    and key, so that memory and time grow with T S d_k.

    Reference: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and
        Translate", appendix A.1.2.
    """

    def build(self, query_shape):
        heads = query_shape[1]
        width = query_shape[-1]
        # A sum of d_k terms starts with variance 1 or less.
        self.vector = self.add_weight(
            name="vector",
            shape=(heads, width),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
        )

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        hidden = ops.tanh(ops.expand_dims(query, -2) + ops.expand_dims(key, -3))
        vector = ops.cast(self.vector, hidden.dtype)[:, None, :, None]
        return ops.cast(ops.matmul(hidden, vector)[..., 0], "float32")
