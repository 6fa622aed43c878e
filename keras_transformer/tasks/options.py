"""Declarations of tasks, which are read before the tasks are imported, and shared options.

`--help` must not wait for TensorFlow: nothing here or in a task's `options` imports it.
"""

import dataclasses

from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.models.architectures import ArchitectureChoice
from keras_transformer.models.hyperparameters import OF_TWO_STACKS, Hyperparameters
from pipelines.corpora import CorpusChoice
from pipelines.options import FIXED, Options, like, option
from pipelines.vocabularies.options import VocabularyOptions


@dataclasses.dataclass(frozen=True)
class Registered:
    """A task of this package. `TASKS` in the `options` of its folder has it by its name.

    Attributes:
        task: name of its `Task` class.
        aim: what is learned, as "to ...".
        place: its place in the list of tasks.
        options, export_options: see `task.Task`.
        makes_sentences: whether its models turn each sentence into a sentence or a tree.
        folder: the folder with its `task`, which `keras_transformer.tasks` fills in.
    """

    task: str
    aim: str
    place: int
    options: tuple[type[Options], ...]
    export_options: tuple[type[Options], ...]
    makes_sentences: bool = False
    folder: str = ""


class VocabularySource(Options):
    """Vocabulary of another model."""

    vocabulary_from: str | None = option(
        None,
        "Run or SavedModel whose vocabulary is used. Default: that of --init_from (for a "
        "translator, only if it was imported and --vocabulary_size is not given), else one learned "
        "from the text.",
        path=True,
        resumed=FIXED,
    )


class TextBatches(Options):
    """Texts."""

    max_train_length: int = option(
        256,
        "Number of pieces in the longest text to train on. Longer pairs are dropped; texts of "
        "one language are cut.",
        at_least=2,
    )


# Sizes of a model with a single stack.
ONE_STACK = like(Hyperparameters, without=(*OF_TWO_STACKS, "output_bias"))
ONE_VOCABULARY = like(VocabularyOptions, without=("vocabularies",))
SEARCH = like(DecodingOptions, without=("constrained",))
OF_ONE_LANGUAGE = (CorpusChoice, ONE_VOCABULARY)
OF_ENCODERS = (*OF_ONE_LANGUAGE, VocabularySource, TextBatches)
OF_PAIRS = (CorpusChoice, VocabularyOptions, VocabularySource, TextBatches, ArchitectureChoice)
