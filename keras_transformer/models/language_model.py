"""A decoder-only model: the decoder of figure 1 (Vaswani et al. 2017) without an encoder, which
continues text (Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training").
"""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers import CausalStack, Matrix, NoEncoding, PositionalEmbedding
from keras_transformer.layers.tensors import State, Tensor
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.variants import (
    ACTIVATIONS,
    FEED_FORWARDS,
    NORMS,
    POSITIONS,
    RESIDUAL_INITIALIZATIONS,
    heads,
)


@keras.saving.register_keras_serializable("keras_transformer")
class LanguageModel(keras.Model):
    """A causal stack between an embedding and a projection, which share one table unless
    `tie_embeddings` is "none".

        P(y_t | y_1 .. y_(t-1)) = softmax(Stack(E[BOS, y_1 .. y_(t-1)]) E^T)

    Args:
        hyperparameters: sizes and variants; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments:
        ids: the text shifted right by a start token, (B, T), padded with PAD.

    Returns:
        Logits in float32, (B, T, V).

    Example:
        model = LanguageModel(vocabulary_size=8000, norm="pre", activation="gelu")
        logits = model(ids)
    """

    what = "A decoder-only Transformer (Radford et al. 2018)"

    def __init__(
        self,
        hyperparameters: Hyperparameters | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "language_model",
        **sizes,
    ):
        hp = hyperparameters or Hyperparameters(**sizes)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PositionalEmbedding(
            hp.vocabulary_size,
            hp.d_model,
            dropout=hp.dropout,
            encoding=POSITIONS[hp.positions].encoding(hp.max_positions),
            token_dropout=hp.token_dropout,
            scaled=hp.scaled_embeddings,
            dtype=policy,
            name="embedding",
        )
        projection = embedding if hp.tie_embeddings != "none" else _projection(hp, policy)
        stack = _stack(hp, policy)
        ids = keras.Input((None,), dtype="int32", name="text")
        logits = ops.cast(projection(stack(embedding(ids)), reverse=True), "float32")
        super().__init__(inputs=ids, outputs=logits, name=name)
        self.hyperparameters = hp
        self.embedding = embedding
        self.stack = stack
        self.projection = projection

    def stepper(self) -> "LanguageStepper":
        """A `LanguageStepper` for decoding, with the weights as they are now."""
        return LanguageStepper(self)

    def attention_weights(self, ids: Tensor) -> dict[str, Tensor]:
        """What every layer's heads attend to.

        Args:
            ids: as in `call`.

        Returns:
            A dictionary: "decoder" (B, N, h, T, T). Rows sum to 1.
        """
        _, weights = self.stack.with_attention(self.embedding(ids))
        return {"decoder": weights}

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.stack.dtype_policy),
            **self.hyperparameters.as_dict(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def _projection(hp, policy):
    return PositionalEmbedding(
        hp.vocabulary_size, hp.d_model, encoding=NoEncoding(), dtype=policy, name="projection"
    )


def _stack(hp, policy):
    _, of_decoder, _ = heads(hp)
    return CausalStack(
        hp.num_layers,
        hp.num_heads,
        hp.d_model,
        hp.d_ff,
        d_k=hp.d_k,
        d_v=hp.d_v,
        dropout=hp.dropout,
        activation=ACTIVATIONS[hp.activation],
        norm=NORMS[hp.norm],
        residual_initialization=RESIDUAL_INITIALIZATIONS[hp.residual_initialization],
        heads=of_decoder,
        feed_forward=FEED_FORWARDS[hp.activation],
        activation_dropout=hp.activation_dropout,
        attention_bias=hp.attention_bias,
        norm_epsilon=hp.norm_epsilon,
        dtype=policy,
        name="decoder",
    )


class LanguageStepper:
    """Logits of the next token of K hypotheses a text, as `keras_transformer.decoding` calls it:
    without a source.

    Make it before a loop over tokens, not inside: it lays out its matrices when it is made.

    Args:
        model: a built `LanguageModel`.

    Call arguments:
        ids: the newest tokens, (B, K).
        position: how many tokens came before them, a scalar.
        state: what `start` or the step before returned.
        source: is not read.

    Returns:
        Logits, float32 (B, K, V); the new state; and None, for there is no source to attend to.
    """

    def __init__(self, model: LanguageModel):
        self._embedding = model.embedding
        self._stack = model.stack.stepper()
        self._table = Matrix([ops.transpose(model.projection.table)], model.projection.dtype_policy)
        self.growing = self._stack.growing

    def start(self, rows: int | Tensor) -> State:
        """The state before the first token, of B K rows."""
        return self._stack.start(rows)

    def __call__(
        self, ids: Tensor, position: Tensor, state: State, source: Any = None
    ) -> tuple[Tensor, State, None]:
        x = self._embedding(ids, positions=ops.reshape(position, (1, 1)))
        x, state = self._stack(ops.reshape(x, (-1, x.shape[-1])), state)
        [logits] = self._table(x)
        shape = ops.shape(ids)
        logits = ops.cast(logits, "float32")
        return ops.reshape(logits, (shape[0], shape[1], logits.shape[-1])), state, None
