"""An encoder-only model that predicts masked pieces (Devlin et al. 2019, "BERT: Pre-training of
Deep Bidirectional Transformers for Language Understanding", section 3.1), out of the encoder of
figure 1 (Vaswani et al. 2017).
"""

import keras
from keras import ops

from keras_transformer.layers import NoEncoding, PieceBias, PiecePrediction, PositionalEmbedding
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.text_encoder import TextEncoder, inputs
from keras_transformer.models.variants import ACTIVATIONS


@keras.saving.register_keras_serializable("keras_transformer")
class MaskedLanguageModel(keras.Model):
    """Logits of the pieces that may stand at some places of a text.

        P(piece at t | text) = softmax(LayerNorm(gelu(x_t W + b)) E^T + c),    x = Encoder(text)

    Logits of V pieces cost as much as two layers of a small model. So they are made where they are
    asked for, which in training is one token in seven.

    Args:
        hyperparameters: sizes and variants; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments:
        tokens: ids, (B, T), padded with PAD.
        segments: 0 for tokens of a first sentence, 1 for those of a second, (B, T).
        places: the numbers of the tokens to guess, (B, M), each from 0 to T - 1.

    Returns:
        Logits in float32, (B, M, V).

    Example:
        model = MaskedLanguageModel(vocabulary_size=8000, positions="learned", activation="gelu")
        logits = model((tokens, segments, places))
    """

    what = "An encoder-only Transformer (Devlin et al. 2019, arXiv 1810.04805)"

    def __init__(
        self,
        hyperparameters: Hyperparameters | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "masked_language_model",
        **sizes,
    ):
        hp = hyperparameters or Hyperparameters(**sizes)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        body = TextEncoder(hp, policy)
        projection = body.embedding if hp.tie_embeddings != "none" else _projection(hp, policy)
        prediction = PiecePrediction(
            ACTIVATIONS[hp.activation], hp.norm_epsilon, dtype=policy, name="prediction"
        )
        bias = PieceBias(dtype=policy, name="output_bias")
        tokens, segments = inputs()
        places = keras.Input((None,), dtype="int32", name="places")
        x = prediction(body(tokens, segments), places)
        logits = ops.cast(bias(projection(x, reverse=True)), "float32")
        super().__init__(inputs=(tokens, segments, places), outputs=logits, name=name)
        self.hyperparameters = hp
        self.body = body
        self.embedding = body.embedding

    def states(self, tokens: Tensor, segments: Tensor) -> Tensor:
        """The last layer's states, (B, T, d_model), of inputs as `call` has them."""
        return self.body(tokens, segments)

    def attention_weights(self, tokens: Tensor, segments: Tensor) -> dict[str, Tensor]:
        """What every layer's heads attend to.

        Args:
            tokens, segments: as in `call`.

        Returns:
            A dictionary: "encoder" (B, N, h, T, T). Rows sum to 1.
        """
        _, weights = self.body.with_attention(tokens, segments)
        return {"encoder": weights}

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.embedding.dtype_policy),
            **self.hyperparameters.as_dict(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def _projection(hp, policy):
    return PositionalEmbedding(
        hp.vocabulary_size, hp.d_model, encoding=NoEncoding(), dtype=policy, name="projection"
    )
