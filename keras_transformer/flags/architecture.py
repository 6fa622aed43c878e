"""Flags of the model: its architecture, sizes and variants. The defaults are the paper's base model
(Vaswani et al. 2017, table 3).
"""

from absl import flags

MODEL = flags.FlagValues()
flags.DEFINE_enum(
    "architecture",
    "transformer",
    ["transformer", "recurrent", "convolutional"],
    "Architecture of the model: a Transformer, an LSTM encoder-decoder with additive attention, or "
    "the convolutional encoder-decoder of Gehring et al. 2017.",
    MODEL,
)
flags.DEFINE_integer(
    "num_layers", 6, "Number of layers in the encoder and in the decoder.", 1, flag_values=MODEL
)
flags.DEFINE_integer("d_model", 512, "Width of the residual stream.", 2, flag_values=MODEL)
flags.DEFINE_integer(
    "d_ff", 2048, "Inner width of the feed-forward networks.", 1, flag_values=MODEL
)
flags.DEFINE_integer("num_heads", 8, "Number of attention heads.", 1, flag_values=MODEL)
flags.DEFINE_integer(
    "kernel_size",
    3,
    "Number of positions that a convolution sees, odd; only for --architecture=convolutional.",
    1,
    flag_values=MODEL,
)
flags.DEFINE_integer(
    "d_k",
    None,
    "Width of the queries and keys of one head. Default: d_model / num_heads.",
    1,
    flag_values=MODEL,
)
flags.DEFINE_integer(
    "d_v",
    None,
    "Width of the values of one head. Default: d_model / num_heads.",
    1,
    flag_values=MODEL,
)
flags.DEFINE_enum(
    "norm",
    "post",
    ["post", "pre", "pre_rms"],
    "Place of the layer norm. post: after each residual sum, as in the paper. pre: before each "
    "sublayer. pre_rms: before each sublayer, and it divides by the root mean square, as T5 does.",
    MODEL,
)
flags.DEFINE_enum(
    "activation",
    "relu",
    ["relu", "gelu", "gelu_tanh", "swish", "swiglu"],
    "Activation of the feed-forward networks. The paper has relu; gelu_tanh is GPT-2's "
    "approximation of gelu; swiglu is gated.",
    MODEL,
)
flags.DEFINE_enum(
    "positions",
    "sinusoidal",
    ["sinusoidal", "learned", "relative", "shaw", "rotary", "none"],
    "How the model knows positions: by the paper's sinusoids, learned vectors, T5's relative "
    "biases, the relative vectors of Shaw et al., rotations, or not at all.",
    MODEL,
)
flags.DEFINE_integer(
    "max_positions",
    1024,
    "Number of positions that --positions=learned and --attention=low_rank:K have weights for.",
    1,
    flag_values=MODEL,
)
flags.DEFINE_string(
    "attention",
    "scaled_dot_product",
    "Attention: scaled_dot_product is the paper's; dot_product and additive replace it everywhere; "
    "local:R, sparse:R and linear replace self-attention; low_rank:K replaces the encoder's.",
    flag_values=MODEL,
)
flags.DEFINE_enum(
    "tie_embeddings",
    "three_way",
    ["three_way", "decoder", "none"],
    "Which matrices share one table of embeddings. three_way: source, target and projection, as in "
    "the paper. decoder: target and projection. none: each has its own.",
    MODEL,
)
flags.DEFINE_enum(
    "residual_initialization",
    "depth_scaled",
    ["depth_scaled", "glorot"],
    "How the last matrix of each sublayer starts; the paper does not say it. glorot: by Glorot's "
    "rule. depth_scaled: the same, divided by the root of the number of sublayers in the stack.",
    MODEL,
)
flags.DEFINE_bool(
    "attention_bias",
    False,
    "Add biases to the projections of the attentions, as BERT and GPT-2 do. The paper has none.",
    MODEL,
)
flags.DEFINE_float(
    "norm_epsilon", 1e-6, "What layer norms add to the variance.", 0, flag_values=MODEL
)
flags.DEFINE_bool(
    "scaled_embeddings",
    True,
    "Multiply embeddings by the root of d_model, as the paper does. BERT and GPT-2 do not.",
    MODEL,
)
flags.DEFINE_float("dropout", 0.1, "Probability of dropout.", 0, 0.99, flag_values=MODEL)
flags.DEFINE_float(
    "attention_dropout",
    0.0,
    "Probability of dropout on the attention weights.",
    0,
    0.99,
    flag_values=MODEL,
)
flags.DEFINE_float(
    "activation_dropout",
    0.0,
    "Probability of dropout after the activation of the feed-forward networks.",
    0,
    0.99,
    flag_values=MODEL,
)
flags.DEFINE_float(
    "token_dropout",
    0.0,
    "Probability that a token's whole embedding becomes 0, of the source and of the target.",
    0,
    0.99,
    flag_values=MODEL,
)
flags.DEFINE_float(
    "label_smoothing",
    0.1,
    "Share of the probability that label smoothing spreads evenly over the vocabulary.",
    0,
    0.99,
    flag_values=MODEL,
)
