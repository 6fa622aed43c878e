"""One vector for a text, from the states that the encoder of section 3.1 (Vaswani et al. 2017)
gives its tokens.
"""

import keras
from keras import ops

from keras_transformer.layers.tensors import Tensor
from pipelines.special_ids import PAD


@keras.saving.register_keras_serializable("keras_transformer")
class FirstState(keras.layers.Layer):
    """The state of the first token, a mark that stands for the text.

    Call arguments:
        x: states, (B, T, d_model).
        tokens: ids, (B, T), padded with PAD.

    Returns:
        (B, d_model).

    Reference: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
        Language Understanding", section 3.
    """

    def call(self, x: Tensor, tokens: Tensor) -> Tensor:
        return x[:, 0]

    def compute_output_shape(self, x_shape, tokens_shape):
        return (x_shape[0], x_shape[-1])


@keras.saving.register_keras_serializable("keras_transformer")
class MeanState(keras.layers.Layer):
    """The mean of the states of all tokens. Where pieces are guessed and nothing else, no label
    teaches the first state to stand for the text.

    Call arguments and result as of `FirstState`.

    Reference: Reimers and Gurevych 2019, "Sentence-BERT: Sentence Embeddings using Siamese
        BERT-Networks", section 3.
    """

    def call(self, x: Tensor, tokens: Tensor) -> Tensor:
        real = ops.cast(ops.not_equal(tokens, PAD), x.dtype)[..., None]
        return ops.sum(x * real, axis=1) / ops.sum(real, axis=1)

    def compute_output_shape(self, x_shape, tokens_shape):
        return (x_shape[0], x_shape[-1])
