"""GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners") as a
`LanguageModel`.

Its ids are those of its own vocabulary of bytes, which ours is not: what comes out is a model of
ids, not a translator of strings.
"""

from collections.abc import Mapping

import numpy as np

from keras_transformer.imports.fixed_settings import refuse_others
from keras_transformer.models import Hyperparameters, LanguageModel

MODEL_TYPE = "gpt2"
SIZES = ("vocab_size", "n_layer", "n_embd", "n_head", "n_positions")
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
WANTED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
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


def model(config: Mapping) -> LanguageModel:
    """A new model of the sizes of config.json.

    Raises:
        ValueError: for an activation that we have not, attention that is scaled otherwise or looks
            at a source, or a table of its own for the logits.
    """
    refuse_others(config, WANTED, "GPT-2")
    activation = config.get("activation_function", "gelu_new")
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"`activation_function` of config.json must be one of {', '.join(ACTIVATIONS)}. "
            f"Received: {activation}."
        )
    return LanguageModel(
        Hyperparameters(
            vocabulary_size=config["vocab_size"],
            num_layers=config["n_layer"],
            d_model=config["n_embd"],
            d_ff=config.get("n_inner") or 4 * config["n_embd"],
            num_heads=config["n_head"],
            dropout=config.get("resid_pdrop", 0.1),
            attention_dropout=config.get("attn_pdrop", 0.1),
            label_smoothing=0.0,
            norm="pre",
            activation=ACTIVATIONS[activation],
            positions="learned",
            max_positions=config["n_positions"],
            attention_bias=True,
            norm_epsilon=config.get("layer_norm_epsilon", 1e-5),
            scaled_embeddings=False,
        )
    )


def weights(config: Mapping, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by the paths of the model's variables."""
    tensors = {name.removeprefix("transformer."): array for name, array in tensors.items()}
    found = {
        "embedding/table": tensors["wte.weight"],
        "embedding/encoding/table": tensors["wpe.weight"],
        "decoder/final_norm/gamma": tensors["ln_f.weight"],
        "decoder/final_norm/beta": tensors["ln_f.bias"],
    }
    for number in range(config["n_layer"]):
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
