"""A decoder-only model: the decoder of figure 1 (Vaswani et al. 2017) without an encoder, which
continues text (Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training").
"""

import keras
from keras import ops

from keras_transformer.layers import Decoder, NoEncoding, PositionalEmbedding
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.stepper import Stepper
from keras_transformer.models.variants import POSITIONS, heads, stack_arguments


@keras.saving.register_keras_serializable("keras_transformer")
class LanguageModel(keras.Model):
    """A decoder without a memory, between an embedding and a projection that share one table unless
    `tie_embeddings` is "none".

        P(y_t | y_1 .. y_(t-1)) = softmax(Decoder(E[BOS, y_1 .. y_(t-1)]) E^T)

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
        _, of_decoder, _ = heads(hp)
        decoder = Decoder(
            **stack_arguments(hp), has_memory=False, heads=of_decoder, dtype=policy, name="decoder"
        )
        ids = keras.Input((None,), dtype="int32", name="text")
        logits = ops.cast(projection(decoder(embedding(ids)), reverse=True), "float32")
        super().__init__(inputs=ids, outputs=logits, name=name)
        self.hyperparameters = hp
        self.embedding = embedding
        self.decoder = decoder
        self.projection = projection

    def stepper(self) -> Stepper:
        """A `Stepper` for decoding, with the weights as they are now."""
        return Stepper(self)

    def attention_weights(self, ids: Tensor) -> dict[str, Tensor]:
        """What every layer's heads attend to.

        Args:
            ids: as in `call`.

        Returns:
            A dictionary: "decoder" (B, N, h, T, T). Rows sum to 1.
        """
        _, (weights, _) = self.decoder.with_attention(self.embedding(ids))
        return {"decoder": weights}

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.decoder.dtype_policy),
            **self.hyperparameters.as_dict(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def _projection(hp, policy):
    return PositionalEmbedding(
        hp.vocabulary_size, hp.d_model, encoding=NoEncoding(), dtype=policy, name="projection"
    )
