"""How the model that `--model` names is loaded.

Keras, the models, and what runs a SavedModel are imported by the one function that needs them:
importing them takes longer than translating a few lines. A task's module is found by the task's
name: this room stands below the tasks.
"""

import importlib
import os
import pathlib
from collections.abc import Mapping, Sequence

from keras_transformer.inference.live import Live
from keras_transformer.runs.description import task_of
from keras_transformer.runs.model_path import ModelPath

# Tasks whose models make a sentence or a tree of each sentence.
OF_SENTENCES = ("translation", "parsing")


def load_model(
    path: str | os.PathLike | Sequence[str | os.PathLike], precision: str, options: dict
) -> tuple:
    """A `Live` or an `Exported`, which makes sentences of sentences, and the description of its
    (first) run.
    """
    models = ModelPath.listed(path)
    if len(models) == 1 and models[0].version:
        return _load_saved_model(models[0], precision, options)
    return _load_runs(models, precision, options)


def refuse_precision(version: pathlib.Path, precision: str) -> None:
    """Refuse a precision for the weights of a SavedModel."""
    if precision != "float32":
        raise ValueError(
            f"precision={precision}: {version} was exported with its own precision. Name the "
            "folder of the run, or export it with another (python -m keras_transformer.export)."
        )


def refuse_other_task(description: Mapping, path: str | os.PathLike, task: str) -> None:
    """Refuse a model of another task than the one of a name."""
    if (other := task_of(description)) != task:
        raise ValueError(
            f"{path} must be a model of the task {task}, trained by --task={task}. Received: one "
            f"of the task {other}."
        )


def module_class(task: str) -> type:
    """The module of a task of this package: what is exported of its models."""
    return importlib.import_module("keras_transformer.tasks").module_class(task)


def module_of_run(run, task: str, precision: str = "float32", options: Mapping | None = None):
    """The module of a run of a task, with weights of a precision and options of decoding."""
    refuse_other_task(run.read_description(), run.path, task)
    return module_class(task).of_run(run, precision, options or {})


def load_trained(run, precision: str = "float32") -> tuple:
    """The `EncoderDecoder` of a run and its vocabulary."""
    from keras_transformer.models import model_of, sizes_of_description, translation_policy
    from pipelines import vocabularies

    hyperparameters = run.read_hyperparameters(sizes_of_description)
    model = model_of(hyperparameters, translation_policy(precision))
    run.load_weights(model)
    return model, vocabularies.load(run.path)


def module_of(model, vocabulary, description: Mapping, path: str | os.PathLike, options: dict):
    """The `TranslationModule` or `ParsingModule` of a loaded model or `Ensemble`; missing options
    of decoding are those that the run was trained with.
    """
    options = _options_of(description, path, options)
    return module_class(_require_sentences(description, path))(model, vocabulary, options)


def _load_saved_model(model, precision, options):
    from keras_transformer.inference.exported import Exported

    refuse_precision(model.version, precision)
    description = model.describe()
    if description:
        _require_sentences(description, model.version)
    return Exported(model.version, options, description), description


def _load_runs(models, precision, options):
    from keras_transformer.models import Ensemble

    given = {name: value for name, value in options.items() if value is not None}
    runs = [_run_of(one) for one in models]
    descriptions = [run.read_description() for run in runs]
    for model, description in zip(models, descriptions, strict=True):
        _require_sentences(description, model.path)
    # Wrong options are reported before any weights are loaded.
    _options_of(descriptions[0], models[0].path, given)
    trained = [load_trained(run, precision) for run in runs]
    model, vocabulary = trained[0]
    for one, (_, another) in zip(models, trained, strict=True):
        if another.fingerprint != vocabulary.fingerprint:
            raise ValueError(
                f"{one.path} has another vocabulary than {models[0].path}: models of an ensemble "
                "must share theirs."
            )
    model = Ensemble([model for model, _ in trained]) if len(trained) > 1 else model
    module = module_of(model, vocabulary, descriptions[0], models[0].path, given)
    return Live(module, module.gives_attention), descriptions[0]


def _run_of(model):
    if model.version:
        raise ValueError(
            f"{model.path} is a SavedModel: an ensemble is made of runs' folders or of checkpoints "
            "in them."
        )
    return model.run


def _options_of(description, path, given):
    """The `DecodingOptions` of a run: those that are given, else what it was trained with."""
    from keras_transformer.decoding.options import options_of_run

    task = _require_sentences(description, path)
    return options_of_run(given, module_class(task).defaults(description))


def _require_sentences(description, path):
    """The task of a model that makes something of sentences; refuse another."""
    task = task_of(description)
    if task not in OF_SENTENCES:
        raise ValueError(
            f"{path} must be a model of one of the tasks {', '.join(OF_SENTENCES)}. Received: one "
            f"of the task {task}. Language models continue text (python -m "
            "keras_transformer.generate); exports of the others are asked by python -m "
            "keras_transformer.predict."
        )
    return task
