"""The columns of Table 3 (Vaswani et al. 2017, section 6.2), and the variants of a model."""

import dataclasses
from typing import Any

from keras_transformer.models.hyperparameter_checks import (
    check_choices,
    check_even,
    check_probabilities,
    check_sizes,
)
from keras_transformer.models.variants import (
    ACTIVATIONS,
    NORMS,
    POSITIONS,
    RESIDUAL_INITIALIZATIONS,
    TIES,
    check_together,
)

SIZES = (
    *("vocabulary_size", "num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v"),
    "max_positions",
)
PROBABILITIES = (
    *("dropout", "label_smoothing", "attention_dropout", "activation_dropout"),
    "token_dropout",
)
CHOICES = {
    "architecture": ("transformer",),
    "norm": NORMS,
    "activation": ACTIVATIONS,
    "residual_initialization": RESIDUAL_INITIALIZATIONS,
    "positions": POSITIONS,
    "tie_embeddings": TIES,
}


@dataclasses.dataclass(frozen=True)
class Hyperparameters:
    """What decides a `Transformer`'s weights. The defaults are the paper's base row.

    Args:
        vocabulary_size: V, pieces that source and target share, or of each; the logits' width.
        num_layers: N, layers of the encoder and of the decoder.
        d_model: width of the residual stream, even.
        d_ff: inner width of the feed-forward networks.
        num_heads: h.
        d_k, d_v: widths of a head's keys and values; None means d_model / h for each by itself, as
            in table 3, whose rows B change d_k alone.
        dropout: P_drop, probability in [0, 1).
        label_smoothing: epsilon_ls, probability in [0, 1).
        norm: where the layer normalizations stand, "post" (the paper's) or "pre"; "pre_rms" is
            "pre" by the root mean square alone.
        activation: of the feed-forward networks, "relu" (the paper's), "gelu", "gelu_tanh",
            "swish", or the gated "swiglu".
        residual_initialization: how the last matrix of each sublayer starts, "depth_scaled" or
            "glorot". The paper does not say it.
        attention_dropout: probability in [0, 1) on the attention weights.
        activation_dropout: probability in [0, 1) after the activation.
        token_dropout: probability in [0, 1) that a token's whole embedding becomes 0.
        positions: "sinusoidal" (the paper's), "learned", "relative" (T5's), "shaw", "rotary" or
            "none".
        max_positions: rows of what is learned for each position, by positions="learned" and
            attention="low_rank:K". Positions beyond share the last.
        attention: "scaled_dot_product" (the paper's), "dot_product" or "additive", of all
            attentions; "local:R", "sparse:R" or "linear", of self-attention; "low_rank:K", of the
            encoder's. R and K are integers, in tokens.
        tie_embeddings: what shares one table: "three_way" (the paper's), source, target and
            projection; "decoder", target and projection; or "none".
        attention_bias: whether the maps of the attentions have biases; the paper has none.
        norm_epsilon: what the normalizations add to the variance, above 0.
        scaled_embeddings: whether embeddings are multiplied by sqrt(d_model), as in section 3.4.
        architecture: "transformer", which distinguishes it from hyperparameters of other models.

    Raises:
        ValueError: naming the argument, what was expected, what came, and a remedy.
    """

    vocabulary_size: int
    num_layers: int = 6
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    d_k: int | None = None
    d_v: int | None = None
    dropout: float = 0.1
    label_smoothing: float = 0.1
    norm: str = "post"
    activation: str = "relu"
    residual_initialization: str = "depth_scaled"
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    token_dropout: float = 0.0
    positions: str = "sinusoidal"
    max_positions: int = 1024
    attention: str = "scaled_dot_product"
    tie_embeddings: str = "three_way"
    attention_bias: bool = False
    norm_epsilon: float = 1e-6
    scaled_embeddings: bool = True
    architecture: str = "transformer"

    def __post_init__(self):
        check_sizes(self, SIZES, optional=("d_k", "d_v"))
        check_probabilities(self, PROBABILITIES)
        check_choices(self, CHOICES)
        check_even(self, "d_model")
        if not self.norm_epsilon > 0:
            raise ValueError(
                f"`norm_epsilon` must be above 0. Received: norm_epsilon={self.norm_epsilon}. The "
                "paper's models have 1e-6."
            )
        if None in (self.d_k, self.d_v) and self.d_model % self.num_heads:
            remedy = -(-self.d_model // self.num_heads) * self.num_heads
            raise ValueError(
                f"`d_model` must be divisible by `num_heads`. Received: d_model={self.d_model}, "
                f"num_heads={self.num_heads}. "
                f"Try d_model={remedy + remedy % 2 * self.num_heads}, or pass `d_k` and `d_v`."
            )
        check_together(self)

    def as_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; `Hyperparameters(**d)` is the way back."""
        return dataclasses.asdict(self)
