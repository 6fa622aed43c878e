"""The Transformer's layers: section 3 of "Attention Is All You Need" (Vaswani et al. 2017). The
layers of the recurrent and convolutional models that it is compared with are imported when they are
first used.

Everything here is written in `keras.ops`, so that the same layers train on TensorFlow, JAX or
torch.

One alphabet of shapes, used in every docstring of this package:

    B        sentences in a batch          h        attention heads
    T        length of the target          d_model  width of the residual stream
    S        length of the source          d_k, d_v width of one head's keys and values
    K        hypotheses per sentence       d_ff     inner width of the feed-forward network
    V        size of the vocabulary

Masks are boolean; True means "may attend". A mask of two axes is (T, S), not (B, S).
"""

from keras_transformer.first_use import imported_at_first_use
from keras_transformer.layers.add_and_norm import (
    NormPlacement,
    PostNorm,
    PreNorm,
    PreRmsNorm,
    depth_scaled,
    glorot,
)
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.attention_variants.linear_cost import LinearHeads, LowRankHeads
from keras_transformer.layers.attention_variants.relative_positions import (
    LinearBias,
    RelativeBias,
    RelativeKeysAndValues,
    Rotary,
)
from keras_transformer.layers.attention_variants.restricted import LocalHeads, SparseHeads
from keras_transformer.layers.decoder import Decoder, DecoderLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.embedding import (
    HalvesEncoding,
    LearnedEncoding,
    NoEncoding,
    PositionalEmbedding,
    PositionEncoding,
    SinusoidalEncoding,
    sinusoidal_positions,
)
from keras_transformer.layers.encoder import Encoder, EncoderLayer
from keras_transformer.layers.encoder_only import (
    FirstState,
    MeanState,
    PatchEmbedding,
    PieceBias,
    PiecePrediction,
    SegmentEmbedding,
)
from keras_transformer.layers.feed_forward import FeedForward, GatedFeedForward, gelu, gelu_tanh
from keras_transformer.layers.linear_maps import Matrix
from keras_transformer.layers.normalization import LayerNormalization, RmsNormalization
from keras_transformer.layers.proposal_heads import ProposalHeads
from keras_transformer.layers.scaled_dot_product import (
    Additive,
    AttentionHeads,
    DotProduct,
    RelativePositions,
    ScaledDotProduct,
    Similarity,
    SoftmaxHeads,
    scaled_dot_product_attention,
)
from keras_transformer.layers.tensors import Masks, causal_mask, padding_mask

__all__ = ["Decoder", "DecoderLayer", "Encoder", "EncoderLayer", "FeedForward", "GatedFeedForward"]
__all__ += ["AttentionHeads", "LinearHeads", "LocalHeads", "LowRankHeads", "MultiHeadAttention"]
__all__ += ["SoftmaxHeads", "SparseHeads", "scaled_dot_product_attention"]
__all__ += ["Additive", "DotProduct", "ScaledDotProduct", "Similarity"]
__all__ += ["Masks", "Matrix", "causal_mask", "padding_mask"]
__all__ += ["HalvesEncoding", "LearnedEncoding", "NoEncoding", "PositionEncoding"]
__all__ += ["PositionalEmbedding"]
__all__ += ["SinusoidalEncoding", "sinusoidal_positions"]
__all__ += ["LinearBias", "RelativeBias", "RelativeKeysAndValues", "RelativePositions", "Rotary"]
__all__ += ["Dropout", "LayerNormalization", "NormPlacement", "PostNorm", "PreNorm", "PreRmsNorm"]
__all__ += ["RmsNormalization", "depth_scaled", "gelu", "gelu_tanh", "glorot"]
__all__ += ["FirstState", "MeanState", "PatchEmbedding", "PieceBias", "PiecePrediction"]
__all__ += ["ProposalHeads", "SegmentEmbedding"]

# The layers of the models that the paper compares the Transformer with.
_BASELINES = {
    "ConvolutionBlock": "convolutions",
    "ConvolutionalDecoder": "convolutional_decoder",
    "ConvolutionalEncoder": "convolutions",
    "RecurrentDecoder": "recurrent",
    "RecurrentEncoder": "recurrent",
}

__getattr__, __dir__ = imported_at_first_use(__name__, _BASELINES)
