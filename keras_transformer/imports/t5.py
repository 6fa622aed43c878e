"""T5 (Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer", the first version) as a `Transformer`.

Its attention is not scaled, its norms have no mean, and all layers share the relative biases of the
first. Its feed-forward networks have no biases: ours are 0. Its special ids are PAD 0, EOS 1, UNK 2
and PAD again as the start token; ours are PAD 0, UNK 1, BOS 2, EOS 3: its rows are put in that
order. All other ids stay, except 3, which moves to the end.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from keras_transformer.imports import family
from keras_transformer.imports.family import ANOTHER, Epsilon, Share, Size, Weight
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


class Config(family.Config, kw_only=True):
    """What the config.json of an original T5 may say."""

    FIXED: ClassVar = {
        **family.Config.FIXED,
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
    HARMLESS: ClassVar = (*family.NOTES, "classifier_dropout", "n_positions")

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


def table(config: Config) -> Iterator[Weight]:
    """The weights of a model of config.json."""
    d = config.d_model
    heads = config.num_heads * config.d_kv

    def in_our_order(array):
        # It scales the logits by d_model^-0.5, we the embeddings by d_model^0.5.
        return array[rows(config.vocab_size)] * d**-0.5

    yield Weight("embedding/table", "shared.weight", (config.vocab_size, d), in_our_order)
    for stack, sublayers in SUBLAYERS.items():
        yield Weight(f"{stack}/final_norm/gamma", f"{stack}.final_layer_norm.weight", (d,))
        biases = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        for number in range(config.num_layers):
            ours = f"{stack}/layer_{number}"
            theirs = f"{stack}.block.{number}.layer"
            for place, (attention, name) in sublayers.items():
                for letter, kernel in ATTENTION.items():
                    matrix = f"{theirs}.{place}.{attention}.{letter}.weight"
                    shape = (d, heads) if letter == "o" else (heads, d)
                    yield Weight(f"{ours}/{name}/{kernel}", matrix, shape, np.transpose)
                gamma = f"{theirs}.{place}.layer_norm.weight"
                yield Weight(f"{ours}/{name}_norm/norm/gamma", gamma, (d,))
            places = f"{ours}/self_attention/heads/positions/bias"
            yield Weight(places, biases, (BUCKETS, config.num_heads), np.transpose)
            yield from _feed_forward(ours, f"{theirs}.{len(sublayers)}", d, config.d_ff)


def _feed_forward(ours, theirs, d, d_ff):
    maps = {"inner": ("wi", (d_ff, d)), "outer": ("wo", (d, d_ff))}
    for name, (letters, shape) in maps.items():
        matrix = f"{theirs}.DenseReluDense.{letters}.weight"
        yield Weight(f"{ours}/feed_forward/{name}/kernel", matrix, shape, np.transpose)
        # It has no biases.
        yield Weight(f"{ours}/feed_forward/{name}/bias", matrix, shape, _zeros)
    yield Weight(f"{ours}/feed_forward_norm/norm/gamma", f"{theirs}.layer_norm.weight", (d,))


def _zeros(matrix):
    return np.zeros(len(matrix), matrix.dtype)


def rows(vocabulary_size: int) -> np.ndarray:
    """The row of its table that each of our ids has."""
    return np.concatenate([SPECIAL, np.arange(4, vocabulary_size), [3]])
