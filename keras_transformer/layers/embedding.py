"""Token embeddings, tied to the output projection, plus positions (Vaswani et al. 2017,
sections 3.4, 3.5 and 5.4).
"""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.position_encodings import PositionEncoding, SinusoidalEncoding
from keras_transformer.layers.prototypes import described, like
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class PositionalEmbedding(keras.layers.Layer):
    """One table E of (V, d_model) for both embeddings and the pre-softmax projection ("we share the
    same weight matrix").

        embedding: Dropout(TokenDropout(E[ids]) * sqrt(d_model) + PE(positions))
        reverse:   x E^T

    Args:
        vocabulary_size: V.
        d_model: width of the embedding.
        dropout: probability in [0, 1), applied to "the sums of the embeddings and the positional
            encodings".
        encoding: what PE is: a `PositionEncoding`, of which this layer makes a copy;
            `SinusoidalEncoding()`, the paper's, by default.
        token_dropout: probability in [0, 1) that a token's whole embedding becomes 0, with its
            position left; the paper has none.
        scaled: whether E[ids] is multiplied by sqrt(d_model), as in the paper. BERT and GPT-2 do
            not.

    Call arguments:
        inputs: ids, integers (B, T); with `reverse=True` activations, (B, T, d_model).
        positions: integers broadcastable to (B, T); 0, 1, 2... by default.
        reverse: project onto the vocabulary instead of embedding.

    Returns:
        (B, T, d_model); with `reverse=True` logits, (B, T, V).

    Example:
        embedding = PositionalEmbedding(vocabulary_size=8000, d_model=256)
        x = embedding(ids)
        logits = embedding(x, reverse=True)

    References: Press and Wolf 2016, "Using the Output Embedding to Improve Language Models";
        Sennrich and Zhang 2019, "Revisiting Low-Resource Neural Machine Translation", section 3.3.
    """

    def __init__(
        self,
        vocabulary_size: int,
        d_model: int,
        dropout: float = 0.0,
        encoding: PositionEncoding | dict[str, Any] | None = None,
        token_dropout: float = 0.0,
        scaled: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.d_model = d_model
        self.dropout = dropout
        self.token_dropout = token_dropout
        self.scale = d_model**0.5 if scaled else 1.0
        self.sum_dropout = Dropout(dropout, dtype=self.dtype_policy, name="sum_dropout")
        self.whole_tokens = Dropout(token_dropout, dtype=self.dtype_policy, name="whole_tokens")
        self.encoding = like(encoding or SinusoidalEncoding(), self.dtype_policy, "encoding")

    def build(self, inputs_shape):
        # A standard deviation of d_model^-0.5 gives embeddings of unit variance after the scaling
        # by sqrt(d_model), and logits of unit variance.
        self.table = self.add_weight(
            name="table",
            shape=(self.vocabulary_size, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
        )
        self.encoding.build((None, None, self.d_model))

    def call(
        self, inputs: Tensor, positions: Tensor | None = None, reverse: bool = False
    ) -> Tensor:
        if reverse:
            return ops.matmul(inputs, ops.transpose(self.table))
        if positions is None:
            positions = ops.arange(ops.shape(inputs)[1])[None]
        x = ops.take(self.table, inputs, axis=0) * self.scale
        if self.token_dropout:
            x = x * self.whole_tokens(ops.ones((*ops.shape(inputs), 1), dtype=x.dtype))
        return self.sum_dropout(self.encoding.added(x, positions))

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "d_model": self.d_model,
            "dropout": self.dropout,
            "encoding": described(self.encoding),
            "token_dropout": self.token_dropout,
            "scaled": self.scale != 1.0,
        }
