"""What encoder-only models put before and after the encoder of section 3.1 (Vaswani et al. 2017):
BERT's segments, its prediction of pieces and its pooling (Devlin et al. 2019, "BERT: Pre-training
of Deep Bidirectional Transformers for Language Understanding"), and the Vision Transformer's
patches.
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_transformer.layers.add_and_norm import EPSILON
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.linear_maps import Dense, plus_bias
from keras_transformer.layers.normalization import LayerNormalization
from keras_transformer.layers.prototypes import KeepsShape, Layer, check_sizes
from keras_transformer.layers.tensors import Tensor
from pipelines.special_ids import PAD


@keras.saving.register_keras_serializable("keras_transformer")
class SegmentEmbedding(KeepsShape):
    """Add a learned vector for each token's segment, normalize the sum, and apply dropout.

        Dropout(LayerNorm(x + S[segments])),    S: (segments, d_model)

    Args:
        segments: how many there are; BERT has two, a first and a second sentence.
        dropout: probability in [0, 255/256].
        epsilon: what the norm adds to the variance.

    Call arguments:
        x: embeddings with positions added, (B, T, d_model).
        segments: the segment of each token, integers (B, T).

    Returns:
        (B, T, d_model).

    Reference: Devlin et al. 2019, figure 2.
    """

    def __init__(self, segments: int = 2, dropout: float = 0.0, epsilon: float = EPSILON, **kwargs):
        super().__init__(**kwargs)
        check_sizes(segments=segments)
        self.segments = segments
        self.dropout = dropout
        self.epsilon = epsilon
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


@keras.saving.register_keras_serializable("keras_transformer")
class PiecePrediction(Layer):
    """Map the states at `places` to vectors, to be multiplied by the table of embeddings.

        LayerNorm(activation(x[places] W + b)),    W: (d_model, d_model)

    Args:
        activation: a Keras activation or its name; BERT's is "gelu".
        epsilon: what the norm adds to the variance.

    Call arguments:
        x: states, (B, T, d_model).
        places: positions of tokens, integers (B, M), each from 0 to T - 1.

    Returns:
        (B, M, d_model).

    Reference: Devlin et al. 2019, section 3.1, and its program.
    """

    def __init__(self, activation: str | Callable = "gelu", epsilon: float = EPSILON, **kwargs):
        super().__init__(**kwargs)
        self.activation = keras.activations.get(activation)
        self.epsilon = epsilon
        self.norm = LayerNormalization(epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, x_shape, places_shape):
        self.dense = Dense(x_shape[-1], self.activation, dtype=self.dtype_policy, name="dense")
        self.dense.build(x_shape)
        self.norm.build(x_shape)

    def call(self, x: Tensor, places: Tensor) -> Tensor:
        batch, length, width = ops.shape(x)
        # Row numbers in the matrix of all sentences' states, (B T, d_model).
        rows = places + (ops.arange(batch, dtype=places.dtype) * length)[:, None]
        states = ops.take(ops.reshape(x, (-1, width)), rows, axis=0)
        return self.norm(self.dense(states))

    def compute_output_shape(self, x_shape, places_shape):
        return (*places_shape, x_shape[-1])


@keras.saving.register_keras_serializable("keras_transformer")
class PieceBias(KeepsShape):
    """Add a learned bias to each piece's logit, (..., V): it learns how frequent the piece is."""

    def build(self, logits_shape):
        self.bias = self.add_weight(name="bias", shape=(logits_shape[-1],), initializer="zeros")

    def call(self, logits: Tensor) -> Tensor:
        return plus_bias(logits, self.bias)


@keras.saving.register_keras_serializable("keras_transformer")
class FirstState(Layer):
    """The state of the first token, a mark that stands for the text.

    Call arguments:
        x: states, (B, T, d_model).
        tokens: ids, (B, T), padded with PAD.

    Returns:
        (B, d_model).

    Reference: Devlin et al. 2019, section 3.
    """

    def call(self, x: Tensor, tokens: Tensor) -> Tensor:
        return x[:, 0]

    def compute_output_shape(self, x_shape, tokens_shape):
        return (x_shape[0], x_shape[-1])


@keras.saving.register_keras_serializable("keras_transformer")
class MeanState(FirstState):
    """The mean of the states of all tokens. If an encoder was trained only to guess pieces, nothing
    has taught its first state to stand for the text.

    Call arguments and result as in `FirstState`.

    Reference: Reimers and Gurevych 2019, "Sentence-BERT: Sentence Embeddings using Siamese
        BERT-Networks", section 3.
    """

    def call(self, x: Tensor, tokens: Tensor) -> Tensor:
        real = ops.cast(ops.not_equal(tokens, PAD), x.dtype)[..., None]
        return ops.sum(x * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1)


@keras.saving.register_keras_serializable("keras_transformer")
class PatchEmbedding(Layer):
    """Cut pictures into squares of P x P pixels, map each to a vector, put the class token before
    them, and add learned positions.

        Dropout([c; x_1 W + b; ...; x_n W + b] + E),    W: (P P C, d_model), E: (1 + n, d_model)

    The vectors of positions are initialized with a standard deviation of d_model^-0.5, as in
    `LearnedEncoding`. With a small one, such as the 0.02 of the Vision Transformer's own program, a
    short training spends longer on a bag of patches, without regard to positions.

    Patches are in reading order, from left to right and from top to bottom. The numbers within a
    patch are ordered by row, column, channel.

    Args:
        patch_size: P, pixels.
        d_model: width of the vectors.
        dropout: probability in [0, 255/256].

    Call arguments:
        pictures: (B, H, W, C). H and W are multiples of P, known when the layer is built.

    Returns:
        (B, 1 + n, d_model), n = (H / P)(W / P). The class token is the first.

    Reference: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words: Transformers for Image
        Recognition at Scale", section 3.1, eq. 1.
    """

    def __init__(self, patch_size: int, d_model: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.InputSpec(ndim=4)
        check_sizes(patch_size=patch_size, d_model=d_model)
        self.patch_size = patch_size
        self.d_model = d_model
        self.dropout = dropout
        self.sum_dropout = Dropout(dropout, dtype=self.dtype_policy, name="sum_dropout")

    def build(self, pictures_shape):
        _, height, width, channels = pictures_shape
        rows, columns = grid(height, width, self.patch_size)
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.patch_size**2 * channels, self.d_model),
            initializer="glorot_uniform",
        )
        self.bias = self.add_weight(name="bias", shape=(self.d_model,), initializer="zeros")
        self.class_token = self.add_weight(
            name="class_token", shape=(self.d_model,), initializer="zeros"
        )
        self.positions = self.add_weight(
            name="positions",
            shape=(1 + rows * columns, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
        )

    def call(self, pictures: Tensor) -> Tensor:
        x = ops.matmul(patches(pictures, self.patch_size), self.kernel)
        x = plus_bias(x, self.bias)
        first = ops.broadcast_to(self.class_token, (ops.shape(x)[0], 1, self.d_model))
        x = ops.concatenate([ops.cast(first, x.dtype), x], axis=1)
        return self.sum_dropout(x + ops.cast(self.positions, x.dtype))

    def compute_output_shape(self, pictures_shape):
        rows, columns = grid(*pictures_shape[1:3], self.patch_size)
        return (pictures_shape[0], 1 + rows * columns, self.d_model)


def patches(pictures: Tensor, patch_size: int) -> Tensor:
    """Cut pictures (B, H, W, C) into patches, (B, n, P P C)."""
    _, height, width, channels = pictures.shape
    rows, columns = grid(height, width, patch_size)
    shape = (-1, rows, patch_size, columns, patch_size, channels)
    cut = ops.transpose(ops.reshape(pictures, shape), (0, 1, 3, 2, 4, 5))
    return ops.reshape(cut, (-1, rows * columns, patch_size**2 * channels))


def grid(height: int, width: int, patch_size: int) -> tuple[int, int]:
    """Count a picture's rows and columns of patches; refuse patches that do not fill it."""
    if None in (height, width):
        raise ValueError(
            f"`pictures` must have a height and a width. Received: {height} and {width}. Give both."
        )
    if height % patch_size or width % patch_size:
        fitting = [size for size in range(2, 33) if not height % size and not width % size]
        remedy = f"Try {' or '.join(map(str, fitting))}" if fitting else "Resize the pictures"
        raise ValueError(
            f"`patch_size` must divide height and width of the pictures. Received: "
            f"patch_size={patch_size}, height={height}, width={width}. {remedy}."
        )
    return height // patch_size, width // patch_size
