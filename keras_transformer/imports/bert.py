"""BERT in Hugging Face's layout as an encoder-only model of ours (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding").
"""

from collections.abc import Mapping

import keras
import numpy as np

from keras_transformer.imports.fixed_settings import refuse_no_choice, refuse_others
from keras_transformer.models import (
    BareTextEncoder,
    Hyperparameters,
    MaskedLanguageModel,
    TextClassifier,
    TokenClassifier,
)

MODEL_TYPE = "bert"
SIZES = (
    "vocab_size",
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
)
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu", "silu": "swish"}
PREFIX = "bert."
# What checkpoints of TensorFlow, such as the original ones, call a norm's weights, and what
# PyTorch calls them.
NORMS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
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
    "pooler/kernel": ("pooler.dense.weight", True),
    "pooler/bias": ("pooler.dense.bias", False),
    "labels/kernel": ("classifier.weight", True),
    "labels/bias": ("classifier.bias", False),
}

WANTED = {"is_decoder": False, "add_cross_attention": False}
# A head that guesses pieces multiplies by the table of the embeddings.
WANTED_OF_PIECES = {"tie_word_embeddings": True}
OF_PIECES = ("BertForMaskedLM", "BertForPreTraining")
# By the class that a config.json names: what makes our model of sizes and a number of labels.
HEADED = {
    "BertModel": lambda hyperparameters, labels: BareTextEncoder(hyperparameters),
    "BertForMaskedLM": lambda hyperparameters, labels: MaskedLanguageModel(hyperparameters),
    "BertForPreTraining": lambda hyperparameters, labels: MaskedLanguageModel(hyperparameters),
    "BertForSequenceClassification": TextClassifier,
    "BertForTokenClassification": TokenClassifier,
}


def model(config: Mapping) -> keras.Model:
    """A new model of the class and the sizes of config.json.

    Raises:
        ValueError: for what our encoder has not, and for a classifier whose logits are no choice of
            one among several labels.
    """
    [architecture, *_] = config.get("architectures") or ["BertModel"]
    if architecture not in HEADED:
        raise ValueError(
            f"`architectures` of config.json must be one of {', '.join(HEADED)}. Received: "
            f"{architecture}."
        )
    refuse_others(config, WANTED, "BERT")
    if architecture in OF_PIECES:
        refuse_others(config, WANTED_OF_PIECES, architecture)
    count = len(labels(config))
    if HEADED[architecture] is TextClassifier:
        refuse_no_choice(config, architecture, count)
    return HEADED[architecture](hyperparameters(config), count)


def labels(config: Mapping) -> list[str]:
    """The names of the labels of a classifier, two if config.json names none."""
    names = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    return [names[number] for number in sorted(names, key=int)]


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


def weights(config: Mapping, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by the paths of the variables: of the body, and of the heads that are there.

    Args:
        config: config.json.
        tensors: of any class of BERT, with or without the prefix "bert."; norms may have gamma and
            beta in place of weight and bias.
    """
    body = {_name(name): array for name, array in tensors.items()}
    found = {ours: _array(body, *theirs) for ours, theirs in EMBEDDINGS.items()}
    for number in range(config["num_hidden_layers"]):
        for ours, (theirs, transposed) in LAYER.items():
            name = f"encoder.layer.{number}.{theirs}"
            found[f"encoder/layer_{number}/{ours}"] = _array(body, name, transposed)
    heads = {ours: theirs for ours, theirs in HEADS.items() if theirs[0] in body}
    return {**found, **{ours: _array(body, *theirs) for ours, theirs in heads.items()}}


def _name(theirs):
    """The name of a weight without the prefix, as PyTorch calls it."""
    theirs = theirs.removeprefix(PREFIX)
    for end, today in NORMS.items():
        if theirs.endswith(end):
            return theirs.removesuffix(end) + today
    return theirs


def _array(tensors, name, transposed):
    return tensors[name].T if transposed else tensors[name]
