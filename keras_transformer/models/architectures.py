"""Hyperparameters of the models that the Transformer is compared with (Vaswani et al. 2017,
table 2) and of the Vision Transformer, and the architectures that translate, by name.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from keras_transformer.models.hyperparameters import (
    Hyperparameters,
    Sizes,
    check_heads,
    check_width,
)
from keras_transformer.models.variants import ADDED_POSITIONS
from pipelines.options import Options, again, option


class RecurrentHyperparameters(Sizes):
    """Model: what decides a `RecurrentTranslator`'s weights; all as in `Hyperparameters`."""

    model: ClassVar[str] = "RecurrentTranslator"

    vocabulary_size: int
    num_layers: int = again(Hyperparameters, "num_layers")
    d_model: int = again(Hyperparameters, "d_model")
    dropout: float = again(Hyperparameters, "dropout")
    label_smoothing: float = again(Hyperparameters, "label_smoothing")
    token_dropout: float = again(Hyperparameters, "token_dropout")
    tie_embeddings: str = again(Hyperparameters, "tie_embeddings")
    architecture: str = "recurrent"

    def __post_init__(self):
        super().__post_init__()
        # Half of an encoder's layer reads forward, the other half backward.
        check_width(self)


class ConvolutionalHyperparameters(Sizes):
    """Model: what decides a `ConvolutionalTranslator`'s weights, as in `Hyperparameters`."""

    model: ClassVar[str] = "ConvolutionalTranslator"

    vocabulary_size: int
    num_layers: int = again(Hyperparameters, "num_layers")
    d_model: int = again(Hyperparameters, "d_model")
    kernel_size: int = option(
        3,
        "Number of positions that a convolution sees, odd; only for --architecture=convolutional.",
        at_least=1,
    )
    dropout: float = again(Hyperparameters, "dropout")
    label_smoothing: float = again(Hyperparameters, "label_smoothing")
    token_dropout: float = again(Hyperparameters, "token_dropout")
    positions: str = again(Hyperparameters, "positions", choices=ADDED_POSITIONS)
    max_positions: int = again(Hyperparameters, "max_positions")
    tie_embeddings: str = again(Hyperparameters, "tie_embeddings")
    architecture: str = "convolutional"

    def __post_init__(self):
        super().__post_init__()
        if self.positions == "sinusoidal":
            check_width(self)
        if self.kernel_size % 2 == 0:
            raise ValueError(
                "`kernel_size` must be odd, so that a convolution sees as far ahead as behind. "
                f"Received: kernel_size={self.kernel_size}. Try {self.kernel_size + 1}."
            )


class VisionHyperparameters(Sizes):
    """Model: what decides a `VisionTransformer`'s weights. Defaults: ViT-Base on ImageNet.

    Height and width of the pictures are in pixels, multiples of `patch_size`; a pixel has 1 or 3
    `channels`. All else as in `Hyperparameters`.
    """

    model: ClassVar[str] = "VisionTransformer"
    counts: ClassVar[tuple[str, ...]] = ("height", "width", "channels", "classes")

    height: int = 224
    width: int = 224
    channels: int = 3
    classes: int = 1000
    patch_size: int = option(
        16, "Height and width, in pixels, of the patches that an image is cut into.", at_least=1
    )
    num_layers: int = again(Hyperparameters, "num_layers", 12)
    d_model: int = again(Hyperparameters, "d_model", 768)
    d_ff: int = again(Hyperparameters, "d_ff", 3072)
    num_heads: int = again(Hyperparameters, "num_heads", 12)
    dropout: float = again(Hyperparameters, "dropout", 0.0)
    attention_dropout: float = again(Hyperparameters, "attention_dropout")
    activation_dropout: float = again(Hyperparameters, "activation_dropout")
    label_smoothing: float = again(Hyperparameters, "label_smoothing", 0.0)
    norm: str = again(Hyperparameters, "norm", "pre")
    activation: str = again(Hyperparameters, "activation", "gelu")
    residual_initialization: str = again(Hyperparameters, "residual_initialization")
    attention_bias: bool = again(Hyperparameters, "attention_bias", True)
    norm_epsilon: float = again(Hyperparameters, "norm_epsilon", 1e-12)

    def __post_init__(self):
        super().__post_init__()
        check_heads(self)
        _ = self.grid  # Refuses a patch_size that does not fit.

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        # Imported here because it loads Keras, and `--help` should not wait for that.
        from keras_transformer.layers.encoder_only import grid

        return grid(self.height, self.width, self.patch_size)

    @property
    def tokens(self) -> int:
        """Positions of a picture: its patches and the class token."""
        rows, columns = self.grid
        return 1 + rows * columns


# Hyperparameters of the models that translate, by the name in `architecture`.
ARCHITECTURES: dict[str, type[Sizes]] = {
    "transformer": Hyperparameters,
    "recurrent": RecurrentHyperparameters,
    "convolutional": ConvolutionalHyperparameters,
}


class ArchitectureChoice(Options):
    """Model."""

    architecture: str = option(
        "transformer",
        "Architecture of the model: a Transformer, an LSTM encoder-decoder with additive "
        "attention, or the convolutional encoder-decoder of Gehring et al. 2017.",
        choices=tuple(ARCHITECTURES),
        adds={name: (kind,) for name, kind in ARCHITECTURES.items()},
    )


def sizes_of_flags(values: Mapping[str, Any]) -> Sizes:
    """Make hyperparameters from the values of flags."""
    return _of_name(values.get("architecture", "transformer")).of(values)


def sizes_of_description(description: Mapping[str, Any]) -> Sizes:
    """Make hyperparameters from the dictionary that their `as_dict` returned.

    A dictionary without an architecture is a Transformer's: before 0.7 there was no other.
    """
    return _of_name(description.get("architecture", "transformer")).of_description(description)


def _of_name(name):
    if name not in ARCHITECTURES:
        raise ValueError(
            f"`architecture` must be {' or '.join(ARCHITECTURES)}. Received: architecture={name!r}."
        )
    return ARCHITECTURES[name]
