"""ViT (Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words: Transformers for Image Recognition
at Scale") as a `VisionTransformer`.

Ours scales pictures from 0 to 1 to [-1, 1]. Where preprocessor_config.json names another mean and
deviation, the difference goes into the map of the patches.
"""

from collections.abc import Mapping

import numpy as np

from keras_transformer.imports.fixed_settings import refuse_no_choice
from keras_transformer.models import VisionHyperparameters, VisionTransformer

MODEL_TYPE = "vit"
SIZES = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads")
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


def model(config: Mapping) -> VisionTransformer:
    """A new model of the sizes of config.json.

    Raises:
        ValueError: for an activation that we have not, for attentions without biases, or for a
            model that does not choose one of several classes.
    """
    [architecture, *_] = config.get("architectures") or [ARCHITECTURE]
    if architecture != ARCHITECTURE:
        raise ValueError(
            f"`architectures` of config.json must be {ARCHITECTURE}. Received: {architecture}. "
            "Import a model that was trained to classify."
        )
    refuse_no_choice(config, architecture, len(classes(config)))
    activation = config.get("hidden_act", "gelu")
    if activation not in ACTIVATIONS or not config.get("qkv_bias", True):
        raise ValueError(
            f"config.json must have hidden_act={' or '.join(ACTIVATIONS)} and qkv_bias=true. "
            f"Received: hidden_act={activation}, qkv_bias={config.get('qkv_bias', True)}."
        )
    size = config.get("image_size", 224)
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return VisionTransformer(
        VisionHyperparameters(
            height=height,
            width=width,
            channels=config.get("num_channels", 3),
            classes=len(classes(config)),
            patch_size=config.get("patch_size", 16),
            num_layers=config["num_hidden_layers"],
            d_model=config["hidden_size"],
            d_ff=config["intermediate_size"],
            num_heads=config["num_attention_heads"],
            dropout=config.get("hidden_dropout_prob", 0.0),
            attention_dropout=config.get("attention_probs_dropout_prob", 0.0),
            activation=ACTIVATIONS[activation],
            norm_epsilon=config.get("layer_norm_eps", 1e-12),
        )
    )


def classes(config: Mapping) -> list[str]:
    """The names of the classes in the order of the logits; the package's own two where config.json
    names none.
    """
    names = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    return [names[number] for number in sorted(names, key=int)]


def weights(config: Mapping, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by the paths of the model's variables."""
    tensors = {name.removeprefix(PREFIX): array for name, array in tensors.items()}
    kernel, bias = _patches(config.get("preprocessor", {}), tensors)
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
    for number in range(config["num_hidden_layers"]):
        ours = f"encoder/layer_{number}"
        theirs = f"encoder.layer.{number}"
        for name, path in MAPS.items():
            found[f"{ours}/{path.format('kernel')}"] = tensors[f"{theirs}.{name}.weight"].T
            found[f"{ours}/{path.format('bias')}"] = tensors[f"{theirs}.{name}.bias"]
        for name, path in NORMS.items():
            found[f"{ours}/{path}/gamma"] = tensors[f"{theirs}.{name}.weight"]
            found[f"{ours}/{path}/beta"] = tensors[f"{theirs}.{name}.bias"]
    return found


def _patches(preprocessor, tensors):
    """Kernel (out, C, P, P) and bias (out,) of the patches for pixels x = 2 p - 1, where p are from
    0 to 1. Theirs are for

        (p - mean) / deviation = x / (2 deviation) + (0.5 - mean) / deviation

    Raises:
        ValueError: for pictures that are not scaled from bytes to 0 to 1 at first.
    """
    kernel = tensors["embeddings.patch_embeddings.projection.weight"]
    bias = tensors["embeddings.patch_embeddings.projection.bias"]
    scale = preprocessor.get("rescale_factor", 1 / WHITE)
    if not preprocessor.get("do_rescale", True) or not np.isclose(scale, 1 / WHITE):
        raise ValueError(
            "preprocessor_config.json must have do_rescale=true and rescale_factor=1/255. "
            f"Received: do_rescale={preprocessor.get('do_rescale', True)}, "
            f"rescale_factor={scale}. Import another model."
        )
    mean = 0.0
    deviation = 1.0
    if preprocessor.get("do_normalize", True):
        mean = preprocessor.get("image_mean", 0.5)
        deviation = preprocessor.get("image_std", 0.5)
    channels = np.ones(kernel.shape[1])
    deviation = channels * deviation
    offset = (0.5 - channels * mean) / deviation
    moved = bias + np.einsum("ocij,c->o", kernel, offset)
    kernel = kernel / (2 * deviation)[:, None, None]
    return kernel.astype(np.float32), moved.astype(np.float32)
