"""The choices of a model by name: norms, activations, how residual branches start, positions,
attentions and ties (Vaswani et al. 2017, section 3), and which of them go together.

The first of each table is the paper's, or the default where the paper says nothing. The tables name
what is in `layers`, so that `--help` loads neither TensorFlow nor Keras. One of your own stands
there as it is.
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
        encoding: makes what is added to the embeddings of `layers` and the hyperparameters.
        relative: makes what self-attention adds of `layers` and whether it sees keys after the
            query.
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
# Those that are added to embeddings; the others belong to self-attention.
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
        similarity: of query and key, in all three.
        number: what stands for the number after the colon; None: there is no number.
        encoder, decoder: make the heads of self-attention of `layers`, the hyperparameters, the
            number, and `similarity`, `positions` and `dropout` as `SoftmaxHeads` has them. The
            attention to the memory has `SoftmaxHeads`.
        weighs: whether every attention has weights that a dropout can stand on.
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
        forms = [key + (f":{one.number}" if one.number else "") for key, one in ATTENTIONS.items()]
        raise ValueError(
            f"`attention` must be {' or '.join(forms)}, R and K integers of at least 1. Received: "
            f"attention={attention!r}."
        )
    return name, int(number) if has_number else None


# The tables that a model has, in the order in which they are drawn: the source's embedding and the
# projection onto the vocabulary are the target's embedding where they are not named (section 3.4).
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
        everywhere = [key for key, one in POSITIONS.items() if one.attentions is None]
        raise ValueError(
            f"`positions`={hp.positions!r} goes with attention={' or '.join(fitting)}. Received: "
            f"attention={hp.attention!r}. Try positions={' or '.join(everywhere)}."
        )
    d_k = hp.d_k or hp.d_model // hp.num_heads
    if hp.positions == "rotary" and d_k % 2:
        raise ValueError(
            f"`d_k` must be even for positions='rotary', which turns pairs. Received: d_k={d_k}. "
            f"Try d_k={d_k + 1}."
        )
    if hp.block_size > 1 and not ATTENTIONS[name].weighs:
        raise ValueError(
            f"`block_size` must be 1 for attention={name!r}, whose sums do not forget a token that "
            f"is refused. Received: block_size={hp.block_size}."
        )
    if hp.attention_dropout and not ATTENTIONS[name].weighs:
        raise ValueError(
            f"`attention_dropout` must be 0 for attention={name!r}, which has no weights to drop. "
            f"Received: attention_dropout={hp.attention_dropout}."
        )
