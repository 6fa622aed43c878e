"""ViT (Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words: Transformers for Image Recognition
at Scale") as a `VisionTransformer`.

Ours scales pictures from 0 to 1 to [-1, 1]. Where preprocessor_config.json names another mean and
deviation, the difference goes into the map of the patches.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from keras_transformer.imports import family_config
from keras_transformer.imports.family_config import ANOTHER, Epsilon, Share, Size
from keras_transformer.models import VisionHyperparameters, VisionTransformer
from pipelines.json_files import Schema, refuse

MODEL_TYPE = "vit"
LAYERS = {"encoder.layer": "num_hidden_layers"}
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu", "silu": "swish"}
WHITE = 255
ARCHITECTURE = "ViTForImageClassification"
PREFIX = "vit."
# Theirs and ours. A matrix of theirs is (out, in).
MAPS = {
    "attention.attention.query": "self_attention/query_{}",
    "attention.attention.key": "self_attention/key_{}",
    "attention.attention.value": "self_attention/value_{}",
    "attention.output.dense": "self_attention/output_{}",
    "intermediate.dense": "feed_forward/inner/{}",
    "output.dense": "feed_forward/outer/{}",
}
NORMS = {
    "layernorm_before": "self_attention_norm/norm",
    "layernorm_after": "feed_forward_norm/norm",
}


# Means of colours, and their deviations: of all channels, or one a channel.
Mean = Annotated[float, msgspec.Meta(ge=-1000, le=1000)]
Deviation = Annotated[float, msgspec.Meta(gt=1e-6, le=1000)]


class Pictures(Schema):
    """What preprocessor_config.json may say."""

    FIXED: ClassVar = {"do_rescale": (True,)}
    HARMLESS: ClassVar = (
        *("_processor_class", "data_format", "device", "feature_extractor_type"),
        *("image_processor_type", "input_data_format", "processor_class", "return_tensors"),
    )

    do_normalize: bool = True
    image_mean: Mean | list[Mean] | None = 0.5
    image_std: Deviation | list[Deviation] | None = 0.5
    rescale_factor: Deviation = 1 / WHITE


class Config(family_config.Config, kw_only=True):
    """What a ViT's config.json may say."""

    FIXED: ClassVar = {
        **family_config.Config.FIXED,
        "is_decoder": (False,),
        "is_encoder_decoder": (False,),
        "qkv_bias": (True,),
    }
    HARMLESS: ClassVar = (
        *family_config.NOTES,
        *("encoder_stride", "pooler_act", "pooler_output_size", "tie_word_embeddings"),
    )

    num_hidden_layers: Size
    hidden_size: Size
    intermediate_size: Size
    num_attention_heads: Size
    image_size: Size | Annotated[list[Size], msgspec.Meta(min_length=2, max_length=2)] = 224
    patch_size: Size = 16
    num_channels: Size = 3
    hidden_act: Literal[tuple(ACTIVATIONS)] = "gelu"
    hidden_dropout_prob: Share = 0.0
    attention_probs_dropout_prob: Share = 0.0
    layer_norm_eps: Epsilon = 1e-12


def model(config: Config) -> VisionTransformer:
    """A new model of the sizes of config.json."""
    return VisionTransformer(hyperparameters(config))


def hyperparameters(config: Config) -> VisionHyperparameters:
    """Sizes and variants from a `config.json`.

    Raises:
        ValueError: for a model that does not choose one of several classes.
    """
    architecture = config.architecture(ARCHITECTURE)
    if architecture != ARCHITECTURE:
        refuse("architectures", "config.json", ARCHITECTURE, architecture, ANOTHER)
    config.refuse_no_choice(architecture)
    size = config.image_size
    height, width = size if isinstance(size, list) else (size, size)
    return VisionHyperparameters(
        height=height,
        width=width,
        channels=config.num_channels,
        classes=len(config.labels()),
        patch_size=config.patch_size,
        num_layers=config.num_hidden_layers,
        d_model=config.hidden_size,
        d_ff=config.intermediate_size,
        num_heads=config.num_attention_heads,
        dropout=config.hidden_dropout_prob,
        attention_dropout=config.attention_probs_dropout_prob,
        activation=ACTIVATIONS[config.hidden_act],
        norm_epsilon=config.layer_norm_eps,
    )


def plain_name(theirs: str) -> str:
    """The name of a weight without the prefix."""
    return theirs.removeprefix(PREFIX)


def shapes(config: Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The weights of a model of config.json with their shapes, as `plain_name` calls them."""
    hp = hyperparameters(config)
    d = hp.d_model
    rows, columns = hp.grid
    patch = (hp.channels, hp.patch_size, hp.patch_size)
    yield "embeddings.patch_embeddings.projection.weight", (d, *patch)
    yield "embeddings.patch_embeddings.projection.bias", (d,)
    yield "embeddings.cls_token", (1, 1, d)
    yield "embeddings.position_embeddings", (1, rows * columns + 1, d)
    yield "classifier.weight", (hp.classes, d)
    yield "classifier.bias", (hp.classes,)
    yield "layernorm.weight", (d,)
    yield "layernorm.bias", (d,)
    others = {"intermediate.dense": (hp.d_ff, d), "output.dense": (d, hp.d_ff)}
    for number in range(hp.num_layers):
        for name in MAPS:
            shape = others.get(name, (d, d))
            yield f"encoder.layer.{number}.{name}.weight", shape
            yield f"encoder.layer.{number}.{name}.bias", shape[:1]
        for name in NORMS:
            yield f"encoder.layer.{number}.{name}.weight", (d,)
            yield f"encoder.layer.{number}.{name}.bias", (d,)


def check_pictures(pictures: Pictures, config: Config, path: str) -> None:
    """Refuse pictures that are not scaled from bytes to 0 to 1 at first, or not as many means and
    deviations as channels.

    Raises:
        ValueError: naming the key.
    """
    if not np.isclose(pictures.rescale_factor, 1 / WHITE):
        refuse("rescale_factor", path, "1/255", pictures.rescale_factor, ANOTHER)
    for name in ("image_mean", "image_std") if pictures.do_normalize else ():
        value = getattr(pictures, name)
        if value is None or (isinstance(value, list) and len(value) != config.num_channels):
            refuse(name, path, f"{config.num_channels} numbers or one", value, ANOTHER)


def weights(
    config: Config, tensors: Mapping[str, np.ndarray], pictures: Pictures
) -> dict[str, np.ndarray]:
    """Arrays by the paths of the model's variables."""
    kernel, bias = _patches(pictures, tensors)
    found = {
        # A convolution's (out, C, P, P), whose strides are its size, as a map of P P C numbers.
        "embedding/kernel": kernel.transpose(2, 3, 1, 0).reshape(-1, len(kernel)),
        "embedding/bias": bias,
        "embedding/class_token": tensors["embeddings.cls_token"].reshape(-1),
        "embedding/positions": tensors["embeddings.position_embeddings"][0],
        "encoder/final_norm/gamma": tensors["layernorm.weight"],
        "encoder/final_norm/beta": tensors["layernorm.bias"],
        "classes/kernel": tensors["classifier.weight"].T,
        "classes/bias": tensors["classifier.bias"],
    }
    for number in range(config.num_hidden_layers):
        ours = f"encoder/layer_{number}"
        theirs = f"encoder.layer.{number}"
        for name, path in MAPS.items():
            found[f"{ours}/{path.format('kernel')}"] = tensors[f"{theirs}.{name}.weight"].T
            found[f"{ours}/{path.format('bias')}"] = tensors[f"{theirs}.{name}.bias"]
        for name, path in NORMS.items():
            found[f"{ours}/{path}/gamma"] = tensors[f"{theirs}.{name}.weight"]
            found[f"{ours}/{path}/beta"] = tensors[f"{theirs}.{name}.bias"]
    return found


def _patches(pictures, tensors):
    """Kernel (out, C, P, P) and bias (out,) of the patches for pixels x = 2 p - 1, where p are from
    0 to 1. Theirs are for

        (p - mean) / deviation = x / (2 deviation) + (0.5 - mean) / deviation
    """
    kernel = tensors["embeddings.patch_embeddings.projection.weight"]
    bias = tensors["embeddings.patch_embeddings.projection.bias"]
    channels = np.ones(kernel.shape[1])
    mean = channels * (pictures.image_mean if pictures.do_normalize else 0.0)
    deviation = channels * (pictures.image_std if pictures.do_normalize else 1.0)
    offset = (0.5 - mean) / deviation
    moved = bias + np.einsum("ocij,c->o", kernel, offset)
    kernel = kernel / (2 * deviation)[:, None, None]
    return kernel.astype(np.float32), moved.astype(np.float32)
