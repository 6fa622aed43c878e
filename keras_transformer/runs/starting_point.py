"""The weights and the vocabulary that a new run starts from: another run's, or a SavedModel's
(fine-tuning).
"""

import pathlib

import numpy as np

from keras_transformer.runs.folder import RunFolder, run_of
from keras_transformer.saved_models.session import reload
from keras_transformer.saved_models.versions import newest_version
from keras_transformer.training import checkpoint
from pipelines import vocabularies
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.vocabulary import Vocabulary


def starting_point(
    path: pathlib.Path | str,
) -> tuple[dict[str, np.ndarray], Vocabulary | SeparateVocabularies | None]:
    """Read what `--init_from` names.

    Args:
        path: a run's folder, of which the averaged weights are taken if there are any; a
            checkpoint in one; a SavedModel, or a folder of numbered versions of it.

    Returns:
        The weights, arrays by name as `checkpoint.weights_of` gives them; and the vocabulary, None
        if there is none.

    Raises:
        FileNotFoundError: if there is nothing there, or nothing trained.
        ValueError: if it is damaged.
    """
    path = pathlib.Path(path)
    if path.suffix == ".npz":
        return checkpoint.weights_of(path), _vocabulary(run_of(path).path)
    version = _version(path)
    if (version / "saved_model.pb").exists():
        return _weights_of_saved_model(version), _vocabulary(version / "assets.extra")
    folder = RunFolder(path)
    folder.read_description()
    return checkpoint.weights_of(folder.newest_weights()), _vocabulary(folder.path)


def hyperparameters_of(path: pathlib.Path | str) -> dict:
    """Read the hyperparameters of what `--init_from` names, as `starting_point` finds it.

    Returns:
        Values by name; {} if it does not say them.

    Raises:
        ValueError: if its description is damaged.
    """
    path = pathlib.Path(path)
    if path.suffix == ".npz":
        folder = run_of(path)
    else:
        version = _version(path)
        # A SavedModel has its model.json beside it, as a run has.
        folder = RunFolder(version if (version / "saved_model.pb").exists() else path)
    try:
        return folder.read_description().get("hyperparameters") or {}
    except FileNotFoundError:
        return {}


def _version(path):
    """The SavedModel that a path may lead to."""
    return path if (path / "saved_model.pb").exists() else newest_version(path) or path


def _vocabulary(folder):
    return vocabularies.load(folder) if vocabularies.exist(folder) else None


def _weights_of_saved_model(version):
    return {
        checkpoint.WEIGHTS + variable.name.removesuffix(":0"): variable.numpy()
        for variable in reload(version).weights
    }
