"""The Transformer's layers: section 3 of "Attention Is All You Need" (Vaswani et al. 2017), one
idea a file; and those of the recurrent and convolutional models that it is compared with.

Everything here is written in `keras.ops`, so that the same layers train on TensorFlow, JAX or
torch.

One alphabet of shapes, used in every docstring of this package:

    B        sentences in a batch          h        attention heads
    T        length of the target          d_model  width of the residual stream
    S        length of the source          d_k, d_v width of one head's keys and values
    K        hypotheses per sentence       d_ff     inner width of the feed-forward network
    V        size of the vocabulary

Masks are boolean; True means "may attend".
"""

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.convolution_block import ConvolutionBlock
from keras_transformer.layers.convolutional_decoder import ConvolutionalDecoder
from keras_transformer.layers.convolutional_encoder import ConvolutionalEncoder
from keras_transformer.layers.decoder import Decoder, DecoderLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.embedding import PositionalEmbedding
from keras_transformer.layers.encoder import Encoder, EncoderLayer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.gated_feed_forward import GatedFeedForward
from keras_transformer.layers.heads.linear import LinearHeads
from keras_transformer.layers.heads.local import LocalHeads
from keras_transformer.layers.heads.low_rank import LowRankHeads
from keras_transformer.layers.heads.relative_positions import (
    RelativeBias,
    RelativeKeysAndValues,
    RelativePositions,
    Rotary,
)
from keras_transformer.layers.heads.softmax import AttentionHeads, SoftmaxHeads
from keras_transformer.layers.heads.sparse import SparseHeads
from keras_transformer.layers.masks import causal_mask, padding_mask
from keras_transformer.layers.matrix import Matrix
from keras_transformer.layers.normalization import LayerNormalization, RmsNormalization
from keras_transformer.layers.patches import PatchEmbedding
from keras_transformer.layers.piece_prediction import PieceBias, PiecePrediction
from keras_transformer.layers.pooling import FirstState, MeanState
from keras_transformer.layers.position_encodings import (
    LearnedEncoding,
    NoEncoding,
    PositionEncoding,
    SinusoidalEncoding,
)
from keras_transformer.layers.positions import sinusoidal_positions
from keras_transformer.layers.recurrent_decoder import RecurrentDecoder
from keras_transformer.layers.recurrent_encoder import RecurrentEncoder
from keras_transformer.layers.residual import (
    NormPlacement,
    PostNorm,
    PreNorm,
    PreRmsNorm,
    depth_scaled,
    glorot,
)
from keras_transformer.layers.scaled_dot_product import (
    Additive,
    DotProduct,
    ScaledDotProduct,
    Similarity,
    scaled_dot_product_attention,
)
from keras_transformer.layers.segment_embedding import SegmentEmbedding

__all__ = [
    "Additive",
    "AttentionHeads",
    "ConvolutionBlock",
    "ConvolutionalDecoder",
    "ConvolutionalEncoder",
    "Decoder",
    "DecoderLayer",
    "DotProduct",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "FirstState",
    "GatedFeedForward",
    "LayerNormalization",
    "LearnedEncoding",
    "LinearHeads",
    "LocalHeads",
    "LowRankHeads",
    "Matrix",
    "MeanState",
    "MultiHeadAttention",
    "NoEncoding",
    "NormPlacement",
    "PatchEmbedding",
    "PieceBias",
    "PiecePrediction",
    "PositionEncoding",
    "PositionalEmbedding",
    "PostNorm",
    "PreNorm",
    "PreRmsNorm",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RelativeBias",
    "RelativeKeysAndValues",
    "RelativePositions",
    "RmsNormalization",
    "Rotary",
    "ScaledDotProduct",
    "SegmentEmbedding",
    "Similarity",
    "SinusoidalEncoding",
    "SoftmaxHeads",
    "SparseHeads",
    "causal_mask",
    "depth_scaled",
    "glorot",
    "padding_mask",
    "scaled_dot_product_attention",
    "sinusoidal_positions",
]
