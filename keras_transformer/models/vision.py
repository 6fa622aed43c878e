"""An encoder of pictures that gives classes (Dosovitskiy et al. 2021, "An Image is Worth 16x16
Words: Transformers for Image Recognition at Scale"), out of the encoder of figure 1 (Vaswani et al.
2017).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from keras_transformer.layers import Dropout, Encoder, PatchEmbedding, SoftmaxHeads
from keras_transformer.layers.encoder_only import grid
from keras_transformer.layers.linear_maps import Dense
from keras_transformer.layers.tensors import Tensor
from keras_transformer.models.hyperparameter_checks import (
    check_choices,
    check_probabilities,
    check_sizes,
    from_dictionary,
)
from keras_transformer.models.variants import (
    ACTIVATIONS,
    NORMS,
    RESIDUAL_INITIALIZATIONS,
    stack_arguments,
)

OF_PICTURES = ("height", "width", "channels", "classes")


@dataclasses.dataclass(frozen=True)
class VisionHyperparameters:
    """What decides a `VisionTransformer`'s weights. The defaults are ViT-Base, of pictures of
    ImageNet.

    Args:
        height, width: of the pictures, in pixels, multiples of `patch_size`.
        channels: C, numbers of a pixel: 1 or 3.
        classes: K.
        patch_size: P, height and width of a patch, in pixels.
        num_layers: N.
        d_model: width of the residual stream, a multiple of `num_heads`.
        d_ff: inner width of the feed-forward networks.
        num_heads: h.
        dropout, attention_dropout, activation_dropout: probabilities in [0, 1), as in
            `Hyperparameters`.
        label_smoothing: epsilon_ls, probability in [0, 1).
        norm, activation, residual_initialization, attention_bias, norm_epsilon: as in
            `Hyperparameters`.

    Raises:
        ValueError: naming the argument, what was expected, what came, and a remedy.
    """

    height: int = 224
    width: int = 224
    channels: int = 3
    classes: int = 1000
    patch_size: int = 16
    num_layers: int = 12
    d_model: int = 768
    d_ff: int = 3072
    num_heads: int = 12
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    label_smoothing: float = 0.0
    norm: str = "pre"
    activation: str = "gelu"
    residual_initialization: str = "depth_scaled"
    attention_bias: bool = True
    norm_epsilon: float = 1e-12

    def __post_init__(self):
        sizes = ("patch_size", "num_layers", "d_model", "d_ff", "num_heads")
        check_sizes(self, (*OF_PICTURES, *sizes))
        check_probabilities(
            self, ("dropout", "attention_dropout", "activation_dropout", "label_smoothing")
        )
        check_choices(
            self,
            {
                "norm": NORMS,
                "activation": ACTIVATIONS,
                "residual_initialization": RESIDUAL_INITIALIZATIONS,
            },
        )
        if self.d_model % self.num_heads:
            remedy = -(-self.d_model // self.num_heads) * self.num_heads
            raise ValueError(
                f"`d_model` must be divisible by `num_heads`. Received: d_model={self.d_model}, "
                f"num_heads={self.num_heads}. Try d_model={remedy}."
            )
        grid(self.height, self.width, self.patch_size)

    @classmethod
    def chosen(cls, values: Mapping[str, Any], **of_pictures: int) -> "VisionHyperparameters":
        """What flags say.

        Args:
            values: of all flags of the model and of `patch_size`, by name.
            **of_pictures: height, width, channels and classes, which the pictures say.

        Raises:
            ValueError: if a value makes no sense.
        """
        own = [field.name for field in dataclasses.fields(cls) if field.name not in OF_PICTURES]
        return cls(**of_pictures, **{name: values[name] for name in own})

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> "VisionHyperparameters":
        """Those of a dictionary that `as_dict` gave.

        Raises:
            ValueError: if there is no such hyperparameter, or a value makes no sense.
        """
        return from_dictionary(cls, description)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return grid(self.height, self.width, self.patch_size)

    @property
    def tokens(self) -> int:
        """Positions of a picture: its patches and the class token."""
        rows, columns = self.grid
        return 1 + rows * columns

    def as_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; `VisionHyperparameters(**d)` is the way back."""
        return dataclasses.asdict(self)


@keras.saving.register_keras_serializable("keras_transformer")
class VisionTransformer(keras.Model):
    """A class for a picture, from the state of its class token.

        P(class | picture) = softmax(x_0 W + b),    x = Encoder(PatchEmbedding(2 picture - 1))

    Args:
        hyperparameters: sizes and variants; or pass its fields as keywords.
        dtype: a Keras dtype policy; the global one by default.

    Call arguments:
        pictures: (B, H, W, C), from 0 for black to 1 for white.

    Returns:
        Logits in float32, (B, K).

    Example:
        model = VisionTransformer(height=28, width=28, channels=1, classes=10, patch_size=4)
        logits = model(pictures)
    """

    what = "A Vision Transformer (Dosovitskiy et al. 2021, arXiv 2010.11929)"

    def __init__(
        self,
        hyperparameters: VisionHyperparameters | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "vision_transformer",
        **sizes,
    ):
        hp = hyperparameters or VisionHyperparameters(**sizes)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PatchEmbedding(
            hp.patch_size, hp.d_model, hp.dropout, dtype=policy, name="embedding"
        )
        heads = SoftmaxHeads(dropout=hp.attention_dropout)
        encoder = Encoder(**stack_arguments(hp), heads=heads, dtype=policy, name="encoder")
        head = Dense(hp.classes, dtype=policy, name="classes")
        pictures = keras.Input((hp.height, hp.width, hp.channels), name="picture")
        x = Dropout(hp.dropout, dtype=policy, name="head_dropout")(
            encoder(embedding(scaled(pictures)))[:, 0]
        )
        super().__init__(inputs=pictures, outputs=ops.cast(head(x), "float32"), name=name)
        self.hyperparameters = hp
        self.embedding = embedding
        self.encoder = encoder

    def states(self, pictures: Tensor) -> Tensor:
        """The last layer's states, (B, 1 + n, d_model), the class token's first."""
        return self.encoder(self.embedding(scaled(pictures)))

    def attention_weights(self, pictures: Tensor) -> dict[str, Tensor]:
        """What every layer's heads attend to.

        Args:
            pictures: as in `call`.

        Returns:
            A dictionary: "encoder" (B, N, h, 1 + n, 1 + n). Rows sum to 1.
        """
        _, weights = self.encoder.with_attention(self.embedding(scaled(pictures)))
        return {"encoder": weights}

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.encoder.dtype_policy),
            **self.hyperparameters.as_dict(),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def scaled(pictures: Tensor) -> Tensor:
    """Pixels from [0, 1] to [-1, 1], as the released weights expect them."""
    return 2.0 * pictures - 1.0
