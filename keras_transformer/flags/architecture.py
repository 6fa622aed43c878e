"""Flags of the model: its architecture, sizes and variants. The defaults are the paper's base model
(Vaswani et al. 2017, table 3).
"""

import dataclasses

from pipelines.options import Options, option


@dataclasses.dataclass(frozen=True)
class ModelOptions(Options):
    """Model."""

    architecture: str = option(
        "transformer",
        "Architecture of the model: a Transformer, an LSTM encoder-decoder with additive "
        "attention, or the convolutional encoder-decoder of Gehring et al. 2017.",
        choices=("transformer", "recurrent", "convolutional"),
    )
    num_layers: int = option(6, "Number of layers in the encoder and in the decoder.", at_least=1)
    d_model: int = option(512, "Width of the residual stream.", at_least=2)
    d_ff: int = option(2048, "Inner width of the feed-forward networks.", at_least=1)
    num_heads: int = option(8, "Number of attention heads.", at_least=1)
    kernel_size: int = option(
        3,
        "Number of positions that a convolution sees, odd; only for --architecture=convolutional.",
        at_least=1,
    )
    d_k: int | None = option(
        None, "Width of the queries and keys of one head. Default: d_model / num_heads.", at_least=1
    )
    d_v: int | None = option(
        None, "Width of the values of one head. Default: d_model / num_heads.", at_least=1
    )
    norm: str = option(
        "post",
        "Place of the layer norm. post: after each residual sum, as in the paper. pre: before "
        "each sublayer. pre_rms: before each sublayer, and it divides by the root mean square, "
        "as T5 does.",
        choices=("post", "pre", "pre_rms"),
    )
    activation: str = option(
        "relu",
        "Activation of the feed-forward networks. The paper has relu; gelu_tanh is GPT-2's "
        "approximation of gelu; swiglu is gated.",
        choices=("relu", "gelu", "gelu_tanh", "swish", "swiglu"),
    )
    positions: str = option(
        "sinusoidal",
        "How the model knows positions: by the paper's sinusoids, learned vectors, T5's "
        "relative biases, the relative vectors of Shaw et al., rotations, or not at all.",
        choices=("sinusoidal", "learned", "relative", "shaw", "rotary", "none"),
    )
    max_positions: int = option(
        1024,
        "Number of positions that --positions=learned and --attention=low_rank:K have weights for.",
        at_least=1,
    )
    attention: str = option(
        "scaled_dot_product",
        "Attention: scaled_dot_product is the paper's; dot_product and additive replace it "
        "everywhere; local:R, sparse:R and linear replace self-attention; low_rank:K replaces "
        "the encoder's.",
    )
    tie_embeddings: str = option(
        "three_way",
        "Which matrices share one table of embeddings. three_way: source, target and "
        "projection, as in the paper. decoder: target and projection. none: each has its own.",
        choices=("three_way", "decoder", "none"),
    )
    residual_initialization: str = option(
        "depth_scaled",
        "How the last matrix of each sublayer starts; the paper does not say it. glorot: by "
        "Glorot's rule. depth_scaled: the same, divided by the root of the number of sublayers "
        "in the stack.",
        choices=("depth_scaled", "glorot"),
    )
    attention_bias: bool = option(
        False,
        "Add biases to the projections of the attentions, as BERT and GPT-2 do. The paper has "
        "none.",
    )
    norm_epsilon: float = option(1e-06, "What layer norms add to the variance.", at_least=0)
    scaled_embeddings: bool = option(
        True,
        "Multiply embeddings by the root of d_model, as the paper does. BERT and GPT-2 do not.",
    )
    dropout: float = option(0.1, "Probability of dropout.", at_least=0, at_most=0.99)
    attention_dropout: float = option(
        0.0, "Probability of dropout on the attention weights.", at_least=0, at_most=0.99
    )
    activation_dropout: float = option(
        0.0,
        "Probability of dropout after the activation of the feed-forward networks.",
        at_least=0,
        at_most=0.99,
    )
    token_dropout: float = option(
        0.0,
        "Probability that a token's whole embedding becomes 0, of the source and of the target.",
        at_least=0,
        at_most=0.99,
    )
    label_smoothing: float = option(
        0.1,
        "Share of the probability that label smoothing spreads evenly over the vocabulary.",
        at_least=0,
        at_most=0.99,
    )
