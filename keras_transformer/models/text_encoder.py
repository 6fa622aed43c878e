"""An encoder-only model's body: the left half of figure 1 (Vaswani et al. 2017), which turns text
into a vector for each token (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional
Transformers for Language Understanding").
"""

import keras

from keras_transformer.layers import Encoder, PositionalEmbedding, SegmentEmbedding, padding_mask
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.variants import POSITIONS, heads, stack_arguments

SEGMENTS = 2
# The layers of the body: what a model of one task hands on to a model of another.
BODY = ("embedding", "segment_embedding", "encoder")


class TextEncoder:
    """The layers of an encoder-only model below its head.

    Args:
        hyperparameters: sizes and variants.
        policy: a Keras dtype policy.

    Call arguments:
        tokens: ids, (B, T), padded with PAD.
        segments: 0 for tokens of a first sentence, 1 for those of a second, (B, T).

    Returns:
        States, (B, T, d_model).
    """

    def __init__(self, hyperparameters: Hyperparameters, policy: keras.DTypePolicy):
        hp = hyperparameters
        self.embedding = PositionalEmbedding(
            hp.vocabulary_size,
            hp.d_model,
            encoding=POSITIONS[hp.positions].encoding(hp.max_positions),
            token_dropout=hp.token_dropout,
            scaled=hp.scaled_embeddings,
            dtype=policy,
            name="embedding",
        )
        self.segment_embedding = SegmentEmbedding(
            SEGMENTS, hp.dropout, hp.norm_epsilon, dtype=policy, name="segment_embedding"
        )
        of_encoder, _, _ = heads(hp)
        self.encoder = Encoder(
            **stack_arguments(hp), heads=of_encoder, dtype=policy, name="encoder"
        )

    def __call__(self, tokens: Tensor, segments: Tensor) -> Tensor:
        x = self.segment_embedding(self.embedding(tokens), segments)
        return self.encoder(x, attention_mask=padding_mask(tokens))

    def with_attention(self, tokens: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
        """The states, and what every layer's heads attend to, (B, N, h, T, T)."""
        x = self.segment_embedding(self.embedding(tokens), segments)
        return self.encoder.with_attention(x, padding_mask(tokens))


def inputs() -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """The inputs `tokens` and `segments` of a functional model."""
    return tuple(keras.Input((None,), dtype="int32", name=name) for name in ("tokens", "segments"))
