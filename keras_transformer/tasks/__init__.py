"""What is learned, one task a file: see `task.Task`. This file names the tasks and imports none."""

import dataclasses
import importlib
from typing import Any

from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.evaluation.options import Tokenizer
from keras_transformer.models.architectures import ArchitectureChoice, VisionHyperparameters
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.runs.options import RunOptions
from keras_transformer.saved_models.options import ExportOptions, Format, Precision
from keras_transformer.tasks import options
from keras_transformer.tasks.pictures.options import PictureOptions
from keras_transformer.tasks.translation.options import (
    Augmentation,
    EmbeddingStart,
    ValidationSearch,
)
from keras_transformer.training.options import (
    Averaging,
    Batches,
    Course,
    ObjectiveOptions,
    OptimizerOptions,
    Seed,
)
from pipelines.corpora import CorpusChoice
from pipelines.corpora.options import Strictness
from pipelines.options import Options, option
from pipelines.vocabularies.options import VocabularyOptions


@dataclasses.dataclass(frozen=True)
class Registered:
    """A task of this package, before it is imported: `--help` must not wait for TensorFlow.

    Attributes:
        home: module and class.
        module: module and class of what is exported of its models.
        options, export_options: see `task.Task`.
    """

    home: str
    module: str
    options: tuple[type[Options], ...]
    export_options: tuple[type[Options], ...]


_TEXT = (CorpusChoice, options.ONE_VOCABULARY)
_TRANSLATION = (
    CorpusChoice,
    VocabularyOptions,
    options.TextBatches,
    ArchitectureChoice,
    EmbeddingStart,
    Augmentation,
    ValidationSearch,
)
_READING = (*_TEXT, options.VocabularySource, options.TextBatches)

# What training any task reads, besides the options of the task.
TRAINING = (
    Seed,
    Batches,
    ObjectiveOptions,
    OptimizerOptions,
    Course,
    Averaging,
    RunOptions,
    ExportOptions,
)

# By the name that a run's `model.json` says; "translation" where it says none: a run of 0.5.
TASKS = {
    "translation": Registered(
        "keras_transformer.tasks.translation.task:Translation",
        "keras_transformer.tasks.translation.module:TranslationModule",
        options=(*_TRANSLATION, options.SEARCH, Tokenizer),
        export_options=(options.SEARCH, Precision, Format),
    ),
    "parsing": Registered(
        "keras_transformer.tasks.parsing.task:Parsing",
        "keras_transformer.tasks.parsing.module:ParsingModule",
        options=(*_TRANSLATION, DecodingOptions),
        export_options=(DecodingOptions, Precision, Format),
    ),
    "language_modelling": Registered(
        "keras_transformer.tasks.language_modelling.task:LanguageModelling",
        "keras_transformer.tasks.language_modelling.module:GenerationModule",
        options=(
            *_TEXT,
            options.TextBatches,
            Hyperparameters,
            options.SEARCH_OF_TEXT,
        ),
        export_options=(options.SEARCH_OF_TEXT, Precision),
    ),
    "masking": Registered(
        "keras_transformer.tasks.masking.task:Masking",
        "keras_transformer.tasks.masking.module:MaskedTextModule",
        options=(*_READING, options.MaskingOptions, Hyperparameters),
        export_options=(Precision,),
    ),
    "classification": Registered(
        "keras_transformer.tasks.labelling.task:Classification",
        "keras_transformer.tasks.labelling.module:LabelModule",
        options=(
            *_READING,
            options.LabellingOptions,
            options.ClassificationOptions,
            options.MODEL_OF_LABELS,
        ),
        export_options=(Precision,),
    ),
    "tagging": Registered(
        "keras_transformer.tasks.labelling.task:Tagging",
        "keras_transformer.tasks.labelling.module:TagModule",
        options=(*_READING, options.LabellingOptions, options.MODEL_OF_LABELS),
        export_options=(Precision,),
    ),
    "image_classification": Registered(
        "keras_transformer.tasks.pictures.task:ImageClassification",
        "keras_transformer.tasks.pictures.module:PictureModule",
        options=(PictureOptions, Strictness, VisionHyperparameters),
        export_options=(),
    ),
}


@dataclasses.dataclass(frozen=True)
class TaskChoice(Options):
    """Task."""

    task: str = option(
        "translation",
        "What is learned: to translate sentences; to parse them, from a treebank; to continue "
        "text of one language; to predict its masked pieces; to classify texts; to tag words; "
        "or to classify images.",
        choices=tuple(TASKS),
    )


# Of an imported encoder without a head, which nothing trains.
IMPORTED_ALONE = "sentence_vectors"
IMPORTED = (
    "import_model wrote it, and its SavedModel beside it, which predict asks for vectors; nothing "
    "scores them."
)
ANOTHER = (
    "It is another program's, which has to score it, and to export it by "
    "`keras_transformer.export.run` of its class."
)


def task_class(name: str) -> type:
    """Import the `Task` of a name.

    Raises:
        ValueError: if this package has none of that name.
    """
    if name not in TASKS:
        raise ValueError(
            f"the task of a run must be one of {', '.join(TASKS)}. Received: task={name!r}. "
            f"{IMPORTED if name == IMPORTED_ALONE else ANOTHER}"
        )
    return imported(TASKS[name].home)


def module_class(name: str) -> type:
    """Import the `ServedModule` of the task of a name."""
    return imported(TASKS[name].module)


def imported(home: str) -> Any:
    """What "module:attribute" names."""
    module, _, attribute = home.partition(":")
    return getattr(importlib.import_module(module), attribute)
