"""A decoder-only model: the decoder of figure 1 (Vaswani et al. 2017) without an encoder."""

import keras

from keras_transformer.layers import Decoder
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameters import OF_TWO_STACKS
from keras_transformer.models.sized_model import (
    SizedModel,
    Stepper,
    encoding,
    heads,
    stack_arguments,
)
from keras_transformer.models.transformer import tied_tables
from keras_transformer.models.variants import attention_and_number


@keras.saving.register_keras_serializable("keras_transformer")
class LanguageModel(SizedModel):
    """A decoder without a memory, between an embedding and a projection that share one table unless
    `tie_embeddings` is "none" or "inputs".

        P(y_t | y_1 .. y_(t-1)) = softmax(Decoder(E[BOS, y_1 .. y_(t-1)]) E^T)

    Call arguments:
        ids: the text shifted right by a start token, (B, T), padded with PAD.

    Returns:
        Logits in float32, (B, T, V).

    Example:
        model = LanguageModel(vocabulary_size=8000, norm="pre", activation="gelu")
        logits = model(ids)

    Reference: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training".
    """

    kind = "A decoder-only Transformer (Radford et al. 2018)"
    unused = OF_TWO_STACKS

    @staticmethod
    def check_attention(attention: str) -> None:
        """Refuse an attention that only an encoder can have."""
        if attention_and_number(attention)[0] == "low_rank":
            raise ValueError(
                f"attention={attention} mixes the keys of a whole text, so only an encoder can "
                "have it, and a language model has no encoder. Try attention=local:64."
            )

    def assembled(self, hyperparameters, policy):
        hp = hyperparameters
        self.check_attention(hp.attention)
        tables = tied_tables(hp, encoding(hp), policy, sides=("embedding",))
        _, of_decoder, _ = heads(hp)
        decoder = Decoder(
            **stack_arguments(hp), has_memory=False, heads=of_decoder, dtype=policy, name="decoder"
        )
        ids = keras.Input((None,), dtype="int32", name="text")
        x = decoder(tables["embedding"](ids))
        return ids, tables["projection"](x, reverse=True), {**tables, "decoder": decoder}

    def stepper(self, table: Tensor | None = None) -> Stepper:
        """Make a `Stepper` for decoding, with the current weights."""
        return Stepper(self, table)

    def attention_weights(self, ids: Tensor) -> dict[str, Tensor]:
        """Return attention weights: {"decoder": (B, N, h, T, T)}, whose rows sum to 1."""
        _, (weights, _) = self.decoder.with_attention(self.embedding(ids))
        return {"decoder": weights}
