"""The Transformer (Vaswani et al. 2017, figure 1) as a functional Keras model."""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers import (
    Decoder,
    Encoder,
    NoEncoding,
    PositionalEmbedding,
    padding_mask,
)
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.stepper import Stepper
from keras_transformer.models.variants import (
    ACTIVATIONS,
    FEED_FORWARDS,
    NORMS,
    POSITIONS,
    RESIDUAL_INITIALIZATIONS,
    TIES,
    heads,
)


@keras.saving.register_keras_serializable("keras_transformer")
class Transformer(keras.Model):
    """Two stacks between one embedding, which source, target and logits share unless they are
    given others.

    Called with `(source, target)` ids it gives logits, and trains with `model.fit`. `encode` and
    `stepper` decode with the same weights.

    Args:
        hyperparameters: sizes and variants; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments:
        source: ids, (B, S), padded with PAD.
        target: ids shifted right by a start token, (B, T), padded with PAD.

    Returns:
        Logits in float32, (B, T, V).

    Example:
        model = Transformer(Hyperparameters(vocabulary_size=8000))
        logits = model((source, target))
    """

    # It has `attention_weights`. What decodes as a `Transformer` does may have none.
    gives_attention = True

    def __init__(
        self,
        hyperparameters: Hyperparameters | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "transformer",
        **sizes,
    ):
        hp = hyperparameters or Hyperparameters(**sizes)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        stack = {
            "num_layers": hp.num_layers,
            "num_heads": hp.num_heads,
            "d_model": hp.d_model,
            "d_ff": hp.d_ff,
            "d_k": hp.d_k,
            "d_v": hp.d_v,
            "dropout": hp.dropout,
            "activation": ACTIVATIONS[hp.activation],
            "norm": NORMS[hp.norm],
            "residual_initialization": RESIDUAL_INITIALIZATIONS[hp.residual_initialization],
            "feed_forward": FEED_FORWARDS[hp.activation],
            "activation_dropout": hp.activation_dropout,
            "dtype": policy,
        }
        of_encoder, of_decoder, of_memory = heads(hp)
        source_embedding, embedding, projection = _tables(hp, policy)
        encoder = Encoder(**stack, heads=of_encoder, name="encoder")
        decoder = Decoder(**stack, heads=of_decoder, cross_heads=of_memory, name="decoder")

        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        source_mask = padding_mask(source)
        memory = encoder(source_embedding(source), attention_mask=source_mask)
        x = decoder(embedding(target), memory, memory_mask=source_mask)
        logits = ops.cast(projection(x, reverse=True), "float32")
        super().__init__(inputs=(source, target), outputs=logits, name=name)

        self.hyperparameters = hp
        # Of the target; the others are the same layer where they are tied.
        self.embedding = embedding
        self.source_embedding = source_embedding
        self.projection = projection
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, source: Tensor) -> dict[str, Any]:
        """Run the encoder once and keep what decoding needs of it.

        Args:
            source: ids, (B, S).

        Returns:
            What a stepper takes as its source, tensors of B rows: "memory", the memory's keys and
            values for every layer of the decoder, and "mask", which of its positions are tokens,
            (B, 1, S).
        """
        return self.cache(
            source, self.encoder(self.source_embedding(source), attention_mask=padding_mask(source))
        )

    def cache(self, source: Tensor, memory: Tensor) -> dict[str, Any]:
        """What `encode` returns, from source ids (B, S) and their memory (B, S, d_model)."""
        return {"memory": self.decoder.memory_cache(memory), "mask": padding_mask(source)}

    def stepper(self) -> Stepper:
        """A `Stepper` for decoding, with the weights as they are now."""
        return Stepper(self)

    def encode_with_attention(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The memory, (B, S, d_model), and what every layer's heads attend to, (B, N, h, S, S)."""
        return self.encoder.with_attention(self.source_embedding(source), padding_mask(source))

    def decode_with_attention(
        self, source: Tensor, target: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What `call` gives, from a memory, and what every layer's heads attend to.

        Args:
            source, target: as in `call`.
            memory: the first that `encode_with_attention` returned.

        Returns:
            Logits in float32, (B, T, V); attention to the target, (B, N, h, T, T), and to the
            memory, (B, N, h, T, S); rows sum to 1.
        """
        x, (to_target, to_memory) = self.decoder.with_attention(
            self.embedding(target), memory, padding_mask(source)
        )
        return ops.cast(self.projection(x, reverse=True), "float32"), to_target, to_memory

    def attention_weights(self, source: Tensor, target: Tensor) -> dict[str, Tensor]:
        """What every layer's heads attend to, for pictures and alignments.

        Args:
            source, target: as in `call`.

        Returns:
            A dictionary: "encoder" (B, N, h, S, S), "decoder" (B, N, h, T, T) and "cross" (B, N, h,
            T, S); rows sum to 1.
        """
        memory, within_source = self.encode_with_attention(source)
        _, to_target, to_memory = self.decode_with_attention(source, target, memory)
        return {"encoder": within_source, "decoder": to_target, "cross": to_memory}

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.decoder.dtype_policy),
            **self.hyperparameters.as_dict(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def _tables(hp, policy):
    """The embeddings of source and target, and the projection onto the vocabulary."""

    def embedding(name):
        encoding = POSITIONS[hp.positions].encoding(hp.max_positions)
        sizes = (hp.vocabulary_size, hp.d_model)
        dropouts = {"dropout": hp.dropout, "token_dropout": hp.token_dropout}
        return PositionalEmbedding(*sizes, encoding=encoding, **dropouts, dtype=policy, name=name)

    def projection(name):
        sizes = (hp.vocabulary_size, hp.d_model)
        return PositionalEmbedding(*sizes, encoding=NoEncoding(), dtype=policy, name=name)

    return TIES[hp.tie_embeddings](embedding, projection)
