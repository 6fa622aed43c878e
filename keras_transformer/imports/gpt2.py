"""GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners") as a
`LanguageModel`.

Its ids are those of its own vocabulary of bytes, which ours is not: what comes out is a model of
ids, not a translator of strings.
"""

import functools
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from keras_transformer.imports import family
from keras_transformer.imports.family import Epsilon, Share, Size, Weight, norm
from keras_transformer.models import Hyperparameters, LanguageModel

MODEL_TYPE = "gpt2"
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
LAYERS = {"h": "n_layer"}
# One map gives queries, keys and values.
PARTS = ("query", "key", "value")


class Config(family.Config, kw_only=True):
    """What a GPT-2's config.json may say."""

    FIXED: ClassVar = {
        **family.Config.FIXED,
        "add_cross_attention": (False,),
        "is_encoder_decoder": (False,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "scale_attn_weights": (True,),
        "tie_word_embeddings": (True,),
    }
    HARMLESS: ClassVar = (
        *family.NOTES,
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


def table(config: Config) -> Iterator[Weight]:
    """The weights of a model of config.json, theirs as `plain_name` calls them. Matrices are as
    ours.
    """
    d = config.n_embd
    yield Weight("embedding/table", "wte.weight", (config.vocab_size, d))
    yield Weight("embedding/encoding/table", "wpe.weight", (config.n_positions, d))
    yield from norm("decoder/final_norm", "ln_f", d)
    maps = {
        "self_attention/output_{}": ("attn.c_proj", d, d),
        "feed_forward/inner/{}": ("mlp.c_fc", d, _inner(config)),
        "feed_forward/outer/{}": ("mlp.c_proj", _inner(config), d),
    }
    for number in range(config.n_layer):
        ours = f"decoder/layer_{number}"
        theirs = f"h.{number}"
        for kind, name, shape in (("kernel", "weight", (d, 3 * d)), ("bias", "bias", (3 * d,))):
            for place, part in enumerate(PARTS):
                path = f"{ours}/self_attention/{part}_{kind}"
                third = functools.partial(_third, place)
                yield Weight(path, f"{theirs}.attn.c_attn.{name}", shape, third)
        for path, (name, inputs, outputs) in maps.items():
            kernel = f"{ours}/{path.format('kernel')}"
            yield Weight(kernel, f"{theirs}.{name}.weight", (inputs, outputs))
            yield Weight(f"{ours}/{path.format('bias')}", f"{theirs}.{name}.bias", (outputs,))
        yield from norm(f"{ours}/self_attention_norm/norm", f"{theirs}.ln_1", d)
        yield from norm(f"{ours}/feed_forward_norm/norm", f"{theirs}.ln_2", d)


def _third(place, array):
    return np.split(array, len(PARTS), axis=-1)[place]
