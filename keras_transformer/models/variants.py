"""The choices of a model by name: norms, activations, how residual branches start, positions,
attentions and ties (Vaswani et al. 2017, section 3), and which of them go together.

The first of each table is the paper's, or the default where the paper says nothing.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras

from keras_transformer.layers import (
    Additive,
    AttentionHeads,
    DotProduct,
    FeedForward,
    GatedFeedForward,
    LearnedEncoding,
    LinearHeads,
    LocalHeads,
    LowRankHeads,
    NoEncoding,
    PositionEncoding,
    PostNorm,
    PreNorm,
    PreRmsNorm,
    RelativeBias,
    RelativeKeysAndValues,
    RelativePositions,
    Rotary,
    ScaledDotProduct,
    Similarity,
    SinusoidalEncoding,
    SoftmaxHeads,
    SparseHeads,
    depth_scaled,
    glorot,
)
from keras_transformer.layers.feed_forward import gelu, gelu_tanh

NORMS = {"post": PostNorm, "pre": PreNorm, "pre_rms": PreRmsNorm}
# "gelu_tanh" is GPT-2's approximation of "gelu", which is by the error function.
# "swish" is x sigmoid(x).
ACTIVATIONS = {
    "relu": keras.activations.relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "swish": keras.activations.silu,
    "swiglu": keras.activations.silu,
}
RESIDUAL_INITIALIZATIONS = {"depth_scaled": depth_scaled, "glorot": glorot}
FEED_FORWARDS = {**dict.fromkeys(ACTIVATIONS, FeedForward), "swiglu": GatedFeedForward}


@dataclasses.dataclass(frozen=True)
class Positions:
    """How a model knows positions.

    Attributes:
        encoding: what is added to the embeddings, made from the longest length.
        relative: what self-attention adds, made from whether it sees keys after the query.
        attentions: names of the attentions that they go with; None: all.
    """

    encoding: Callable[[int], PositionEncoding] = lambda max_positions: NoEncoding()
    relative: Callable[[bool], RelativePositions] = lambda bidirectional: RelativePositions()
    attentions: tuple[str, ...] | None = None


POSITIONS = {
    "sinusoidal": Positions(encoding=lambda max_positions: SinusoidalEncoding()),
    "learned": Positions(encoding=LearnedEncoding),
    "relative": Positions(
        relative=RelativeBias,
        attentions=("scaled_dot_product", "dot_product", "additive", "local", "sparse"),
    ),
    "shaw": Positions(
        relative=lambda bidirectional: RelativeKeysAndValues(),
        attentions=("scaled_dot_product", "local", "sparse"),
    ),
    "rotary": Positions(
        relative=lambda bidirectional: Rotary(),
        attentions=("scaled_dot_product", "dot_product", "local", "sparse"),
    ),
    "none": Positions(),
}


@dataclasses.dataclass(frozen=True)
class Parts:
    """What heads are made of.

    Attributes:
        number: the one after the colon of `attention`, or None.
        max_positions: the longest length, where weights need one.
        softmax: arguments of `SoftmaxHeads`.
    """

    number: int | None
    max_positions: int
    softmax: dict[str, Any]


def _softmax(parts):
    return SoftmaxHeads(**parts.softmax)


def _local(parts):
    return LocalHeads(parts.number, **parts.softmax)


def _sparse(parts):
    return SparseHeads(parts.number, **parts.softmax)


def _low_rank(parts):
    return LowRankHeads(parts.number, parts.max_positions, parts.softmax["dropout"])


def _linear(parts):
    return LinearHeads()


@dataclasses.dataclass(frozen=True)
class Attention:
    """The heads of a model's three attentions.

    Attributes:
        similarity: of query and key, in all three.
        number: what stands for the number after the colon; None: there is no number.
        encoder, decoder: make the heads of self-attention. The attention to the memory has
            `SoftmaxHeads`.
        weighs: whether every attention has weights that a dropout can stand on.
    """

    similarity: type[Similarity] = ScaledDotProduct
    number: str | None = None
    encoder: Callable[[Parts], AttentionHeads] = _softmax
    decoder: Callable[[Parts], AttentionHeads] = _softmax
    weighs: bool = True


ATTENTIONS = {
    "scaled_dot_product": Attention(),
    "dot_product": Attention(similarity=DotProduct),
    "additive": Attention(similarity=Additive),
    "local": Attention(number="R", encoder=_local, decoder=_local),
    "sparse": Attention(number="R", encoder=_sparse, decoder=_sparse),
    "low_rank": Attention(number="K", encoder=_low_rank),
    "linear": Attention(encoder=_linear, decoder=_linear, weighs=False),
}


def attention_and_number(attention: str) -> tuple[str, int | None]:
    """Split the name of an attention, such as "local:64", at its colon.

    Raises:
        ValueError: if there is no such attention, or its number is missing or none.
    """
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


def _three_way(embedding, projection):
    shared = embedding("embedding")
    return shared, shared, shared


def _decoder(embedding, projection):
    shared = embedding("embedding")
    return embedding("source_embedding"), shared, shared


def _none(embedding, projection):
    return embedding("source_embedding"), embedding("embedding"), projection("projection")


# From what makes an embedding and what makes a projection, each of a name, to the source's
# embedding, the target's, and the projection onto the vocabulary (section 3.4).
TIES = {"three_way": _three_way, "decoder": _decoder, "none": _none}


# What a stack of layers takes as it stands.
COPIED = (
    *("num_layers", "num_heads", "d_model", "d_ff", "d_k", "d_v", "dropout"),
    *("activation_dropout", "attention_bias", "norm_epsilon"),
)


def stack_arguments(hyperparameters) -> dict[str, Any]:
    """The arguments of `Encoder` and `Decoder` that hyperparameters decide, without the heads."""
    sizes = hyperparameters.as_dict()
    return {
        **{name: sizes[name] for name in COPIED if name in sizes},
        "activation": ACTIVATIONS[hyperparameters.activation],
        "feed_forward": FEED_FORWARDS[hyperparameters.activation],
        "norm": NORMS[hyperparameters.norm],
        "residual_initialization": RESIDUAL_INITIALIZATIONS[
            hyperparameters.residual_initialization
        ],
    }


def heads(hyperparameters) -> tuple[AttentionHeads, AttentionHeads, AttentionHeads]:
    """The heads of a model: of the encoder, of the decoder, and of the attention to the memory."""
    name, number = attention_and_number(hyperparameters.attention)
    attention = ATTENTIONS[name]
    relative = POSITIONS[hyperparameters.positions].relative
    dropout = hyperparameters.attention_dropout

    def parts(positions):
        softmax = {
            "similarity": attention.similarity(),
            "positions": positions,
            "dropout": dropout,
        }
        return Parts(number, hyperparameters.max_positions, softmax)

    return (
        attention.encoder(parts(relative(True))),
        attention.decoder(parts(relative(False))),
        _softmax(parts(RelativePositions())),
    )


def check_together(hyperparameters) -> None:
    """Refuse variants that do not go together.

    Raises:
        ValueError: naming both of them.
    """
    name, _ = attention_and_number(hyperparameters.attention)
    positions = hyperparameters.positions
    fitting = POSITIONS[positions].attentions
    if fitting is not None and name not in fitting:
        everywhere = [key for key, one in POSITIONS.items() if one.attentions is None]
        raise ValueError(
            f"`positions`={positions!r} goes with attention={' or '.join(fitting)}. Received: "
            f"attention={hyperparameters.attention!r}. Try positions={' or '.join(everywhere)}."
        )
    d_k = hyperparameters.d_k or hyperparameters.d_model // hyperparameters.num_heads
    if positions == "rotary" and d_k % 2:
        raise ValueError(
            f"`d_k` must be even for positions='rotary', which turns pairs. Received: d_k={d_k}. "
            f"Try d_k={d_k + 1}."
        )
    if hyperparameters.attention_dropout and not ATTENTIONS[name].weighs:
        raise ValueError(
            f"`attention_dropout` must be 0 for attention={name!r}, which has no weights to drop. "
            f"Received: attention_dropout={hyperparameters.attention_dropout}."
        )
