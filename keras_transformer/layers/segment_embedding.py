"""What BERT adds to the embeddings of section 3.4 (Vaswani et al. 2017): which of two sentences a
token is of, a norm and a dropout.
"""

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.normalization import LayerNormalization
from keras_transformer.layers.residual import EPSILON
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class SegmentEmbedding(keras.layers.Layer):
    """Add a learned vector for the segment that each token is of, normalize the sum, drop out.

        Dropout(LayerNorm(x + S[segments])),    S: (segments, d_model)

    Args:
        segments: how many there are; BERT has two, a first and a second sentence.
        dropout: probability in [0, 1).
        epsilon: what the norm adds to the variance.

    Call arguments:
        x: embeddings that know their positions, (B, T, d_model).
        segments: the segment of each token, integers (B, T).

    Returns:
        (B, T, d_model).

    Reference: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
        Language Understanding", figure 2.
    """

    def __init__(self, segments: int = 2, dropout: float = 0.0, epsilon: float = EPSILON, **kwargs):
        super().__init__(**kwargs)
        self.segments = segments
        self.dropout = dropout
        self.sum_dropout = Dropout(dropout, dtype=self.dtype_policy, name="sum_dropout")
        self.norm = LayerNormalization(epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, x_shape, segments_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.segments, x_shape[-1]),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )
        self.norm.build(x_shape)

    def call(self, x: Tensor, segments: Tensor) -> Tensor:
        x = x + ops.cast(ops.take(self.table, segments, axis=0), x.dtype)
        return self.sum_dropout(self.norm(x))

    def compute_output_shape(self, x_shape, segments_shape):
        return x_shape

    def get_config(self):
        return {
            **super().get_config(),
            "segments": self.segments,
            "dropout": self.dropout,
            "epsilon": self.norm.epsilon,
        }
