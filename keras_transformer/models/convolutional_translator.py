"""The convolutional encoder-decoder of Gehring et al. 2017, which table 2 of Vaswani et al. 2017
compares the Transformer with, as a model of the same task.
"""

import dataclasses
from typing import Any

import keras

from keras_transformer.layers import ConvolutionalDecoder, ConvolutionalEncoder
from keras_transformer.models.encoder_decoder import EncoderDecoder, tied_tables
from keras_transformer.models.hyperparameter_checks import (
    check_choices,
    check_probabilities,
    check_sizes,
)
from keras_transformer.models.variants import POSITIONS, TIES

# Those that are added to embeddings; relative ones belong to self-attention.
ADDED_POSITIONS = ("learned", "sinusoidal", "none")
CHOICES = {
    "architecture": ("convolutional",),
    "positions": ADDED_POSITIONS,
    "tie_embeddings": TIES,
}


@dataclasses.dataclass(frozen=True)
class ConvolutionalHyperparameters:
    """What decides a `ConvolutionalTranslator`'s weights.

    Args:
        vocabulary_size: V, pieces that source and target share, or of each; the logits' width.
        num_layers: N, blocks of the encoder and of the decoder.
        d_model: width of embeddings and blocks.
        kernel_size: k, positions that a convolution sees, odd.
        dropout: probability in [0, 1) on embeddings and on the input of each convolution.
        label_smoothing: epsilon_ls, probability in [0, 1).
        token_dropout: probability in [0, 1) that a token's whole embedding becomes 0.
        positions: what is added to embeddings, "learned" (Gehring et al.), "sinusoidal" or "none".
        max_positions: rows of positions="learned". Positions beyond share the last.
        tie_embeddings: what shares one table: "three_way", "decoder" or "none", as in
            `Hyperparameters`.
        architecture: "convolutional".

    Raises:
        ValueError: naming the argument, what was expected, what came, and a remedy.
    """

    vocabulary_size: int
    num_layers: int = 6
    d_model: int = 512
    kernel_size: int = 3
    dropout: float = 0.1
    label_smoothing: float = 0.1
    token_dropout: float = 0.0
    positions: str = "sinusoidal"
    max_positions: int = 1024
    tie_embeddings: str = "three_way"
    architecture: str = "convolutional"

    def __post_init__(self):
        sizes = ("vocabulary_size", "num_layers", "d_model", "kernel_size", "max_positions")
        check_sizes(self, sizes)
        check_probabilities(self, ("dropout", "label_smoothing", "token_dropout"))
        check_choices(self, CHOICES)
        if self.kernel_size % 2 == 0:
            raise ValueError(
                "`kernel_size` must be odd, so that a convolution sees as far ahead as behind. "
                f"Received: kernel_size={self.kernel_size}. Try {self.kernel_size + 1}."
            )

    def as_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; `ConvolutionalHyperparameters(**d)` is the way back."""
        return dataclasses.asdict(self)


@keras.saving.register_keras_serializable("keras_transformer")
class ConvolutionalTranslator(EncoderDecoder):
    """Stacks of gated convolutions; each block of the decoder attends to the source.

    Gehring et al. normalize weights (Salimans and Kingma 2016). Here they are not normalized, and
    start with the variances of their section 3.5. Embeddings and blocks have one width: of the
    linear maps between the two, only the one before the softmax is left.

    Args:
        hyperparameters: sizes; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments, result and the other methods as in `EncoderDecoder`.

    Example:
        model = ConvolutionalTranslator(vocabulary_size=8000, num_layers=5, d_model=192)
        logits = model((source, target))

    Reference: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning".
    """

    what = "A convolutional encoder-decoder (Gehring et al. 2017, arXiv 1705.03122)"

    def __init__(
        self,
        hyperparameters: ConvolutionalHyperparameters | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "convolutional_translator",
        **sizes,
    ):
        hp = hyperparameters or ConvolutionalHyperparameters(**sizes)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        stack = (hp.num_layers, hp.d_model, hp.kernel_size, hp.dropout)
        super().__init__(
            hp,
            tied_tables(hp, POSITIONS[hp.positions].encoding(hp.max_positions), policy),
            ConvolutionalEncoder(*stack, dtype=policy, name="encoder"),
            ConvolutionalDecoder(*stack, dtype=policy, name="decoder"),
            name,
        )
