"""T5 (Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer", the first version) as a `Transformer`.

Its attention is not scaled, its norms have no mean, and all layers share the relative biases of the
first. Its feed-forward networks have no biases: ours are 0. Its special ids are PAD 0, EOS 1, UNK 2
and PAD again as the start token; ours are PAD 0, UNK 1, BOS 2, EOS 3: its rows are put in that
order. All other ids stay, except 3, which moves to the end.
"""

from collections.abc import Mapping

import numpy as np

from keras_transformer.imports.fixed_settings import refuse_others
from keras_transformer.models import Hyperparameters, Transformer

MODEL_TYPE = "t5"
SIZES = ("vocab_size", "num_layers", "d_model", "d_kv", "d_ff", "num_heads")
# Our PAD, UNK, BOS and EOS as rows of its table.
SPECIAL = (0, 2, 0, 1)
ATTENTION = {"q": "query_kernel", "k": "key_kernel", "v": "value_kernel", "o": "output_kernel"}
# Sublayers by their number in a layer, and what it calls them.
SUBLAYERS = {
    "encoder": {0: ("SelfAttention", "self_attention")},
    "decoder": {0: ("SelfAttention", "self_attention"), 1: ("EncDecAttention", "cross_attention")},
}


def model(config: Mapping) -> Transformer:
    """A new model of the sizes of config.json.

    Raises:
        ValueError: for a kind of T5 that we have not: gated, untied, or of uneven stacks.
    """
    layers = config["num_layers"]
    if config.get("num_decoder_layers", layers) != layers:
        raise ValueError(
            "config.json must have as many layers in both stacks. Received: "
            f"num_layers={layers}, num_decoder_layers={config['num_decoder_layers']}. Import "
            "another T5."
        )
    wanted = {
        "feed_forward_proj": "relu",
        "tie_word_embeddings": True,
        "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128,
    }
    refuse_others(config, wanted, "T5")
    return Transformer(
        Hyperparameters(
            vocabulary_size=config["vocab_size"] + 1,
            num_layers=config["num_layers"],
            d_model=config["d_model"],
            d_ff=config["d_ff"],
            num_heads=config["num_heads"],
            d_k=config["d_kv"],
            d_v=config["d_kv"],
            dropout=config.get("dropout_rate", 0.1),
            label_smoothing=0.0,
            norm="pre_rms",
            positions="relative",
            attention="dot_product",
            norm_epsilon=config.get("layer_norm_epsilon", 1e-6),
        )
    )


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


def weights(config: Mapping, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by the paths of the model's variables."""
    # It scales the logits by d_model^-0.5, we the embeddings by d_model^0.5.
    table = tensors["shared.weight"][rows(config["vocab_size"])] * config["d_model"] ** -0.5
    found = {"embedding/table": table}
    for stack, sublayers in SUBLAYERS.items():
        found[f"{stack}/final_norm/gamma"] = tensors[f"{stack}.final_layer_norm.weight"]
        first = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        for number in range(config["num_layers"]):
            theirs = f"{stack}.block.{number}.layer"
            ours = f"{stack}/layer_{number}"
            for place, (attention, name) in sublayers.items():
                for letter, kernel in ATTENTION.items():
                    array = tensors[f"{theirs}.{place}.{attention}.{letter}.weight"]
                    found[f"{ours}/{name}/{kernel}"] = array.T
                gamma = tensors[f"{theirs}.{place}.layer_norm.weight"]
                found[f"{ours}/{name}_norm/norm/gamma"] = gamma
            found[f"{ours}/self_attention/heads/positions/bias"] = tensors[first].T
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
