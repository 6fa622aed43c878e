"""BERT in Hugging Face's layout as an encoder-only model of ours (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding").
"""

from collections.abc import Iterator
from typing import ClassVar

from keras_transformer.imports import family
from keras_transformer.imports.family import ANOTHER, Share, Size, Weight, linear, norm
from keras_transformer.models import (
    BareTextEncoder,
    Hyperparameters,
    MaskedLanguageModel,
    TextClassifier,
    TokenClassifier,
)
from pipelines.json_files import refuse

MODEL_TYPE = "bert"
PREFIX = "bert."
# What checkpoints of TensorFlow, such as the original ones, call a norm's weights, and what
# PyTorch calls them.
NORMS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
# Of a layer, ours and theirs.
NORMS_OF_LAYER = {
    "self_attention_norm/norm": "attention.output.LayerNorm",
    "feed_forward_norm/norm": "output.LayerNorm",
}
# What stands on the body, by class of ours.
PREDICTION = ("prediction", "output_bias")
HEADS_OF = {
    BareTextEncoder: (),
    MaskedLanguageModel: PREDICTION,
    TextClassifier: ("pooler", "labels"),
    TokenClassifier: ("labels",),
}
# The number of layers, and what the names of a layer's weights begin with.
LAYERS = {"encoder.layer": "num_hidden_layers"}
SEGMENTS = 2
# By the class that a config.json names.
HEADED = {
    "BertModel": BareTextEncoder,
    "BertForMaskedLM": MaskedLanguageModel,
    "BertForPreTraining": MaskedLanguageModel,
    "BertForSequenceClassification": TextClassifier,
    "BertForTokenClassification": TokenClassifier,
}


class Config(family.EncoderConfig, kw_only=True):
    """What a BERT's config.json may say."""

    FIXED: ClassVar = {
        **family.EncoderConfig.FIXED,
        "add_cross_attention": (False,),
        "pad_token_id": (0, None),
        "position_embedding_type": ("absolute",),
        "type_vocab_size": (SEGMENTS,),
    }
    HARMLESS: ClassVar = (
        *family.NOTES,
        *("directionality", "pooler_fc_size", "pooler_num_attention_heads"),
        *("pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"),
    )

    vocab_size: Size
    max_position_embeddings: Size = 512
    hidden_dropout_prob: Share = 0.1
    attention_probs_dropout_prob: Share = 0.1
    tie_word_embeddings: bool = True

    @property
    def our_class(self) -> type:
        return HEADED[self.architecture("BertModel")]

    def model(self, hyperparameters):
        labels = [len(self.labels())] if "labels" in HEADS_OF[self.our_class] else []
        return self.our_class(hyperparameters, *labels)


def hyperparameters(config: Config) -> Hyperparameters:
    architecture = config.architecture("BertModel")
    if architecture not in HEADED:
        wanted = f"one of {', '.join(HEADED)}"
        refuse("architectures", "config.json", wanted, architecture, ANOTHER)
    # A head that guesses pieces multiplies by the table of the embeddings.
    if config.our_class is MaskedLanguageModel and not config.tie_word_embeddings:
        refuse("tie_word_embeddings", "config.json", f"true for {architecture}", False, ANOTHER)
    if config.our_class is TextClassifier:
        config.refuse_no_choice(architecture)
    return Hyperparameters(
        vocabulary_size=config.vocab_size,
        label_smoothing=0.0,
        positions="learned",
        max_positions=config.max_position_embeddings,
        attention_bias=True,
        scaled_embeddings=False,
        **config.sizes(),
    )


def table(config: Config) -> Iterator[Weight]:
    """The weights of a model of config.json, theirs as `plain_name` calls them."""
    d = config.hidden_size
    pieces = config.vocab_size

    def known(array):
        return array[:pieces]

    yield Weight("embedding/table", "embeddings.word_embeddings.weight", (pieces, d), known)
    of_positions = "embeddings.position_embeddings.weight"
    longest = config.max_position_embeddings
    yield Weight("embedding/encoding/table", of_positions, (longest, d), lambda one: one[:longest])
    segments = "embeddings.token_type_embeddings.weight"
    yield Weight("segment_embedding/table", segments, (SEGMENTS, d))
    yield from norm("segment_embedding/norm", "embeddings.LayerNorm", d)
    heads = {
        "prediction": (
            *linear("prediction/dense/{}", "cls.predictions.transform.dense", d, d),
            *norm("prediction/norm", "cls.predictions.transform.LayerNorm", d),
        ),
        "output_bias": (Weight("output_bias/bias", "cls.predictions.bias", (pieces,), known),),
        "pooler": linear("pooler/{}", "pooler.dense", d, d),
        "labels": linear("labels/{}", "classifier", len(config.labels()), d),
    }
    for head in HEADS_OF[config.our_class]:
        yield from heads[head]
    yield from config.layers("attention.self", NORMS_OF_LAYER)


def plain_name(theirs: str) -> str:
    """The name of a weight without the prefix, as PyTorch calls it: no gamma and beta of norms."""
    theirs = theirs.removeprefix(PREFIX)
    for end, today in NORMS.items():
        if theirs.endswith(end):
            return theirs.removesuffix(end) + today
    return theirs
