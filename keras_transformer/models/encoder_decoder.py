"""What every architecture of the translation task is: an encoder, a decoder, and the tables of
their embeddings (Vaswani et al. 2017, sections 3 and 3.4).
"""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers import NoEncoding, PositionalEmbedding, PositionEncoding, padding_mask
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.stepper import Stepper
from keras_transformer.models.variants import TIES


class EncoderDecoder(keras.Model):
    """An encoder and a decoder as one functional Keras model.

    Called with `(source, target)` ids it gives logits, and trains with `model.fit`. `encode` and
    `stepper` decode with the same weights.

    Args:
        hyperparameters: what decides the weights: a dataclass with `vocabulary_size` and `as_dict`.
        tables: the embeddings of source and target, and the projection onto the vocabulary.
        encoder: (B, S, d_model) and `attention_mask` -> the memory, (B, S, any width).
        decoder: (B, T, d_model), the memory and `memory_mask` -> (B, T, d_model); with
            `with_attention`, `memory_cache` and `stepper`, as `layers.Decoder` has them.
        name: of the model.

    Call arguments:
        source: ids, (B, S), padded with PAD.
        target: ids shifted right by a start token, (B, T), padded with PAD.

    Returns:
        Logits in float32, (B, T, V).

    Attributes:
        what: the architecture in words, for whoever gets an export.
    """

    # It has `attention_weights`. What decodes like this may have none.
    gives_attention = True
    what: str

    def __init__(
        self,
        hyperparameters: Any,
        tables: tuple[PositionalEmbedding, PositionalEmbedding, PositionalEmbedding],
        encoder: keras.layers.Layer,
        decoder: keras.layers.Layer,
        name: str,
    ):
        source_embedding, embedding, projection = tables
        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        source_mask = padding_mask(source)
        memory = encoder(source_embedding(source), attention_mask=source_mask)
        x = decoder(embedding(target), memory, memory_mask=source_mask)
        logits = ops.cast(projection(x, reverse=True), "float32")
        super().__init__(inputs=(source, target), outputs=logits, name=name)

        self.hyperparameters = hyperparameters
        # Of the target; the others are the same layer where they are tied.
        self.embedding = embedding
        self.source_embedding = source_embedding
        self.projection = projection
        self.encoder = encoder
        self.decoder = decoder
        self.memory_width = memory.shape[-1]

    def encode(self, source: Tensor) -> dict[str, Any]:
        """Run the encoder once and keep what decoding needs of it.

        Args:
            source: ids, (B, S).

        Returns:
            What a stepper takes as its source, tensors of B rows: "memory", what the decoder's
            `memory_cache` makes of the memory, and "mask", which of its positions are tokens,
            (B, 1, S).
        """
        return self.cache(source, self._memory(source))

    def cache(self, source: Tensor, memory: Tensor) -> dict[str, Any]:
        """What `encode` returns, from source ids (B, S) and their memory."""
        return {"memory": self.decoder.memory_cache(memory), "mask": padding_mask(source)}

    def stepper(self) -> Stepper:
        """A `Stepper` for decoding, with the weights as they are now."""
        return Stepper(self)

    def encode_with_attention(self, source: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The memory, (B, S, width), and what the encoder attends to, as in `attention_weights`."""
        return self._memory(source), {}

    def decode_with_attention(
        self, source: Tensor, target: Tensor, memory: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """What `call` gives, from a memory, and what the decoder attends to.

        Args:
            source, target: as in `call`.
            memory: the first that `encode_with_attention` returned.

        Returns:
            Logits in float32, (B, T, V), and what the decoder attends to, as in
            `attention_weights`.
        """
        x, weights = self.decoder.with_attention(
            self.embedding(target), memory, padding_mask(source)
        )
        return self._logits(x), {"cross": weights}

    def attention_weights(self, source: Tensor, target: Tensor) -> dict[str, Tensor]:
        """What every layer's heads attend to, for pictures and alignments.

        Args:
            source, target: as in `call`.

        Returns:
            A dictionary: "cross" (B, N, h, T, S), attention to the source, whose N may be that of
            the layers that attend; and of a model that has self-attention, "encoder" (B, N, h, S,
            S) and "decoder" (B, N, h, T, T). Rows sum to 1.
        """
        memory, of_source = self.encode_with_attention(source)
        _, of_target = self.decode_with_attention(source, target, memory)
        return {**of_source, **of_target}

    def _memory(self, source):
        mask = padding_mask(source)
        return self.encoder(self.source_embedding(source), attention_mask=mask)

    def _logits(self, x):
        return ops.cast(self.projection(x, reverse=True), "float32")

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.decoder.dtype_policy),
            **self.hyperparameters.as_dict(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def tied_tables(
    hyperparameters: Any,
    encoding: PositionEncoding,
    policy: keras.DTypePolicy,
    scaled: bool = True,
) -> tuple[PositionalEmbedding, PositionalEmbedding, PositionalEmbedding]:
    """The embeddings of source and target, and the projection onto the vocabulary (section 3.4).

    Args:
        hyperparameters: with `vocabulary_size`, `d_model`, `dropout`, `token_dropout` and
            `tie_embeddings`.
        encoding: what is added to the embeddings.
        policy: a Keras dtype policy.
        scaled: whether the embeddings are multiplied by sqrt(d_model).
    """
    hp = hyperparameters
    sizes = (hp.vocabulary_size, hp.d_model)

    def embedding(name):
        return PositionalEmbedding(
            *sizes,
            dropout=hp.dropout,
            encoding=encoding,
            token_dropout=hp.token_dropout,
            scaled=scaled,
            dtype=policy,
            name=name,
        )

    def projection(name):
        return PositionalEmbedding(*sizes, encoding=NoEncoding(), dtype=policy, name=name)

    return TIES[hp.tie_embeddings](embedding, projection)
