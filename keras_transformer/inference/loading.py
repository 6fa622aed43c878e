"""What `--model` may name, and how it is loaded: a run's folder, a checkpoint in one, several of
them as an ensemble, or a SavedModel.
"""

import os
import pathlib
from collections.abc import Mapping, Sequence

from keras_transformer.inference.live import Live
from keras_transformer.runs.description import read_description
from keras_transformer.saved_models.versions import newest_version

# Tasks whose models make a sentence or a tree of each sentence.
OF_SENTENCES = ("translation", "parsing")

# Keras, the models, and what runs a SavedModel are imported by the one function that needs them:
# importing them takes longer than translating a few lines.


def load_model(
    path: str | os.PathLike | Sequence[str | os.PathLike], precision: str, options: dict
) -> tuple:
    """Load what was trained or exported.

    Args:
        path, precision: see `Translator.load`.
        options: arguments of `DecodingOptions`; None: the default.

    Returns:
        A `Live` or an `Exported`, and the description of its (first) run.

    Raises:
        FileNotFoundError: if there is no model.
        ValueError: if it is damaged, models of one ensemble do not fit together, or a SavedModel
            does not take an option.
    """
    paths = [pathlib.Path(one) for one in _listed(path)]
    if len(paths) == 1 and (version := saved_model(paths[0])):
        return _load_saved_model(version, precision, options)
    return _load_runs(paths, precision, options)


def description_of(path: str | os.PathLike | Sequence[str | os.PathLike]) -> dict:
    """What a model is: the `model.json` of its (first) run, or that beside a SavedModel.

    Args:
        path: see `Translator.load`.

    Returns:
        {} of a SavedModel that another program exported.

    Raises:
        FileNotFoundError: if there is no model.
        ValueError: if the file is damaged.
    """
    first = pathlib.Path(_listed(path)[0])
    if version := saved_model(first):
        return read_card(version)
    return _folder_of(first).read_description()


def saved_model(path: pathlib.Path) -> pathlib.Path | None:
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
    return newest_version(path)


def exported_model(path: str | os.PathLike) -> pathlib.Path:
    """The folder of a SavedModel, as `saved_model` finds it.

    Raises:
        FileNotFoundError: if nothing is there.
        ValueError: if it is a run's folder, which has to be exported.
    """
    version = saved_model(pathlib.Path(path))
    if version is None:
        raise ValueError(
            f"{path} is no SavedModel. Export the run: python -m keras_transformer.export "
            f"--model_dir={path}."
        )
    return version


def refuse_precision(version: pathlib.Path, precision: str) -> None:
    """Refuse a precision for the weights of a SavedModel."""
    if precision != "float32":
        raise ValueError(
            f"precision={precision}: {version} was exported with its own precision. Name the "
            "folder of the run, or export it with another (python -m keras_transformer.export)."
        )


def _listed(path):
    if isinstance(path, str):
        return path.split(",")
    return path if isinstance(path, list | tuple) else [path]


def _load_saved_model(version, precision, options):
    from keras_transformer.inference.exported import Exported

    refuse_precision(version, precision)
    description = read_card(version)
    if description:
        _require_sentences(description, version)
    return Exported(version, options, description), description


def read_card(version: pathlib.Path) -> dict:
    """The `model.json` of a SavedModel; {} where another program exported it.

    Raises:
        ValueError: if it is damaged.
    """
    path = version / "model.json"
    return read_description(path) if path.exists() else {}


def _load_runs(paths, precision, options):
    from keras_transformer.models import Ensemble

    given = {name: value for name, value in options.items() if value is not None}
    described = [(one, *_described_run(one)) for one in paths]
    # Wrong options are reported before any weights are loaded.
    _options_of(described[0][2], paths[0], given)
    loaded = [_load_run(*one, precision) for one in described]
    model, vocabulary, description = loaded[0]
    for one, (_, another, _) in zip(paths, loaded, strict=True):
        if another.fingerprint != vocabulary.fingerprint:
            raise ValueError(
                f"{one} has another vocabulary than {paths[0]}: models of an ensemble must share "
                "theirs."
            )
    model = Ensemble([model for model, _, _ in loaded]) if len(loaded) > 1 else model
    module = module_of(model, vocabulary, description, paths[0], given)
    return Live(module, module.gives_attention), description


def module_of(model, vocabulary, description: Mapping, path: str | os.PathLike, options: dict):
    """What makes strings of strings with a loaded model.

    Args:
        model: a Keras model, or an `Ensemble`.
        vocabulary: the run's.
        description: the run's `model.json`.
        path: where it lies, for errors.
        options: arguments of `DecodingOptions`; what is missing is what the run was trained with.

    Returns:
        A `TranslationModule` or a `ParsingModule`.

    Raises:
        ValueError: for options out of range, and for a run of a task without strings.
    """
    options = _options_of(description, path, options)
    return _module_class(description, path)(model, vocabulary, options)


def _options_of(description, path, given):
    """The `DecodingOptions` of a run: those that are given, else what it was trained with."""
    from keras_transformer.decoding.options import options_of_run

    return options_of_run(given, _module_class(description, path).defaults(description))


def _module_class(description, path):
    """What makes strings of strings in a run's task; refuse a task without strings."""
    from keras_transformer.inference.parsing_module import ParsingModule
    from keras_transformer.inference.translation_module import TranslationModule

    classes = {"translation": TranslationModule, "parsing": ParsingModule}
    return classes[_require_sentences(description, path)]


def _require_sentences(description, path):
    """The task of a model that makes something of sentences; refuse another."""
    from keras_transformer.runs.task_name import task_of

    task = task_of(description)
    if task not in OF_SENTENCES:
        raise ValueError(
            f"{path} must be a model of one of the tasks {', '.join(OF_SENTENCES)}. Received: one "
            f"of the task {task}. Language models continue text (python -m "
            "keras_transformer.generate); exports of the others are asked by python -m "
            "keras_transformer.predict."
        )
    return task


def _load_run(path, folder, description, precision):
    """Model, vocabulary and description of a run's folder or a checkpoint in one."""
    from keras_transformer.inference.trained import load_trained

    weights = path if path.suffix == ".npz" else None
    return (*load_trained(folder, weights, precision), description)


def _described_run(path):
    """The folder of a run, or of a checkpoint in one, and its description; refuse another model."""
    if saved_model(path):
        raise ValueError(
            f"{path} is a SavedModel: an ensemble is made of runs' folders or of checkpoints in "
            "them."
        )
    folder = _folder_of(path)
    description = folder.read_description()
    _module_class(description, path)
    return folder, description


def _folder_of(path):
    """The `RunFolder` that a path names, or that a checkpoint lies in."""
    from keras_transformer.runs.folder import RunFolder, run_of

    return run_of(path) if path.suffix == ".npz" else RunFolder(path)
