"""The model and the vocabulary that a run's folder holds."""

import pathlib

from keras_transformer.models import (
    EncoderDecoder,
    model_of,
    sizes_of_description,
    translation_policy,
)
from keras_transformer.runs.folder import RunFolder
from pipelines import vocabularies
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.vocabulary import Vocabulary


def load_trained(
    folder: RunFolder, weights: pathlib.Path | None = None, precision: str = "float32"
) -> tuple[EncoderDecoder, Vocabulary | SeparateVocabularies]:
    """Load what a run of the task "translation" trained.

    Args:
        folder: the run's.
        weights: a checkpoint to take; by default the averaged weights if there are any, else the
            newest checkpoint.
        precision: see `translation_policy`.

    Raises:
        FileNotFoundError: if the folder holds no run, or a run without a checkpoint.
        ValueError: if a file is damaged.
    """
    hyperparameters = folder.read_hyperparameters(sizes_of_description)
    model = model_of(hyperparameters, translation_policy(precision))
    folder.load_weights(model, weights)
    return model, vocabularies.load(folder.path)
