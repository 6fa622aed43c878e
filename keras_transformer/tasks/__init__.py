"""What is learned, one task a file: see `task.Task`. This file names the tasks and imports none."""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from pipelines.options import settings


@dataclasses.dataclass(frozen=True)
class Registered:
    """A task of this package, before it is imported: `--help` must not wait for TensorFlow.

    Attributes:
        home: module and class.
        examination: module and class of what `evaluate` asks of it: see `examination.Examination`.
        flag_groups, export_flag_groups: see `task.Task`.
        sizes: module and class of its hyperparameters, where flags of the model have another
            default for this task.
    """

    home: str
    examination: str
    flag_groups: tuple[str, ...]
    export_flag_groups: tuple[str, ...]
    sizes: str = ""

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Of flags that have another default for this task, by name."""
        if not self.sizes:
            return {}
        return {name: one.default for name, one in settings(_imported(self.sizes)).items()}


# By the name that a run's `model.json` says; "translation" where it says none: a run of 0.5.
TASKS = {
    "translation": Registered(
        "keras_transformer.tasks.translation.task:Translation",
        "keras_transformer.tasks.translation.score:TranslationExamination",
        flag_groups=(
            "corpus",
            "strict",
            "vocabulary",
            "model",
            "sampling",
            "start",
            "search",
            "tokenize",
        ),
        export_flag_groups=("search", "precision", "format"),
    ),
    "language_modelling": Registered(
        "keras_transformer.tasks.language_modelling.task:LanguageModelling",
        "keras_transformer.tasks.language_modelling.score:PerplexityExamination",
        flag_groups=("corpus", "strict", "vocabulary", "model", "search"),
        export_flag_groups=("search", "precision"),
    ),
    "masking": Registered(
        "keras_transformer.tasks.masking.task:Masking",
        "keras_transformer.tasks.masking.score:MaskingExamination",
        flag_groups=("corpus", "strict", "vocabulary", "model", "reading", "masking"),
        export_flag_groups=("precision",),
    ),
    "classification": Registered(
        "keras_transformer.tasks.labelling.task:Classification",
        "keras_transformer.tasks.labelling.score:LabelExamination",
        flag_groups=(
            "corpus",
            "strict",
            "vocabulary",
            "model",
            "reading",
            "labelling",
            "classification",
        ),
        export_flag_groups=("precision",),
    ),
    "tagging": Registered(
        "keras_transformer.tasks.labelling.task:Tagging",
        "keras_transformer.tasks.labelling.score:TagExamination",
        flag_groups=("corpus", "strict", "vocabulary", "model", "reading", "labelling"),
        export_flag_groups=("precision",),
    ),
    "image_classification": Registered(
        "keras_transformer.tasks.pictures.task:ImageClassification",
        "keras_transformer.tasks.pictures.score:PictureExamination",
        flag_groups=("pictures", "strict", "model"),
        export_flag_groups=(),
        sizes="keras_transformer.models.architectures:VisionHyperparameters",
    ),
    "parsing": Registered(
        "keras_transformer.tasks.parsing.task:Parsing",
        "keras_transformer.tasks.parsing.score:ParsingExamination",
        flag_groups=(
            "corpus",
            "strict",
            "vocabulary",
            "model",
            "sampling",
            "start",
            "search",
        ),
        export_flag_groups=("search", "precision", "format"),
    ),
}


# Of an imported encoder without a head, which nothing trains.
IMPORTED_ALONE = "sentence_vectors"


def task_class(name: str) -> type:
    """Import the `Task` of a name.

    Raises:
        ValueError: if this package has none of that name.
    """
    if name not in TASKS:
        raise ValueError(
            f"the task of a run must be one of {', '.join(TASKS)}. Received: task={name!r}. "
            f"{_instead(name, 'call `keras_transformer.export.run` of its class there')}"
        )
    return _imported(TASKS[name].home)


def examination_class(name: str) -> type:
    """Import the `Examination` of the task of a name.

    Raises:
        ValueError: if this package has no task of that name.
    """
    if name not in TASKS:
        raise ValueError(
            f"the task of a model must be one of {', '.join(TASKS)}. Received: task={name!r}. "
            f"{_instead(name, 'that has to score it')}"
        )
    return _imported(TASKS[name].examination)


def _instead(name, there):
    """What to do with a model of a task that is none of `TASKS`."""
    if name == IMPORTED_ALONE:
        return (
            "import_model wrote it, and its SavedModel beside it, which predict asks for vectors; "
            "nothing scores them."
        )
    return f"It is another program's: {there}."


def _imported(home):
    module, _, attribute = home.partition(":")
    return getattr(importlib.import_module(module), attribute)
