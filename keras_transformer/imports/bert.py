"""BERT in Hugging Face's layout as an encoder-only model of ours (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding"), and the settings by
which sentence-transformers makes vectors with it (Reimers and Gurevych 2019, "Sentence-BERT:
Sentence Embeddings using Siamese BERT-Networks").
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from keras_transformer.imports import family
from keras_transformer.imports.family import ANOTHER, MOST, Share, Size, Weight, linear, norm
from keras_transformer.imports.folder_files import SettingsFiles
from keras_transformer.models import (
    BareTextEncoder,
    Hyperparameters,
    MaskedLanguageModel,
    TextClassifier,
    TokenClassifier,
)
from pipelines.json_files import Schema, quote, read_json, refuse

MODEL_TYPE = "bert"
PREFIX = "bert."
TIES = {}
# Heads on the encoder, by our class.
PREDICTION = ("prediction", "output_bias")
HEADS_OF = {
    BareTextEncoder: (),
    MaskedLanguageModel: PREDICTION,
    TextClassifier: ("pooler", "labels"),
    TokenClassifier: ("labels",),
}
# Prefix of the layers' weights -> config key of their number.
LAYERS = {"encoder.layer": "num_hidden_layers"}
SEGMENTS = 2
# The class that config.json names -> ours.
HEADED = {
    "BertModel": BareTextEncoder,
    "BertForMaskedLM": MaskedLanguageModel,
    "BertForPreTraining": MaskedLanguageModel,
    "BertForSequenceClassification": TextClassifier,
    "BertForTokenClassification": TokenClassifier,
}


class Config(family.EncoderConfig, kw_only=True):
    """Keys of a BERT's config.json."""

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
        refuse("architectures", "config.json", f"one of {', '.join(HEADED)}", architecture, ANOTHER)
    # Our head that guesses masked pieces is always tied to the embedding table.
    if config.our_class is MaskedLanguageModel and not config.tie_word_embeddings:
        refuse("tie_word_embeddings", "config.json", f"true for {architecture}", False, ANOTHER)
    if config.our_class is TextClassifier:
        config.require_single_label(architecture)
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
    """Yield the weights of a model of config.json, theirs without the prefix."""
    d = config.hidden_size
    pieces = config.vocab_size

    def of_pieces(array):
        return array[:pieces]

    yield Weight("embedding/table", "embeddings.word_embeddings.weight", (pieces, d), of_pieces)
    positions = "embeddings.position_embeddings.weight"
    most = config.max_position_embeddings
    yield Weight("embedding/encoding/table", positions, (most, d), lambda array: array[:most])
    segments = "embeddings.token_type_embeddings.weight"
    yield Weight("segment_embedding/table", segments, (SEGMENTS, d))
    yield from norm("segment_embedding/norm", "embeddings.LayerNorm", d)
    heads = {
        "prediction": (
            *linear("prediction/dense/{}", "cls.predictions.transform.dense", d, d),
            *norm("prediction/norm", "cls.predictions.transform.LayerNorm", d),
        ),
        "output_bias": (Weight("output_bias/bias", "cls.predictions.bias", (pieces,), of_pieces),),
        "pooler": linear("pooler/{}", "pooler.dense", d, d),
        "labels": linear("labels/{}", "classifier", len(config.labels()), d),
    }
    for head in HEADS_OF[config.our_class]:
        yield from heads[head]
    yield from config.layers("attention.self", "attention.output.LayerNorm", "output.LayerNorm")


MODULES = "modules.json"
PROMPTS = "config_sentence_transformers.json"
POOLING = "1_Pooling"
KINDS = ("Transformer", "Pooling", "Normalize")


class Module(Schema):
    """An entry of modules.json: one step from a text to its vector."""

    HARMLESS: ClassVar = ("idx", "kwargs", "name")

    type: str
    path: str = ""


class PoolingSettings(Schema):
    """Keys of a pooling's config.json."""

    # Newer versions write "pooling_mode": "mean", older ones "pooling_mode_mean_tokens": true.
    FIXED: ClassVar = {
        "pooling_mode": ("mean", None),
        "pooling_mode_mean_tokens": (True, None),
        "pooling_mode_cls_token": (False, None),
        "pooling_mode_max_tokens": (False, None),
        "pooling_mode_mean_sqrt_len_tokens": (False, None),
        "pooling_mode_weightedmean_tokens": (False, None),
        "pooling_mode_lasttoken": (False, None),
    }
    HARMLESS: ClassVar = ("embedding_dimension", "include_prompt", "word_embedding_dimension")


class Sentences(Schema):
    """Keys of sentence_bert_config.json."""

    FIXED: ClassVar = {"do_lower_case": (False,)}

    max_seq_length: Size = MOST


class Prompts(Schema):
    """Keys of config_sentence_transformers.json."""

    HARMLESS: ClassVar = ("__version__", "model_type", "similarity_fn_name")

    default_prompt_name: str | None = None
    prompts: dict[str, str] | None = None


def for_vectors(files: SettingsFiles, config: Any) -> Any:
    """Limit the positions of a BERT's config to the tokens that sentence-transformers gives a text.
    Refuse a model whose vectors are not the normalized mean of the text's states, as ours are.
    """
    path = files.path / MODULES
    pooling = _pooling_of(files, path) if path.exists() else POOLING
    remedy = (
        f"Import another model, or delete {pooling} for vectors that are the mean nevertheless."
    )
    files.read(PoolingSettings, f"{pooling}/config.json", remedy)
    prompts = files.read(Prompts, PROMPTS, ANOTHER)
    name = prompts.default_prompt_name
    if prompt := (prompts.prompts or {}).get(name):
        remedy = f"Make it null, and write {prompt!r} before each text."
        refuse("default_prompt_name", files.path / PROMPTS, "null, as we add none", name, remedy)
    sentences = files.read(Sentences, "sentence_bert_config.json", ANOTHER)
    longest = min(sentences.max_seq_length, config.max_position_embeddings)
    return msgspec.structs.replace(config, max_position_embeddings=longest)


def _pooling_of(files, path):
    """Return the folder of the pooling that modules.json names."""
    entries = read_json(path, ANOTHER)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(
            f"{path} is damaged: it must hold a list of objects. Received: {quote(entries)}. "
            f"{ANOTHER}"
        )
    modules = [files.parse(Module, entry, MODULES, ANOTHER) for entry in entries]
    kinds = [module.type.rpartition(".")[2] for module in modules]
    # Normalize may be missing: our vectors have length 1 in any case.
    if (*kinds, KINDS[-1])[:3] != KINDS or len(kinds) > len(KINDS):
        raise ValueError(
            f"{path} must have the modules {', '.join(KINDS)}, which make our vectors. Received: "
            f"{', '.join(map(quote, kinds)) or 'none'}. {ANOTHER}"
        )
    if modules[0].path:
        refuse("path", f"the first module of {path}", '""', modules[0].path, ANOTHER)
    if files.path.resolve() not in (files.path / modules[1].path).resolve().parents:
        refuse("path", f"the second module of {path}", "in it", modules[1].path, ANOTHER)
    return modules[1].path
