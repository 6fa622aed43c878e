"""An encoder of gated convolutions (Gehring et al. 2017, section 3.2), which table 2 of Vaswani et
al. 2017 compares the Transformer with.
"""

import keras
from keras import ops

from keras_transformer.layers.convolution_block import HALVED, ConvolutionBlock
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class ConvolutionalEncoder(keras.layers.Layer):
    """N blocks, whose output z is what a decoder attends to.

        memory = [z, (z + e) sqrt(0.5)]           keys and values; e is the embedded source

    As there are as many attentions as blocks in a decoder of N, each passes an N-th of its gradient
    to z. The embeddings e get all of it.

    Args:
        num_layers: N.
        d_model: width of embeddings and blocks.
        kernel_size: k, odd.
        dropout: probability in [0, 1) on the input of each convolution.

    Call arguments:
        x: embedded source e, (B, S, d_model).
        attention_mask: booleans (B, 1, S), True at tokens.

    Returns:
        The memory, (B, S, 2 d_model).
    """

    def __init__(
        self, num_layers: int, d_model: int, kernel_size: int = 3, dropout: float = 0.0, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.d_model = d_model
        self.kernel_size = kernel_size
        self.dropout = dropout
        self.blocks = [
            ConvolutionBlock(
                d_model, kernel_size, dropout, dtype=self.dtype_policy, name=f"block_{n}"
            )
            for n in range(num_layers)
        ]

    def build(self, x_shape):
        for block in self.blocks:
            block.build(x_shape)

    def call(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        tokens = None
        if attention_mask is not None:
            tokens = ops.cast(ops.transpose(attention_mask, (0, 2, 1)), x.dtype)
        z = x
        for block in self.blocks:
            z = block(z, tokens=tokens)
        z = _with_share_of_gradient(z, 1 / self.num_layers)
        return ops.concatenate([z, (z + x) * HALVED], axis=-1)

    def compute_output_shape(self, x_shape):
        return (*x_shape[:-1], 2 * self.d_model)

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "d_model": self.d_model,
            "kernel_size": self.kernel_size,
            "dropout": self.dropout,
        }


def _with_share_of_gradient(x, share):
    """Pass x on, and multiply its gradient by `share`."""
    fixed = ops.stop_gradient(x)
    return fixed + (x - fixed) * share
