"""The weights and the vocabulary that a new run starts from: another run's, or a SavedModel's
(fine-tuning).
"""

import pathlib

from keras_transformer.runs.folder import RunFolder, run_of
from keras_transformer.runs.session import reload
from keras_transformer.runs.versions import newest_version
from keras_transformer.training import checkpoint
from pipelines.vocabulary import Vocabulary


def starting_point(path):
    """Read what `--init_from` names.

    Args:
        path: a run's folder, of which the averaged weights are taken where there are any; a
            checkpoint in one; a SavedModel, or a folder of numbered versions of it.

    Returns:
        The weights, arrays by name as `checkpoint.weights_of` gives them, and the `Vocabulary`.

    Raises:
        FileNotFoundError: if there is nothing there, or nothing trained.
        ValueError: if it is damaged, or an export that came without its vocabulary.
    """
    path = pathlib.Path(path)
    if path.suffix == ".npz":
        return checkpoint.weights_of(path), Vocabulary.load(run_of(path).vocabulary)
    version = path if (path / "saved_model.pb").exists() else path / str(newest_version(path))
    if (version / "saved_model.pb").exists():
        return _of_saved_model(version)
    folder = RunFolder(path)
    folder.read_description()
    return checkpoint.weights_of(folder.newest_weights()), Vocabulary.load(folder.vocabulary)


def _of_saved_model(version):
    vocabulary = version / "assets.extra" / "vocabulary.model"
    if not vocabulary.exists():
        raise ValueError(f"{version} has no {vocabulary.relative_to(version)}: name the folder "
                         "of its run.")
    weights = {variable.name.removesuffix(":0"): variable.numpy() for variable in reload(version).weights}
    return {checkpoint.WEIGHTS + name: array for name, array in weights.items()}, Vocabulary.load(vocabulary)
