"""GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners") as a
`LanguageModel`.

Its ids are those of its own vocabulary of bytes, which ours is not: what comes out is a model of
ids, not a translator of strings.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import numpy as np

from keras_transformer.imports import family_config
from keras_transformer.imports.family_config import Epsilon, Share, Size
from keras_transformer.models import Hyperparameters, LanguageModel

MODEL_TYPE = "gpt2"
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
LAYERS = {"h": "n_layer"}
MAPS = {
    "attn.c_proj.weight": "self_attention/output_kernel",
    "attn.c_proj.bias": "self_attention/output_bias",
    "ln_1.weight": "self_attention_norm/norm/gamma",
    "ln_1.bias": "self_attention_norm/norm/beta",
    "mlp.c_fc.weight": "feed_forward/inner/kernel",
    "mlp.c_fc.bias": "feed_forward/inner/bias",
    "mlp.c_proj.weight": "feed_forward/outer/kernel",
    "mlp.c_proj.bias": "feed_forward/outer/bias",
    "ln_2.weight": "feed_forward_norm/norm/gamma",
    "ln_2.bias": "feed_forward_norm/norm/beta",
}


class Config(family_config.Config, kw_only=True):
    """What a GPT-2's config.json may say."""

    FIXED: ClassVar = {
        **family_config.Config.FIXED,
        "add_cross_attention": (False,),
        "is_encoder_decoder": (False,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "scale_attn_weights": (True,),
        "tie_word_embeddings": (True,),
    }
    HARMLESS: ClassVar = (
        *family_config.NOTES,
        *("embd_pdrop", "n_ctx", "pad_token_id", "reorder_and_upcast_attn", "summary_activation"),
        *("summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj"),
    )

    vocab_size: Size
    n_layer: Size
    n_embd: Size
    n_head: Size
    n_positions: Size
    n_inner: Size | None = None
    activation_function: Literal[tuple(ACTIVATIONS)] = "gelu_new"
    resid_pdrop: Share = 0.1
    attn_pdrop: Share = 0.1
    layer_norm_epsilon: Epsilon = 1e-5


def model(config: Config) -> LanguageModel:
    """A new model of the sizes of config.json."""
    return LanguageModel(hyperparameters(config))


def hyperparameters(config: Config) -> Hyperparameters:
    """Sizes and variants from a `config.json`."""
    return Hyperparameters(
        vocabulary_size=config.vocab_size,
        num_layers=config.n_layer,
        d_model=config.n_embd,
        d_ff=_inner(config),
        num_heads=config.n_head,
        dropout=config.resid_pdrop,
        attention_dropout=config.attn_pdrop,
        label_smoothing=0.0,
        norm="pre",
        activation=ACTIVATIONS[config.activation_function],
        positions="learned",
        max_positions=config.n_positions,
        attention_bias=True,
        norm_epsilon=config.layer_norm_epsilon,
        scaled_embeddings=False,
    )


def _inner(config):
    return config.n_inner or 4 * config.n_embd


def plain_name(theirs: str) -> str:
    """The name of a weight without the prefix."""
    return theirs.removeprefix("transformer.")


def shapes(config: Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The weights of a model of config.json with their shapes, as `plain_name` calls them."""
    d = config.n_embd
    yield "wte.weight", (config.vocab_size, d)
    yield "wpe.weight", (config.n_positions, d)
    yield "ln_f.weight", (d,)
    yield "ln_f.bias", (d,)
    others = {
        "attn.c_attn.weight": (d, 3 * d),
        "attn.c_attn.bias": (3 * d,),
        "attn.c_proj.weight": (d, d),
        "mlp.c_fc.weight": (d, _inner(config)),
        "mlp.c_fc.bias": (_inner(config),),
        "mlp.c_proj.weight": (_inner(config), d),
    }
    layer = dict.fromkeys(MAPS, (d,)) | others
    for number in range(config.n_layer):
        for name, shape in layer.items():
            yield f"h.{number}.{name}", shape


def weights(config: Config, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by the paths of the model's variables."""
    found = {
        "embedding/table": tensors["wte.weight"],
        "embedding/encoding/table": tensors["wpe.weight"],
        "decoder/final_norm/gamma": tensors["ln_f.weight"],
        "decoder/final_norm/beta": tensors["ln_f.bias"],
    }
    for number in range(config.n_layer):
        layer = f"decoder/layer_{number}"
        for theirs, ours in MAPS.items():
            found[f"{layer}/{ours}"] = tensors[f"h.{number}.{theirs}"]
        # One map gives queries, keys and values.
        for kind in ("kernel", "bias"):
            name = {"kernel": "weight", "bias": "bias"}[kind]
            parts = np.split(tensors[f"h.{number}.attn.c_attn.{name}"], 3, axis=-1)
            for part, array in zip(("query", "key", "value"), parts, strict=True):
                found[f"{layer}/self_attention/{part}_{kind}"] = array
    return found
