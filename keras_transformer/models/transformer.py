"""The Transformer, encoder to logits (Vaswani et al. 2017, figure 1), as a functional Keras model."""

import keras
from keras import ops

from keras_transformer.layers import Decoder, Encoder, PositionalEmbedding, padding_mask
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.stepper import Stepper


@keras.saving.register_keras_serializable("keras_transformer")
class Transformer(keras.Model):
    """Two stacks between one shared, three-way tied embedding.

    Called with `(source, target)` ids it gives logits, and trains with `model.fit`. `encode` and a
    `stepper` decode from the same weights.

    Args:
        hyperparameters: the sizes; or its fields as keywords.

    Call arguments:
        source: ids, (B, S), padded with 0.
        target: ids shifted right by a start token, (B, T), padded with 0.

    Returns:
        Logits in float32, (B, T, V).

    Example:
        model = Transformer(Hyperparameters(vocabulary_size=8000))
        logits = model((source, target))
    """

    def __init__(self, hyperparameters=None, dtype=None, name="transformer", **sizes):
        hp = hyperparameters or Hyperparameters(**sizes)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        sizes = {
            name: getattr(hp, name)
            for name in ("num_layers", "num_heads", "d_model", "d_ff", "d_k", "d_v", "dropout")
        }
        embedding = PositionalEmbedding(
            hp.vocabulary_size, hp.d_model, hp.dropout, dtype=policy, name="embedding"
        )
        encoder = Encoder(**sizes, dtype=policy, name="encoder")
        decoder = Decoder(**sizes, dtype=policy, name="decoder")

        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        source_mask = padding_mask(source)
        memory = encoder(embedding(source), attention_mask=source_mask)
        x = decoder(embedding(target), memory, memory_mask=source_mask)
        logits = ops.cast(embedding(x, reverse=True), "float32")
        super().__init__(inputs=(source, target), outputs=logits, name=name)

        self.hyperparameters = hp
        self.embedding = embedding
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, source):
        """Run the encoder once and keep what decoding needs of it.

        Args:
            source: ids, (B, S).

        Returns:
            A cache: the memory's keys and values for every layer of the decoder, and the (B, 1, S)
            mask of its tokens.
        """
        return self.cache(
            source, self.encoder(self.embedding(source), attention_mask=padding_mask(source))
        )

    def cache(self, source, memory):
        """What decoding needs of a memory, (B, S, d_model), that was made of source ids."""
        return {"memory": self.decoder.memory_cache(memory), "mask": padding_mask(source)}

    def empty_past(self, hypotheses):
        """The cache before the first token: see `Decoder.empty_past`."""
        return self.decoder.empty_past(hypotheses)

    def stepper(self):
        """What decodes with the weights as they are now: see `Stepper`."""
        return Stepper(self)

    def attentive_encode(self, source):
        """The memory, (B, S, d_model), and what every layer's heads attend to, (B, N, h, S, S)."""
        return self.encoder.attentive(self.embedding(source), padding_mask(source))

    def attentive_decode(self, source, target, memory):
        """What `call` gives, from a memory, and what every layer's heads attend to.

        Args:
            source, target: as in `call`.
            memory: the first that `attentive_encode` returned.

        Returns:
            Logits in float32, (B, T, V); attention to the target, (B, N, h, T, T), and to the
            memory, (B, N, h, T, S); rows sum to 1.
        """
        x, to_target, to_memory = self.decoder.attentive(
            self.embedding(target), memory, padding_mask(source)
        )
        return ops.cast(self.embedding(x, reverse=True), "float32"), to_target, to_memory

    def attention_weights(self, source, target):
        """What every layer's heads attend to, for looking at.

        Args:
            source, target: as in `call`.

        Returns:
            A dictionary: "encoder" (B, N, h, S, S), "decoder" (B, N, h, T, T) and "cross" (B, N, h,
            T, S); rows sum to 1.
        """
        memory, within_source = self.attentive_encode(source)
        _, to_target, to_memory = self.attentive_decode(source, target, memory)
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
