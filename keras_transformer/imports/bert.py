"""BERT in Hugging Face's layout as an encoder-only model of ours (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding").
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import keras
import numpy as np

from keras_transformer.imports import family_config
from keras_transformer.imports.family_config import ANOTHER, Epsilon, Share, Size
from keras_transformer.models import (
    BareTextEncoder,
    Hyperparameters,
    MaskedLanguageModel,
    TextClassifier,
    TokenClassifier,
)
from pipelines.json_files import refuse

MODEL_TYPE = "bert"
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

# What stands on the body, by class.
PREDICTION = ("prediction", "output_bias")
HEADS_OF = {
    "BertModel": (),
    "BertForMaskedLM": PREDICTION,
    "BertForPreTraining": PREDICTION,
    "BertForSequenceClassification": ("pooler", "labels"),
    "BertForTokenClassification": ("labels",),
}
# The number of layers, and what the names of a layer's weights begin with.
LAYERS = {"encoder.layer": "num_hidden_layers"}
SEGMENTS = 2
# By the class that a config.json names: what makes our model of sizes and a number of labels.
HEADED = {
    "BertModel": lambda hyperparameters, labels: BareTextEncoder(hyperparameters),
    "BertForMaskedLM": lambda hyperparameters, labels: MaskedLanguageModel(hyperparameters),
    "BertForPreTraining": lambda hyperparameters, labels: MaskedLanguageModel(hyperparameters),
    "BertForSequenceClassification": TextClassifier,
    "BertForTokenClassification": TokenClassifier,
}


class Config(family_config.Config, kw_only=True):
    """What a BERT's config.json may say."""

    FIXED: ClassVar = {
        **family_config.Config.FIXED,
        "add_cross_attention": (False,),
        "is_decoder": (False,),
        "is_encoder_decoder": (False,),
        "pad_token_id": (0, None),
        "position_embedding_type": ("absolute",),
        "type_vocab_size": (SEGMENTS,),
    }
    HARMLESS: ClassVar = (
        *family_config.NOTES,
        *("directionality", "pooler_fc_size", "pooler_num_attention_heads"),
        *("pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"),
    )

    vocab_size: Size
    num_hidden_layers: Size
    hidden_size: Size
    intermediate_size: Size
    num_attention_heads: Size
    max_position_embeddings: Size = 512
    hidden_act: Literal[tuple(ACTIVATIONS)] = "gelu"
    hidden_dropout_prob: Share = 0.1
    attention_probs_dropout_prob: Share = 0.1
    layer_norm_eps: Epsilon = 1e-12
    tie_word_embeddings: bool = True


def model(config: Config) -> keras.Model:
    """A new model of the class and the sizes of config.json."""
    return HEADED[_architecture(config)](hyperparameters(config), len(config.labels()))


def _architecture(config):
    return config.architecture("BertModel")


def hyperparameters(config: Config) -> Hyperparameters:
    """Sizes and variants from a `config.json`.

    Raises:
        ValueError: for what our encoder has not, and for a classifier whose logits are no choice of
            one among several labels.
    """
    architecture = _architecture(config)
    if architecture not in HEADED:
        wanted = f"one of {', '.join(HEADED)}"
        refuse("architectures", "config.json", wanted, architecture, ANOTHER)
    # A head that guesses pieces multiplies by the table of the embeddings.
    if HEADS_OF[architecture] == PREDICTION and not config.tie_word_embeddings:
        refuse("tie_word_embeddings", "config.json", f"true for {architecture}", False, ANOTHER)
    if HEADED[architecture] is TextClassifier:
        config.refuse_no_choice(architecture)
    return Hyperparameters(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        d_model=config.hidden_size,
        d_ff=config.intermediate_size,
        num_heads=config.num_attention_heads,
        dropout=config.hidden_dropout_prob,
        attention_dropout=config.attention_probs_dropout_prob,
        label_smoothing=0.0,
        activation=ACTIVATIONS[config.hidden_act],
        positions="learned",
        max_positions=config.max_position_embeddings,
        attention_bias=True,
        norm_epsilon=config.layer_norm_eps,
        scaled_embeddings=False,
    )


def shapes(config: Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The weights of a model of config.json with their shapes, as `plain_name` calls them."""
    d = config.hidden_size
    count = len(config.labels())
    others = {
        "embeddings.word_embeddings.weight": (config.vocab_size, d),
        "embeddings.position_embeddings.weight": (config.max_position_embeddings, d),
        "embeddings.token_type_embeddings.weight": (SEGMENTS, d),
        "intermediate.dense.weight": (config.intermediate_size, d),
        "intermediate.dense.bias": (config.intermediate_size,),
        "output.dense.weight": (d, config.intermediate_size),
        "cls.predictions.bias": (config.vocab_size,),
        "classifier.weight": (count, d),
        "classifier.bias": (count,),
    }
    for name, is_matrix in (*EMBEDDINGS.values(), *_heads(config).values()):
        yield name, others.get(name, (d, d) if is_matrix else (d,))
    for number in range(config.num_hidden_layers):
        for name, is_matrix in LAYER.values():
            yield (
                f"encoder.layer.{number}.{name}",
                others.get(name, (d, d) if is_matrix else (d,)),
            )


def weights(config: Config, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by the paths of the variables, of the body and of the class's heads.

    Args:
        config: config.json. Rows of the tables beyond its pieces are left out.
        tensors: by their plain names.
    """
    arrays = {ours: _array(tensors, *theirs) for ours, theirs in EMBEDDINGS.items()}
    for number in range(config.num_hidden_layers):
        for ours, (theirs, transposed) in LAYER.items():
            name = f"encoder.layer.{number}.{theirs}"
            arrays[f"encoder/layer_{number}/{ours}"] = _array(tensors, name, transposed)
    arrays |= {ours: _array(tensors, *theirs) for ours, theirs in _heads(config).items()}
    for path in ("embedding/table", "output_bias/bias"):
        if path in arrays:
            arrays[path] = arrays[path][: config.vocab_size]
    return arrays


def _heads(config):
    parts = HEADS_OF[_architecture(config)]
    return {ours: theirs for ours, theirs in HEADS.items() if ours.split("/")[0] in parts}


def plain_name(theirs: str) -> str:
    """The name of a weight without the prefix, as PyTorch calls it: norms may have gamma and beta
    in place of weight and bias.
    """
    theirs = theirs.removeprefix(PREFIX)
    for end, today in NORMS.items():
        if theirs.endswith(end):
            return theirs.removesuffix(end) + today
    return theirs


def _array(tensors, name, transposed):
    return tensors[name].T if transposed else tensors[name]
