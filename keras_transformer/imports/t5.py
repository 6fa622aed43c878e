"""T5 (Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer", the first version) as a `Transformer`.

Its attention is not scaled, its norms have no mean, and all layers share the relative biases of the
first. Its feed-forward networks have no biases: ours are 0. Its special ids are PAD 0, EOS 1, UNK 2
and PAD again as the start token; ours are PAD 0, UNK 1, BOS 2, EOS 3: its rows are put in that
order. All other ids stay, except 3, which moves to the end.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from keras_transformer.imports import family_config
from keras_transformer.imports.family_config import ANOTHER, Epsilon, Share, Size
from keras_transformer.models import Hyperparameters, Transformer
from pipelines.json_files import refuse

MODEL_TYPE = "t5"
LAYERS = {"encoder.block": "num_layers", "decoder.block": "num_layers"}
BUCKETS = 32
plain_name = str
# Our PAD, UNK, BOS and EOS as rows of its table.
SPECIAL = (0, 2, 0, 1)
ATTENTION = {"q": "query_kernel", "k": "key_kernel", "v": "value_kernel", "o": "output_kernel"}
# Sublayers by their number in a layer, and what it calls them.
SUBLAYERS = {
    "encoder": {0: ("SelfAttention", "self_attention")},
    "decoder": {0: ("SelfAttention", "self_attention"), 1: ("EncDecAttention", "cross_attention")},
}


class Config(family_config.Config, kw_only=True):
    """What the config.json of an original T5 may say."""

    FIXED: ClassVar = {
        **family_config.Config.FIXED,
        "decoder_start_token_id": (0,),
        "dense_act_fn": ("relu",),
        "eos_token_id": (1,),
        "feed_forward_proj": ("relu",),
        "is_decoder": (False,),
        "is_encoder_decoder": (True,),
        "is_gated_act": (False,),
        "pad_token_id": (0,),
        "relative_attention_max_distance": (128,),
        "relative_attention_num_buckets": (BUCKETS,),
        "scale_decoder_outputs": (True,),
        "tie_word_embeddings": (True,),
    }
    HARMLESS: ClassVar = (*family_config.NOTES, "classifier_dropout", "n_positions")

    vocab_size: Size
    num_layers: Size
    d_model: Size
    d_kv: Size
    d_ff: Size
    num_heads: Size
    num_decoder_layers: Size | None = None
    dropout_rate: Share = 0.1
    layer_norm_epsilon: Epsilon = 1e-6


def model(config: Config) -> Transformer:
    """A new model of the sizes of config.json."""
    return Transformer(hyperparameters(config))


def hyperparameters(config: Config) -> Hyperparameters:
    """Sizes and variants from a `config.json`.

    Raises:
        ValueError: for stacks of unlike size, and for a table that lacks the special pieces.
    """
    layers = config.num_layers
    if config.num_decoder_layers not in (None, layers):
        wanted = f"num_layers, {layers}"
        refuse("num_decoder_layers", "config.json", wanted, config.num_decoder_layers, ANOTHER)
    if config.vocab_size < 4:
        refuse("vocab_size", "config.json", "`int` >= 4", config.vocab_size, ANOTHER)
    return Hyperparameters(
        vocabulary_size=config.vocab_size + 1,
        num_layers=layers,
        d_model=config.d_model,
        d_ff=config.d_ff,
        num_heads=config.num_heads,
        d_k=config.d_kv,
        d_v=config.d_kv,
        dropout=config.dropout_rate,
        label_smoothing=0.0,
        norm="pre_rms",
        positions="relative",
        attention="dot_product",
        norm_epsilon=config.layer_norm_epsilon,
    )


def shapes(config: Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The weights of a model of config.json with their shapes."""
    d = config.d_model
    heads = config.num_heads * config.d_kv
    yield "shared.weight", (config.vocab_size, d)
    for stack, sublayers in SUBLAYERS.items():
        yield f"{stack}.final_layer_norm.weight", (d,)
        yield _biases(stack), (BUCKETS, config.num_heads)
        for number in range(config.num_layers):
            theirs = f"{stack}.block.{number}.layer"
            for place, (attention, _) in sublayers.items():
                for letter in ATTENTION:
                    shape = (d, heads) if letter == "o" else (heads, d)
                    yield f"{theirs}.{place}.{attention}.{letter}.weight", shape
                yield f"{theirs}.{place}.layer_norm.weight", (d,)
            last = f"{theirs}.{len(sublayers)}"
            yield f"{last}.DenseReluDense.wi.weight", (config.d_ff, d)
            yield f"{last}.DenseReluDense.wo.weight", (d, config.d_ff)
            yield f"{last}.layer_norm.weight", (d,)


def _biases(stack):
    return f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"


def ours_of(ids: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """Its ids as ours.

    Args:
        ids: integers; a start token must be given as 2, our BOS.
        vocabulary_size: its own.
    """
    moved = np.arange(vocabulary_size)
    moved[[0, 1, 2, 3]] = (0, 3, 1, vocabulary_size)
    return moved[ids]


def rows(vocabulary_size: int) -> np.ndarray:
    """The row of its table that each of our ids has."""
    return np.concatenate([SPECIAL, np.arange(4, vocabulary_size), [3]])


def weights(config: Config, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by the paths of the model's variables."""
    # It scales the logits by d_model^-0.5, we the embeddings by d_model^0.5.
    table = tensors["shared.weight"][rows(config.vocab_size)] * config.d_model**-0.5
    found = {"embedding/table": table}
    for stack, sublayers in SUBLAYERS.items():
        found[f"{stack}/final_norm/gamma"] = tensors[f"{stack}.final_layer_norm.weight"]
        biases = tensors[_biases(stack)].T
        for number in range(config.num_layers):
            theirs = f"{stack}.block.{number}.layer"
            ours = f"{stack}/layer_{number}"
            for place, (attention, name) in sublayers.items():
                for letter, kernel in ATTENTION.items():
                    array = tensors[f"{theirs}.{place}.{attention}.{letter}.weight"]
                    found[f"{ours}/{name}/{kernel}"] = array.T
                gamma = tensors[f"{theirs}.{place}.layer_norm.weight"]
                found[f"{ours}/{name}_norm/norm/gamma"] = gamma
            found[f"{ours}/self_attention/heads/positions/bias"] = biases
            found |= _feed_forward(tensors, f"{theirs}.{len(sublayers)}", ours)
    return found


def _feed_forward(tensors, theirs, ours):
    inner = tensors[f"{theirs}.DenseReluDense.wi.weight"].T
    outer = tensors[f"{theirs}.DenseReluDense.wo.weight"].T
    return {
        f"{ours}/feed_forward/inner/kernel": inner,
        f"{ours}/feed_forward/inner/bias": np.zeros(inner.shape[1], inner.dtype),
        f"{ours}/feed_forward/outer/kernel": outer,
        f"{ours}/feed_forward/outer/bias": np.zeros(outer.shape[1], outer.dtype),
        f"{ours}/feed_forward_norm/norm/gamma": tensors[f"{theirs}.layer_norm.weight"],
    }
