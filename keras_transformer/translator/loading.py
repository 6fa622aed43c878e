"""What `--model` may name, and how it is loaded: a run's folder, a checkpoint in one, several of
them as an ensemble, or a SavedModel.
"""

import pathlib

from keras_transformer.decoding import DecodingOptions
from keras_transformer.models import Ensemble
from keras_transformer.runs.folder import RunFolder, run_of
from keras_transformer.runs.session import reload
from keras_transformer.runs.versions import newest_version
from keras_transformer.translator.translation_module import TranslationModule


def load_module(path, options, precision="float32"):
    """Load what was trained or exported.

    Args:
        path: see `Translator.load`.
        options: arguments of `DecodingOptions`.
        precision: "float32" or "bfloat16", of the weights.

    Returns:
        A `TranslationModule`, live or reloaded, and the description of its (first) run.

    Raises:
        FileNotFoundError: if there is no model.
        ValueError: if it is damaged, models of one ensemble do not fit together, or a SavedModel is
            asked for other options.
    """
    paths = [
        pathlib.Path(one)
        for one in (
            path.split(",")
            if isinstance(path, str)
            else path
            if isinstance(path, list | tuple)
            else [path]
        )
    ]
    options = DecodingOptions(**options)
    if len(paths) == 1 and (version := saved_model(paths[0])):
        if options != DecodingOptions() or precision != "float32":
            raise ValueError(
                f"{version} was exported with its own way to decode and its own precision: name "
                "the folder of the run, or export it with "
                "other options (python -m keras_transformer.export)."
            )
        return reload(version), RunFolder(version).read_description()
    loaded = [_load_run(one, precision) for one in paths]
    model, vocabulary, description = loaded[0]
    for one, (_, another, _) in zip(paths, loaded, strict=True):
        if another.fingerprint != vocabulary.fingerprint:
            raise ValueError(
                f"{one} has another vocabulary than {paths[0]}: models of an ensemble must share "
                "theirs."
            )
    model = Ensemble([model for model, _, _ in loaded]) if len(loaded) > 1 else model
    return TranslationModule(model, vocabulary, options), description


def saved_model(path):
    """The folder of a SavedModel, the newest of its versions; None where a run's folder or a
    checkpoint lies.

    Raises:
        FileNotFoundError: if nothing is there.
    """
    if not path.exists():
        raise FileNotFoundError(
            f"there is no model at {path}: neither a run's folder nor a SavedModel."
        )
    if (path / "saved_model.pb").exists():
        return path
    version = newest_version(path)
    return path / str(version) if version else None


def _load_run(path, precision):
    """Model, vocabulary and description of a run's folder or a checkpoint in one."""
    if saved_model(path):
        raise ValueError(
            f"{path} is a SavedModel: an ensemble is made of runs' folders or of checkpoints in "
            "them."
        )
    folder, weights = (run_of(path), path) if path.suffix == ".npz" else (RunFolder(path), None)
    return (*folder.load(weights, precision), folder.read_description())
