"""An encoder of bidirectional LSTM layers, which the Transformer's replaces (Vaswani et al. 2017,
section 1).
"""

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.lstm import lstm
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class RecurrentEncoder(keras.layers.Layer):
    """N layers, of which half reads the sentence forward and half backward.

        x = x + Dropout([LSTM(x), reversed(LSTM(reversed(x)))])

    Padding is skipped: the backward half begins at the last token of each sentence.

    Args:
        num_layers: N.
        d_model: width of input and output, even.
        dropout: probability in [0, 1) on the output of each layer, not on what it carries from
            position to position.

    Call arguments:
        x: embedded source, (B, S, d_model).
        attention_mask: booleans (B, 1, S), True at tokens, which come before all padding.

    Returns:
        The memory, (B, S, d_model). At padding it means nothing.

    References: Bahdanau et al. 2014, section 3.2. Wu et al. 2016, section 3.1 (the residual sum).
        Zaremba et al. 2014, "Recurrent Neural Network Regularization" (where the dropout stands).
    """

    def __init__(self, num_layers: int, d_model: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.d_model = d_model
        self.dropout = dropout
        policy = self.dtype_policy
        half = d_model // 2
        self.forward_layers = [lstm(half, policy, f"forward_{n}") for n in range(num_layers)]
        self.backward_layers = [
            lstm(half, policy, f"backward_{n}", backward=True) for n in range(num_layers)
        ]
        self.output_dropouts = [
            Dropout(dropout, dtype=policy, name=f"dropout_{n}") for n in range(num_layers)
        ]

    def build(self, x_shape):
        for layer in (*self.forward_layers, *self.backward_layers):
            layer.build(x_shape)

    def call(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        tokens = None if attention_mask is None else attention_mask[:, 0]
        layers = zip(self.forward_layers, self.backward_layers, self.output_dropouts, strict=True)
        for forward, backward, dropout in layers:
            ahead = forward(x, mask=tokens)
            # What was read backward comes in the order of reading.
            behind = ops.flip(backward(x, mask=tokens), axis=1)
            x = x + dropout(ops.concatenate([ahead, behind], axis=-1))
        return x

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        sizes = {"num_layers": self.num_layers, "d_model": self.d_model, "dropout": self.dropout}
        return {**super().get_config(), **sizes}
