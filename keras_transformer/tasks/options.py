"""Flags of the tasks of encoder-only models (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding").
"""

import dataclasses

from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.models.hyperparameters import Hyperparameters
from pipelines.options import Options, like, option
from pipelines.vocabularies.options import VocabularyOptions


@dataclasses.dataclass(frozen=True)
class VocabularySource(Options):
    """Vocabulary of another model."""

    vocabulary_from: str | None = option(
        None,
        "Run or SavedModel whose vocabulary is used. Default: that of --init_from, else one "
        "learned from the text.",
        path=True,
        resumed="fixed",
    )


@dataclasses.dataclass(frozen=True)
class MaskingOptions(Options):
    """Masked pieces."""

    mask_share: float = option(
        0.15,
        "Share of a text's pieces that are predicted. Of these, 80 % are replaced by the mask, "
        "10 % by a random piece, and 10 % are left unchanged.",
        at_least=0.01,
        at_most=1,
    )


@dataclasses.dataclass(frozen=True)
class LabellingOptions(Options):
    """Labelled examples."""

    labelled_examples: int | None = option(
        None, "Number of labelled examples to train on, drawn by --seed. Default: all.", at_least=1
    )


@dataclasses.dataclass(frozen=True)
class ClassificationOptions(Options):
    """Classification."""

    pooling: str = option(
        "first",
        "What classifies a text: the state of its first token, as in BERT, or the mean of all "
        "states.",
        choices=("first", "mean"),
    )


@dataclasses.dataclass(frozen=True)
class TextBatches(Options):
    """Texts."""

    max_train_length: int = option(
        256,
        "Number of pieces in the longest text to train on. Longer pairs are dropped; texts of "
        "one language are cut.",
        at_least=2,
    )


ONE_VOCABULARY = like(VocabularyOptions, without=("vocabularies",))
MODEL_OF_LABELS = like(Hyperparameters, without=("tie_embeddings",))
SEARCH = like(DecodingOptions, without=("constrained",))
SEARCH_OF_TEXT = like(SEARCH, without=("coverage_penalty",))
