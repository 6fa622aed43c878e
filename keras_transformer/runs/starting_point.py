"""What a new run starts from: weights and vocabulary of another run or of a SavedModel
(fine-tuning).
"""

import pathlib

import numpy as np

from keras_transformer.runs.model_path import ModelPath
from keras_transformer.saved_models.session import reload
from keras_transformer.training import checkpoint
from pipelines import vocabularies
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.vocabulary import Vocabulary


def starting_point(
    path: pathlib.Path | str,
) -> tuple[dict[str, np.ndarray], Vocabulary | SeparateVocabularies | None]:
    """The weights of what `--init_from` names, as `checkpoint.weights_of` gives them (of a run the
    averaged ones if there are any), and its vocabulary, None if it has none.
    """
    model = ModelPath.of(path)
    if model.version:
        weights = {
            checkpoint.WEIGHTS + variable.name.removesuffix(":0"): variable.numpy()
            for variable in reload(model.version).weights
        }
        return weights, _vocabulary(model.version / "assets.extra")
    run = model.run
    run.read_description()
    return checkpoint.weights_of(run.newest_weights()), _vocabulary(run.path)


def hyperparameters_of(path: pathlib.Path | str) -> dict:
    """The hyperparameters of what `--init_from` names, by name; {} if it does not say them."""
    try:
        return ModelPath.of(path).describe().get("hyperparameters") or {}
    except FileNotFoundError:
        return {}


def _vocabulary(folder):
    return vocabularies.load(folder) if vocabularies.exist(folder) else None
