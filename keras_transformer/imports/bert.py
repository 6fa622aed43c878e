"""BERT in Hugging Face's layout as an encoder-only model of ours (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding").
"""

from collections.abc import Mapping

import keras
import numpy as np

from keras_transformer.models import Hyperparameters

MODEL_TYPE = "bert"
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu", "silu": "swish"}
PREFIX = "bert."
# Ours, theirs, and whether theirs is the transpose.
EMBEDDINGS = {
    "embedding/table": ("embeddings.word_embeddings.weight", False),
    "embedding/encoding/table": ("embeddings.position_embeddings.weight", False),
    "segment_embedding/table": ("embeddings.token_type_embeddings.weight", False),
    "segment_embedding/norm/gamma": ("embeddings.LayerNorm.weight", False),
    "segment_embedding/norm/beta": ("embeddings.LayerNorm.bias", False),
}
LAYER = {
    "self_attention/query_kernel": ("attention.self.query.weight", True),
    "self_attention/query_bias": ("attention.self.query.bias", False),
    "self_attention/key_kernel": ("attention.self.key.weight", True),
    "self_attention/key_bias": ("attention.self.key.bias", False),
    "self_attention/value_kernel": ("attention.self.value.weight", True),
    "self_attention/value_bias": ("attention.self.value.bias", False),
    "self_attention/output_kernel": ("attention.output.dense.weight", True),
    "self_attention/output_bias": ("attention.output.dense.bias", False),
    "self_attention_norm/norm/gamma": ("attention.output.LayerNorm.weight", False),
    "self_attention_norm/norm/beta": ("attention.output.LayerNorm.bias", False),
    "feed_forward/inner/kernel": ("intermediate.dense.weight", True),
    "feed_forward/inner/bias": ("intermediate.dense.bias", False),
    "feed_forward/outer/kernel": ("output.dense.weight", True),
    "feed_forward/outer/bias": ("output.dense.bias", False),
    "feed_forward_norm/norm/gamma": ("output.LayerNorm.weight", False),
    "feed_forward_norm/norm/beta": ("output.LayerNorm.bias", False),
}
HEADS = {
    "prediction/dense/kernel": ("cls.predictions.transform.dense.weight", True),
    "prediction/dense/bias": ("cls.predictions.transform.dense.bias", False),
    "prediction/norm/gamma": ("cls.predictions.transform.LayerNorm.weight", False),
    "prediction/norm/beta": ("cls.predictions.transform.LayerNorm.bias", False),
    "output_bias/bias": ("cls.predictions.bias", False),
    "pooler/kernel": ("bert.pooler.dense.weight", True),
    "pooler/bias": ("bert.pooler.dense.bias", False),
    "labels/kernel": ("classifier.weight", True),
    "labels/bias": ("classifier.bias", False),
}


def hyperparameters(config: Mapping) -> Hyperparameters:
    """Sizes and variants from a `config.json`.

    Raises:
        ValueError: for what our encoder has not.
    """
    activation = config.get("hidden_act", "gelu")
    positions = config.get("position_embedding_type", "absolute")
    if activation not in ACTIVATIONS or positions != "absolute":
        raise ValueError(
            f"config.json must have hidden_act={' or '.join(ACTIVATIONS)} and "
            f"position_embedding_type=absolute. Received: hidden_act={activation}, "
            f"position_embedding_type={positions}. Import another model."
        )
    return Hyperparameters(
        vocabulary_size=config["vocab_size"],
        num_layers=config["num_hidden_layers"],
        d_model=config["hidden_size"],
        d_ff=config["intermediate_size"],
        num_heads=config["num_attention_heads"],
        dropout=config.get("hidden_dropout_prob", 0.1),
        attention_dropout=config.get("attention_probs_dropout_prob", 0.1),
        label_smoothing=0.0,
        activation=ACTIVATIONS[activation],
        positions="learned",
        max_positions=config.get("max_position_embeddings", 512),
        attention_bias=True,
        norm_epsilon=config.get("layer_norm_eps", 1e-12),
        scaled_embeddings=False,
    )


def weights(tensors: Mapping[str, np.ndarray], num_layers: int) -> dict[str, np.ndarray]:
    """Tensors by their names as arrays by the paths of our weights: of the body, and of the heads
    that are there.

    Args:
        tensors: of any class of BERT, with or without the prefix "bert.".
        num_layers: of the encoder.

    Raises:
        ValueError: if a tensor of the body is missing.
    """
    body = {name.removeprefix(PREFIX): array for name, array in tensors.items()}
    names = dict(EMBEDDINGS)
    for number in range(num_layers):
        for ours, (theirs, transposed) in LAYER.items():
            names[f"encoder/layer_{number}/{ours}"] = (
                f"encoder.layer.{number}.{theirs}",
                transposed,
            )
    if missing := [theirs for theirs, _ in names.values() if theirs not in body]:
        raise ValueError(
            f"the tensors must be those of a BERT of {num_layers} layers. Missing: {missing[0]}"
            f"{f' and {len(missing) - 1} more' if missing[1:] else ''}. Import a whole model."
        )
    found = {ours: _array(body[theirs], transposed) for ours, (theirs, transposed) in names.items()}
    for ours, (theirs, transposed) in HEADS.items():
        name = theirs if theirs in tensors else theirs.removeprefix(PREFIX)
        if name in tensors:
            found[ours] = _array(tensors[name], transposed)
    return found


def set_weights(model: keras.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Set all weights of a model.

    Args:
        model: made with `hyperparameters`.
        arrays: from `weights`; more than the model has is left out.

    Raises:
        ValueError: if one is missing, or has another shape.
    """
    for variable in model.weights:
        array = arrays.get(variable.path)
        if array is None or array.shape != tuple(variable.shape):
            came = "nothing" if array is None else f"shape {array.shape}"
            raise ValueError(
                f"{variable.path} must have the shape {tuple(variable.shape)}. Received: {came}. "
                "Import a folder whose config.json and tensors belong together."
            )
    for variable in model.weights:
        variable.assign(arrays[variable.path])


def _array(tensor, transposed):
    array = np.asarray(tensor, np.float32)
    return array.T if transposed else array
