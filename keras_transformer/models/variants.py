"""The choices of a model by name: norms, activations, how residual branches start, positions,
attentions and ties (Vaswani et al. 2017, section 3), and which of them go together.

The first of each table is the paper's, or the default where the paper says nothing. The tables name
what is in `layers`, so that `--help` loads neither TensorFlow nor Keras. A class or function of
your own stands there itself, without a name.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

NORMS = {"post": "PostNorm", "pre": "PreNorm", "pre_rms": "PreRmsNorm"}
# "gelu_tanh" is GPT-2's approximation of "gelu", which is by the error function. "silu", Keras'
# name of swish, is x sigmoid(x).
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_tanh": "gelu_tanh",
    "swish": "silu",
    "swiglu": "silu",
    "geglu": "gelu_tanh",
}
FEED_FORWARDS = dict.fromkeys(ACTIVATIONS, "FeedForward")
FEED_FORWARDS |= {"swiglu": "GatedFeedForward", "geglu": "GatedFeedForward"}
RESIDUAL_INITIALIZATIONS = {"depth_scaled": "depth_scaled", "glorot": "glorot"}


@dataclasses.dataclass(frozen=True)
class Positions:
    """How a model knows positions.

    Attributes:
        encoding: makes the encoding that is added to embeddings, from the module `layers` and the
            hyperparameters.
        relative: makes the `RelativePositions`, from `layers` and whether attention is both ways.
        attentions: names of the attentions that they go with; None: all.
    """

    encoding: Callable = lambda layers, sizes: layers.NoEncoding()
    relative: Callable = lambda layers, bidirectional: layers.RelativePositions()
    attentions: tuple[str, ...] | None = None


POSITIONS = {
    "sinusoidal": Positions(lambda layers, sizes: layers.SinusoidalEncoding()),
    "tensor2tensor": Positions(lambda layers, sizes: layers.HalvesEncoding(sizes.first_position)),
    "marian_mt": Positions(
        lambda layers, sizes: layers.HalvesEncoding(sizes.first_position, rates="paper")
    ),
    "learned": Positions(lambda layers, sizes: layers.LearnedEncoding(sizes.max_positions)),
    "relative": Positions(
        relative=lambda layers, bidirectional: layers.RelativeBias(bidirectional),
        attentions=("scaled_dot_product", "dot_product", "additive", "local", "sparse"),
    ),
    "alibi": Positions(
        relative=lambda layers, bidirectional: layers.LinearBias(),
        attentions=("scaled_dot_product", "dot_product", "additive", "local", "sparse"),
    ),
    "shaw": Positions(
        relative=lambda layers, bidirectional: layers.RelativeKeysAndValues(),
        attentions=("scaled_dot_product", "local", "sparse"),
    ),
    "rotary": Positions(
        relative=lambda layers, bidirectional: layers.Rotary(),
        attentions=("scaled_dot_product", "dot_product", "local", "sparse"),
    ),
    "none": Positions(),
}
# Those for a model without self-attention: they are added to embeddings.
ADDED_POSITIONS = ("sinusoidal", "learned", "none")
HALVES = ("tensor2tensor", "marian_mt")


def _softmax(layers, sizes, number, **parts):
    return layers.SoftmaxHeads(**parts)


def _local(layers, sizes, number, **parts):
    return layers.LocalHeads(number, **parts)


def _sparse(layers, sizes, number, **parts):
    return layers.SparseHeads(number, **parts)


def _low_rank(layers, sizes, number, dropout, **parts):
    return layers.LowRankHeads(number, sizes.max_positions, dropout)


def _linear(layers, sizes, number, **parts):
    return layers.LinearHeads()


@dataclasses.dataclass(frozen=True)
class Attention:
    """The heads of a model's three attentions.

    Attributes:
        similarity: name of the `Similarity` of query and key, in all three.
        number: letter that stands for the number after the colon; None: there is no number.
        encoder, decoder: make the heads of self-attention, from the module `layers`, the
            hyperparameters, the number, and `similarity`, `positions` and `dropout` as in
            `SoftmaxHeads`. The attention to the memory always has `SoftmaxHeads`.
        weighs: whether every attention has weights, to which dropout can be applied.
    """

    similarity: str = "ScaledDotProduct"
    number: str | None = None
    encoder: Callable = _softmax
    decoder: Callable = _softmax
    weighs: bool = True


ATTENTIONS = {
    "scaled_dot_product": Attention(),
    "dot_product": Attention(similarity="DotProduct"),
    "additive": Attention(similarity="Additive"),
    "local": Attention(number="R", encoder=_local, decoder=_local),
    "sparse": Attention(number="R", encoder=_sparse, decoder=_sparse),
    "low_rank": Attention(number="K", encoder=_low_rank),
    "linear": Attention(encoder=_linear, decoder=_linear, weighs=False),
}


def attention_and_number(attention: str) -> tuple[str, int | None]:
    """Split the name of an attention, such as "local:64", at its colon."""
    name, colon, number = str(attention).partition(":")
    is_number = number.isdecimal() and int(number) > 0
    has_number = name in ATTENTIONS and ATTENTIONS[name].number is not None
    if name not in ATTENTIONS or bool(colon) != has_number or is_number != has_number:
        forms = [f"{key}:{a.number}" if a.number else key for key, a in ATTENTIONS.items()]
        raise ValueError(
            f"`attention` must be {' or '.join(forms)}, R and K integers of at least 1. Received: "
            f"attention={attention!r}."
        )
    return name, int(number) if has_number else None


# The tables of a model, in the order in which they are initialized. The source's embedding and the
# projection onto the vocabulary are the target's embedding if they are not named (section 3.4).
TIES = {
    "three_way": ("embedding",),
    "decoder": ("embedding", "source_embedding"),
    "none": ("source_embedding", "embedding", "projection"),
    "inputs": ("embedding", "projection"),
}


def check_together(hyperparameters: Any) -> None:
    """Refuse variants that do not go together."""
    hp = hyperparameters
    name, _ = attention_and_number(hp.attention)
    fitting = POSITIONS[hp.positions].attentions
    if fitting is not None and name not in fitting:
        everywhere = [key for key, choice in POSITIONS.items() if choice.attentions is None]
        raise ValueError(
            f"`positions`={hp.positions!r} goes with attention={' or '.join(fitting)}. Received: "
            f"attention={hp.attention!r}. Try positions={' or '.join(everywhere)}."
        )
    d_k = hp.d_k or hp.d_model // hp.num_heads
    if hp.positions == "rotary" and d_k % 2:
        raise ValueError(
            f"`d_k` must be even for positions='rotary', which rotates pairs. Received: d_k={d_k}. "
            f"Try d_k={d_k + 1}."
        )
    if hp.block_size > 1 and not ATTENTIONS[name].weighs:
        raise ValueError(
            f"`block_size` must be 1 for attention={name!r}, whose sums cannot drop a rejected "
            f"token. Received: block_size={hp.block_size}."
        )
    if hp.attention_dropout and not ATTENTIONS[name].weighs:
        raise ValueError(
            f"`attention_dropout` must be 0 for attention={name!r}, which has no weights to drop. "
            f"Received: attention_dropout={hp.attention_dropout}."
        )
