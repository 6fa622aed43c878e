"""ViT (Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words: Transformers for Image Recognition
at Scale") as a `VisionTransformer`.

Our model scales pixels from [0, 1] to [-1, 1]. If preprocessor_config.json has another mean and
deviation, the kernel and bias of the patch embedding are changed to match.
"""

import collections
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from keras_transformer.imports import family
from keras_transformer.imports.family import ANOTHER, Size, Weight, linear, norm
from keras_transformer.models import VisionHyperparameters, VisionTransformer
from pipelines.json_files import Schema, refuse

MODEL_TYPE = "vit"
LAYERS = {"encoder.layer": "num_hidden_layers"}
WHITE = 255
ARCHITECTURE = "ViTForImageClassification"
PREFIX = "vit."
TIES = {}
PATCHES = "embeddings.patch_embeddings.projection"
# Mean and deviation of a channel's pixels.
Mean = Annotated[float, msgspec.Meta(ge=-1000, le=1000)]
Deviation = Annotated[float, msgspec.Meta(gt=1e-6, le=1000)]


class Pictures(Schema):
    """Keys of preprocessor_config.json."""

    FIXED: ClassVar = {"do_rescale": (True,)}
    HARMLESS: ClassVar = (
        *("_processor_class", "data_format", "device", "feature_extractor_type"),
        *("image_processor_type", "input_data_format", "processor_class", "return_tensors"),
    )

    do_normalize: bool = True
    image_mean: Mean | list[Mean] | None = 0.5
    image_std: Deviation | list[Deviation] | None = 0.5
    rescale_factor: Deviation = 1 / WHITE


class Config(family.EncoderConfig, kw_only=True):
    """Keys of a ViT's config.json."""

    FIXED: ClassVar = {**family.EncoderConfig.FIXED, "qkv_bias": (True,)}
    HARMLESS: ClassVar = (
        *family.NOTES,
        *("encoder_stride", "pooler_act", "pooler_output_size", "tie_word_embeddings"),
    )
    MODEL: ClassVar = VisionTransformer

    image_size: Size | Annotated[list[Size], msgspec.Meta(min_length=2, max_length=2)] = 224
    patch_size: Size = 16
    num_channels: Size = 3


def hyperparameters(config: Config) -> VisionHyperparameters:
    architecture = config.architecture(ARCHITECTURE)
    if architecture != ARCHITECTURE:
        refuse("architectures", "config.json", ARCHITECTURE, architecture, ANOTHER)
    config.require_single_label(architecture)
    size = config.image_size
    height, width = size if isinstance(size, list) else (size, size)
    return VisionHyperparameters(
        height=height,
        width=width,
        channels=config.num_channels,
        classes=len(config.labels()),
        patch_size=config.patch_size,
        **config.sizes(),
    )


def table(config: Config) -> Iterator[Weight]:
    """Yield the weights of a model of config.json, theirs without the prefix. The patch
    embedding still expects their preprocessing; `for_ours` changes that.
    """
    hp = hyperparameters(config)
    d = hp.d_model
    patch = (hp.channels, hp.patch_size, hp.patch_size)
    yield Weight("embedding/kernel", f"{PATCHES}.weight", (d, *patch))
    yield Weight("embedding/bias", f"{PATCHES}.bias", (d,))
    yield Weight("embedding/class_token", "embeddings.cls_token", (1, 1, d), np.ravel)
    positions = "embeddings.position_embeddings"
    yield Weight("embedding/positions", positions, (1, hp.tokens, d), lambda array: array[0])
    yield from norm("encoder/final_norm", "layernorm", d)
    yield from linear("classes/{}", "classifier", hp.classes, d)
    yield from config.layers("attention.attention", "layernorm_before", "layernorm_after")


def check_pictures(pictures: Pictures, config: Config, path: str) -> None:
    """Refuse pixels that are not scaled to [0, 1], and means that do not fit the channels."""
    if not np.isclose(pictures.rescale_factor, 1 / WHITE):
        refuse("rescale_factor", path, "1/255", pictures.rescale_factor, ANOTHER)
    for name in ("image_mean", "image_std") if pictures.do_normalize else ():
        value = getattr(pictures, name)
        if value is None or (isinstance(value, list) and len(value) != config.num_channels):
            refuse(name, path, f"{config.num_channels} numbers or one", value, ANOTHER)


def for_ours(arrays: Mapping[str, np.ndarray], pictures: Pictures) -> Mapping[str, np.ndarray]:
    """Change the patch embedding to take our pixels x = 2 p - 1, with p in [0, 1]. Its kernel
    (out, C, P, P) and bias (out,) take

        (p - mean) / deviation = x / (2 deviation) + (0.5 - mean) / deviation

    The kernel becomes (P P C, out), because patches do not overlap.
    """
    kernel = arrays["embedding/kernel"]
    channels = np.ones(kernel.shape[1])
    mean = channels * (pictures.image_mean if pictures.do_normalize else 0.0)
    deviation = channels * (pictures.image_std if pictures.do_normalize else 1.0)
    bias = arrays["embedding/bias"] + np.einsum("ocij,c->o", kernel, (0.5 - mean) / deviation)
    kernel = (kernel / (2 * deviation)[:, None, None]).astype(np.float32)
    ours = {
        "embedding/kernel": kernel.transpose(2, 3, 1, 0).reshape(-1, len(kernel)),
        "embedding/bias": bias.astype(np.float32),
    }
    return collections.ChainMap(ours, arrays)
