"""Hyperparameters: the columns of table 3 (Vaswani et al. 2017, section 6.2), and the variants of a
Transformer. Each is declared once, here: its flag is derived from its field.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from keras_transformer.models.variants import (
    ACTIVATIONS,
    HALVES,
    NORMS,
    POSITIONS,
    RESIDUAL_INITIALIZATIONS,
    TIES,
    check_together,
)
from pipelines.options import Options, option

PROBABILITY = {"at_least": 0, "at_most": 0.99}
# Hyperparameters that decide nothing in a model of one stack.
OF_TWO_STACKS = ("num_decoder_layers", "source_end", "block_size")


class Sizes(Options):
    """Base class of hyperparameters: what decides the weights of a model.

    Attributes:
        model: the name of the model's class, in `models`.
        counts: names of the fields that the data decide, integers of at least 1.
        source_end: whether the encoder reads the EOS of sources.
        block_size: k, tokens that a decoder proposes at once; 1 if it has no heads for that.
        scaled_embeddings, output_bias: as in `Hyperparameters`.
    """

    model: ClassVar[str]
    counts: ClassVar[tuple[str, ...]] = ("vocabulary_size",)
    source_end = True
    block_size = 1
    scaled_embeddings = True
    output_bias = False

    def __post_init__(self):
        super().__post_init__()
        for name in self.counts:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"`{name}` must be an integer, at least 1. Received: {name}={value!r}."
                )

    @classmethod
    def of_description(cls, values: Mapping[str, Any]) -> Self:
        """Make hyperparameters from what `as_dict` returned; a missing one has its default."""
        fields = {field.name: field.default for field in dataclasses.fields(cls)}
        if unknown := sorted(values.keys() - fields.keys()):
            raise ValueError(
                f"the model was written by another version: this one does not know the "
                f"hyperparameter {', '.join(unknown)}. Use the version that wrote it, or train "
                "again."
            )
        needed = [name for name, default in fields.items() if default is dataclasses.MISSING]
        if missing := [name for name in needed if name not in values]:
            raise ValueError(
                f"the hyperparameters must have {', '.join(needed)}. Received: some without "
                f"{', '.join(missing)}. Copy the description of the model again."
            )
        return cls(**values)

    def as_dict(self) -> dict[str, Any]:
        """Return a plain dictionary, for JSON."""
        return dataclasses.asdict(self)


class Hyperparameters(Sizes):
    """Model: what decides a `Transformer`'s weights. The defaults are the paper's base row.

    `python -m keras_transformer.train --help=Model` describes each field and its choices. In the
    paper's letters, `num_layers` is N, `num_heads` h, `dropout` P_drop and `label_smoothing`
    epsilon_ls. `vocabulary_size` is V, the number of pieces that source and target share, or that
    each has; the logits have this width. A d_k or d_v of None is d_model / h, whatever the other
    is: rows B of table 3 change d_k alone. `architecture` is the name of this kind of model.
    """

    model: ClassVar[str] = "Transformer"

    vocabulary_size: int
    num_layers: int = option(6, "Number of layers in the encoder and in the decoder.", at_least=1)
    d_model: int = option(512, "Width of the residual stream.", at_least=2)
    d_ff: int = option(2048, "Inner width of the feed-forward networks.", at_least=1)
    num_heads: int = option(8, "Number of attention heads.", at_least=1)
    d_k: int | None = option(
        None, "Width of the queries and keys of one head. Default: d_model / num_heads.", at_least=1
    )
    d_v: int | None = option(
        None, "Width of the values of one head. Default: d_model / num_heads.", at_least=1
    )
    dropout: float = option(0.1, "Probability of dropout.", **PROBABILITY)
    label_smoothing: float = option(
        0.1,
        "Share of the probability that label smoothing spreads evenly over the vocabulary.",
        **PROBABILITY,
    )
    norm: str = option(
        "post",
        "Place of the layer norm. post: after each residual sum, as in the paper. pre: before "
        "each sublayer. pre_rms: before each sublayer, and it divides by the root mean square, "
        "as T5 does.",
        choices=NORMS,
    )
    activation: str = option(
        "relu",
        "Activation of the feed-forward networks. The paper has relu; gelu_tanh is GPT-2's "
        "approximation of gelu; swiglu and geglu are gated.",
        choices=ACTIVATIONS,
    )
    residual_initialization: str = option(
        "depth_scaled",
        "How the last matrix of each sublayer is initialized; the paper does not say. glorot: by "
        "Glorot's rule. depth_scaled: the same, divided by the root of the number of sublayers "
        "in the stack.",
        choices=RESIDUAL_INITIALIZATIONS,
    )
    attention_dropout: float = option(
        0.0, "Probability of dropout on the attention weights.", **PROBABILITY
    )
    activation_dropout: float = option(
        0.0,
        "Probability of dropout after the activation of the feed-forward networks.",
        **PROBABILITY,
    )
    token_dropout: float = option(
        0.0,
        "Probability that a token's whole embedding becomes 0, of the source and of the target.",
        **PROBABILITY,
    )
    positions: str = option(
        "sinusoidal",
        "How the model knows positions: by the paper's sinusoids, learned vectors, T5's relative "
        "biases, ALiBi's, the relative vectors of Shaw et al., rotations, or not at all. "
        "tensor2tensor: sines before cosines, with the rates of the authors' program, as in "
        "Marian and OpenNMT-tf; marian_mt: the same with the paper's rates, as in Hugging Face's.",
        choices=POSITIONS,
    )
    max_positions: int = option(
        1024,
        "Number of positions that --positions=learned and --attention=low_rank:K have weights for; "
        "later positions use the last one's.",
        at_least=1,
        only={"positions": ("learned",), "attention": lambda name: name.startswith("low_rank")},
        only_words="--positions=learned or --attention=low_rank:K",
    )
    attention: str = option(
        "scaled_dot_product",
        "Attention: scaled_dot_product is the paper's; dot_product and additive replace it "
        "everywhere. In self-attention alone: linear; local:R, R tokens on each side; sparse:R, "
        "also every R-th token. In the encoder alone: low_rank:K, which projects the keys to K.",
    )
    tie_embeddings: str = option(
        "three_way",
        "Which matrices share one table of embeddings. three_way: source, target and "
        "projection, as in the paper. decoder: target and projection. none: each has its own. "
        "inputs: source and target.",
        choices=TIES,
    )
    attention_bias: bool = option(
        False,
        "Add biases to the projections of the attentions, as BERT and GPT-2 do. The paper has "
        "none.",
    )
    norm_epsilon: float = option(1e-06, "What layer norms add to the variance.", at_least=1e-12)
    scaled_embeddings: bool = option(
        True,
        "Multiply embeddings by the root of d_model, as the paper does. BERT and GPT-2 do not.",
    )
    num_decoder_layers: int | None = option(
        None, "Number of layers in the decoder. Default: as many as in the encoder.", at_least=1
    )
    first_position: int = option(
        0,
        "Number of the first position.",
        at_least=0,
        only={"positions": HALVES},
        only_words="--positions=tensor2tensor or marian_mt",
    )
    output_bias: bool = option(
        False, "Add a bias to the projection onto the vocabulary, as Marian does."
    )
    source_end: bool = option(
        True, "Let the encoder read the end of the source. OpenNMT-tf's sources have none."
    )
    block_size: int = option(
        1,
        "Number k of tokens that the model proposes at once, by k - 1 heads that are trained for "
        "--blockwise (Stern et al. 2018). 1: no such heads.",
        at_least=1,
    )
    architecture: str = "transformer"

    def __post_init__(self):
        super().__post_init__()
        check_width(self)
        if None in (self.d_k, self.d_v):
            check_heads(self, 2, ", or pass `d_k` and `d_v`")
        check_together(self)


def check_width(sizes: Sizes) -> None:
    width = sizes.d_model
    if width % 2:
        raise ValueError(f"`d_model` must be even. Received: d_model={width}. Try {width + 1}.")


def check_heads(sizes: Sizes, multiple: int = 1, more: str = "") -> None:
    """Refuse heads that do not divide d_model; suggest a d_model that `multiple` divides too."""
    if sizes.d_model % sizes.num_heads:
        step = math.lcm(sizes.num_heads, multiple)
        raise ValueError(
            f"`d_model` must be divisible by `num_heads`. Received: d_model={sizes.d_model}, "
            f"num_heads={sizes.num_heads}. Try d_model={-(-sizes.d_model // step) * step}{more}."
        )
