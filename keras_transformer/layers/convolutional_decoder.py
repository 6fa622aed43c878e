"""A decoder of gated convolutions that attends to the source in each block (Gehring et al. 2017,
section 3.3), which table 2 of Vaswani et al. 2017 compares the Transformer with.

`call` processes a whole target (training); a stepper adds one token per hypothesis from the last
k - 1 (decoding). Both give the same activations.
"""

from collections.abc import Callable, Iterable
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.convolutions import HALVED, ConvolutionalEncoder
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.linear_maps import Dense
from keras_transformer.layers.prototypes import KeepsShape, Layer
from keras_transformer.layers.scaled_dot_product import scaled_dot_product_attention
from keras_transformer.layers.tensors import KeysAndValues, Masks, State, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class MultiStepAttention(Layer):
    """The attention of one block, to keys z and values of the source.

        q = (x W + b + g) sqrt(0.5)               g: the embedding of the previous token
        y = (x + sqrt(m) softmax(q z^T / d_model) values) sqrt(0.5)

    m is the number of source tokens: the mean of m vectors, times sqrt(m), has the variance of one
    vector. This needs weights that start almost equal. Gehring et al. have them without dividing
    q z^T, because their embeddings start with a deviation of 0.1; ours start with 1.

    Takes x and g, (B, n, d_model), keys and values, (B, S, d_model), and `memory_mask`, booleans
    (B, 1, S) or None. Returns (B, n, d_model), and the weights, (B, n, S).
    """

    def __init__(self, d_model: int, **kwargs):
        super().__init__(**kwargs)
        self.d_model = d_model
        start = keras.initializers.RandomNormal(stddev=d_model**-0.5)
        self.query = Dense(d_model, kernel_initializer=start, dtype=self.dtype_policy, name="query")

    def build(self, x_shape):
        self.query.build(x_shape)

    def call(
        self, x: Tensor, g: Tensor, keys: Tensor, values: Tensor, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        # The attention divides the scores by the other sqrt(d_model).
        query = (self.query(x) + g) * (HALVED * self.d_model**-0.5)
        context, weights = scaled_dot_product_attention(query, keys, values, memory_mask)
        context = context * _root_of_length(keys, memory_mask)
        return (x + context) * HALVED, weights


def _root_of_length(keys, memory_mask):
    """Return sqrt(m) of each source, (B, 1, 1)."""
    if memory_mask is None:
        memory_mask = ops.ones_like(keys[:, None, :, 0])
    return ops.sqrt(ops.sum(ops.cast(memory_mask, keys.dtype), axis=-1, keepdims=True))


@keras.saving.register_keras_serializable("keras_transformer")
class ConvolutionalDecoder(KeepsShape, ConvolutionalEncoder):
    """N causal blocks, each with an attention to the source, and a linear map.

    Without the map, section 3.2's "just before the softmax", the embeddings in the residual sum
    would make the logits of the newest token and of the source's tokens large from the start.

    Called as `Decoder`; the memory is `ConvolutionalEncoder`'s output, (B, S, 2 d_model).
    """

    padding = "causal"

    def __init__(
        self, num_layers: int, d_model: int, kernel_size: int = 3, dropout: float = 0.0, **kwargs
    ):
        super().__init__(num_layers, d_model, kernel_size, dropout, **kwargs)
        policy = self.dtype_policy
        self.attentions = [
            MultiStepAttention(d_model, dtype=policy, name=f"attention_{n}")
            for n in range(num_layers)
        ]
        self.output_dropout = Dropout(dropout, dtype=policy, name="output_dropout")
        start = keras.initializers.RandomNormal(stddev=d_model**-0.5)
        self.output_map = Dense(d_model, kernel_initializer=start, dtype=policy, name="output_map")

    def build(self, x_shape, memory_shape):
        for layer in (*self.blocks, *self.attentions, self.output_map):
            layer.build(x_shape)

    def through(
        self, x: Tensor, convolve: Callable, look: Callable, *of_blocks: Iterable
    ) -> tuple[Tensor, list[Any], list[Tensor]]:
        """Apply the layers in order, for whole sequences and single positions alike.

        `convolve` takes x (..., d_model) and one block's items of `of_blocks`, and returns y and
        the block's state; `look` takes an attention and y, and returns y and weights. Returns (...,
        d_model), the blocks' states and the attentions' weights.
        """
        states = []
        weights = []
        for attention, *of_block in zip(self.attentions, *of_blocks, strict=True):
            x, state = convolve(x, *of_block)
            x, attended = look(attention, x)
            states.append(state)
            weights.append(attended)
        return self.output_map(self.output_dropout(x)), states, weights

    def call(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        return self.with_attention(x, memory, memory_mask)[0]

    def with_attention(
        self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the result of `call`, and every block's attention weights, (B, N, 1, T, S)."""
        keys, values = self.memory_cache(memory)
        memory_mask = Masks(memory_mask).checked(x, memory, memory).attention

        def convolve(x, block):
            return block(x), None

        def look(attention, y):
            return attention(y, x, keys, values, memory_mask=memory_mask)

        y, _, weights = self.through(x, convolve, look, self.blocks)
        return y, ops.stack(weights, axis=1)[:, :, None]

    def memory_cache(self, memory: Tensor) -> KeysAndValues:
        """Split a memory into keys and values, (B, S, d_model) each, which all attentions share."""
        return memory[..., : self.d_model], memory[..., self.d_model :]

    def stepper(self) -> "ConvolutionalDecoderStepper":
        return ConvolutionalDecoderStepper(self)


class ConvolutionalDecoderStepper:
    """A `ConvolutionalDecoder` for one new position of each of K hypotheses a sentence, called as
    `DecoderStepper`. The weights are those of the last block.
    """

    def __init__(self, decoder: ConvolutionalDecoder):
        self._through = decoder.through
        self._blocks = [block.stepper() for block in decoder.blocks]
        self.growing = [block.growing for block in self._blocks]

    def start(self, rows: int | Tensor) -> State:
        return [block.start(rows) for block in self._blocks]

    def __call__(
        self, x: Tensor, state: State, memory: KeysAndValues, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor]:
        shape = ops.shape(x)

        def convolve(y, block, state):
            y, state = block(ops.reshape(y, (-1, x.shape[-1])), state)
            return ops.reshape(y, shape), state

        def look(attention, y):
            return attention(y, x, *memory, memory_mask=memory_mask)

        y, state, weights = self._through(x, convolve, look, self._blocks, state)
        return y, state, ops.cast(weights[-1], "float32")
