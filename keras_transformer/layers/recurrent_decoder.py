"""A decoder of LSTM layers with additive attention, which the Transformer's replaces (Vaswani et
al. 2017, sections 1 and 3.2.1).

`call` processes a whole target (training); a stepper adds one token per hypothesis (decoding). Both
give the same activations.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.heads.softmax import SoftmaxHeads
from keras_transformer.layers.lstm import lstm
from keras_transformer.layers.recurrent_steppers import RecurrentDecoderStepper
from keras_transformer.layers.scaled_dot_product import Additive
from keras_transformer.layers.tensors import KeysAndValues, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class RecurrentDecoder(keras.layers.Layer):
    """N LSTM layers; the output of the first attends to the source, for all that follow.

        x = x + Dropout(LSTM_1(x))
        c = Attention(x, memory, memory)          additive, of one head
        x = x + Dropout(LSTM_n([x, c]))           n = 2 to N
        y = tanh([x, c] W)

    For N = 1 this is the global attention of Luong et al. 2015, section 3.1, without their input
    feeding, with the scores of Bahdanau et al. 2014; that the first layer attends for those above
    it is due to Wu et al. 2016, section 3. No LSTM layer reads what its own attention found one
    step before, so that each layer computes the whole target in one call. The layers start from
    zeros: what the decoder knows of the source comes by attention alone.

    Args:
        num_layers: N.
        d_model: width of input, output, LSTM layers and the hidden layer of the attention.
        dropout: probability in [0, 1) on the output of each layer.

    Call arguments:
        x: embedded target, shifted right, (B, T, d_model).
        memory: the encoder's output, (B, S, d_model).
        memory_mask: booleans broadcastable to (B, T, S), True where it may be attended to.

    Returns:
        (B, T, d_model). Position t depends only on positions up to t, so padding at the end needs
        no mask.
    """

    def __init__(self, num_layers: int, d_model: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.d_model = d_model
        self.dropout = dropout
        policy = self.dtype_policy
        self.layers = [lstm(d_model, policy, f"lstm_{n}") for n in range(num_layers)]
        self.output_dropouts = [
            Dropout(dropout, dtype=policy, name=f"dropout_{n}") for n in range(num_layers)
        ]
        heads = SoftmaxHeads(similarity=Additive())
        self.attention = MultiHeadAttention(1, d_model, heads=heads, dtype=policy, name="attention")
        self.combination = keras.layers.Dense(
            d_model, "tanh", use_bias=False, dtype=policy, name="combination"
        )

    def build(self, x_shape, memory_shape):
        with_context = (*x_shape[:-1], 2 * self.d_model)
        self.layers[0].build(x_shape)
        for layer in self.layers[1:]:
            layer.build(with_context)
        self.attention.build(x_shape, memory_shape, memory_shape)
        self.combination.build(with_context)

    def through(
        self, x: Tensor, recur: Callable, look: Callable, combine: Callable
    ) -> tuple[Tensor, list[Any], Tensor]:
        """The order of the layers, for whole sequences and single positions alike.

        Args:
            x: (..., d_model).
            recur: n, (..., width) -> what LSTM layer n gives, (..., d_model), and its state.
            look: (..., d_model) -> what the attention finds, (..., d_model), and its weights.
            combine: (..., 2 d_model) -> (..., d_model).

        Returns:
            (..., d_model), the layers' states, and the weights.
        """
        y, state = recur(0, x)
        states = [state]
        x = x + self.output_dropouts[0](y)
        context, weights = look(x)
        for n in range(1, self.num_layers):
            y, state = recur(n, ops.concatenate([x, context], axis=-1))
            states.append(state)
            x = x + self.output_dropouts[n](y)
        return combine(ops.concatenate([x, context], axis=-1)), states, weights

    def _whole(self, x, look):
        def recur(n, x):
            return self.layers[n](x), None

        return self.through(x, recur, look, self.combination)

    def call(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        def look(x):
            return self.attention(x, memory, memory, attention_mask=memory_mask), None

        y, _, _ = self._whole(x, look)
        return y

    def with_attention(
        self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """`call`, and second what is attended to, (B, 1, 1, T, S)."""

        def look(x):
            return self.attention.with_attention(x, memory, memory, memory_mask)

        y, _, weights = self._whole(x, look)
        return y, weights[:, None]

    def memory_cache(self, memory: Tensor) -> KeysAndValues:
        """The keys and values of a memory (B, S, d_model), projected once a sentence."""
        return self.attention.keys_and_values(memory, memory)

    def stepper(self) -> RecurrentDecoderStepper:
        """The stack for one position at a time, with the weights as they are now."""
        return RecurrentDecoderStepper(self)

    def compute_output_shape(self, x_shape, memory_shape):
        return x_shape

    def get_config(self):
        sizes = {"num_layers": self.num_layers, "d_model": self.d_model, "dropout": self.dropout}
        return {**super().get_config(), **sizes}
