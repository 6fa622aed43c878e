"""From a run's description and weights to its model, and what `--model` names to what answers.

A task's module builds the model (`build`) and is made of a trained one (`of_model`): training,
scoring, export and the commands that only ask a model go through these two.

Keras, the models, and what runs a SavedModel are imported by the one function that needs them:
importing them takes longer than translating a few lines.
"""

import importlib
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence

from keras_transformer.inference.live import Live
from keras_transformer.runs.description import hyperparameters_in, task_of
from keras_transformer.runs.model_path import ModelPath


def load_model(
    path: str | os.PathLike | Sequence[str | os.PathLike], precision: str, options: dict
) -> tuple:
    """A `Live`, an `Exported` or a `Portable`, and the description of its (first) run."""
    model, *others = models = ModelPath.listed(path)
    if others or not (model.is_portable or model.version):
        return _load_runs(models, precision, options)
    refuse_precision(model.version or model.path, precision)
    description = model.describe()
    if model.is_portable:
        from keras_transformer.inference.portable import Portable

        # Only translators and language models are portable. Asking for the tasks imports them all.
        refuse_other_task(description, model.path, "translation")
        return Portable(model.path, options), description
    from keras_transformer.inference.exported import Exported

    if description:
        require_sentences(description, model.version)
    return Exported(model.version, options, description), description


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


def trained_model(build: Callable, run, precision: str = "float32"):
    """The model of a run with its weights, as `build(description, policy)` of its task makes it."""
    from keras_transformer.models import translation_policy

    description = run.read_description()
    policy = translation_policy(precision)
    model = hyperparameters_in(description, run.description, lambda _: build(description, policy))
    run.load_weights(model)
    return model


def load_trained(run, precision: str = "float32") -> tuple:
    """The model of a run that has a vocabulary, and the vocabulary."""
    from pipelines import vocabularies

    kind = module_class(run.read_description())
    return trained_model(kind.build, run, precision), vocabularies.load(run.path)


def module_of_run(run, values: Mapping, kind: type | None = None):
    """The module of a run, of a kind or of the task of this package that it says; missing flags are
    as in its training.
    """
    kind = kind or module_class(run.read_description())
    model = trained_model(kind.build, run, values.get("precision", "float32"))
    return kind.of_model(model, run, values)


def _tasks():
    """The package of the tasks, which this room stands below."""
    return importlib.import_module("keras_transformer.tasks")


def module_class(description):
    """What is exported of the models of a run's task."""
    return _tasks().module_class(task_of(description))


def _load_runs(models, precision, options):
    from keras_transformer.decoding.remembered_options import options_of_run
    from keras_transformer.models import Ensemble

    given = {name: value for name, value in options.items() if value is not None}
    for one in models:
        if one.version:
            raise ValueError(
                f"{one.path} is a SavedModel: an ensemble is made of runs' folders or of "
                "checkpoints in them."
            )
    runs = [one.run for one in models]
    descriptions = [run.read_description() for run in runs]
    for model, description in zip(models, descriptions, strict=True):
        require_sentences(description, model.path)
    kind = module_class(descriptions[0])
    # Wrong options are reported before any weights are loaded.
    of_run = options_of_run(given, kind.defaults(descriptions[0]))
    trained = [load_trained(run, precision) for run in runs]
    model, vocabulary = trained[0]
    for one, (_, another) in zip(models, trained, strict=True):
        if another.fingerprint != vocabulary.fingerprint:
            raise ValueError(
                f"{one.path} has another vocabulary than {models[0].path}: models of an ensemble "
                "must share theirs."
            )
    model = Ensemble([model for model, _ in trained]) if len(trained) > 1 else model
    module = kind(model, vocabulary, of_run)
    for table in module.tables:
        table.lay_out()
    return Live(module, module.gives_attention), descriptions[0]


def require_sentences(description: Mapping, said: str | os.PathLike, remedy: str = "") -> None:
    """Refuse a model that makes no sentence or tree of each sentence; `said` names it."""
    task = task_of(description)
    if task not in (tasks := _tasks().OF_SENTENCES):
        remedy = remedy or (
            "Language models continue text (python -m keras_transformer.generate); exports of the "
            "others are asked by python -m keras_transformer.predict."
        )
        raise ValueError(
            f"{said} must be a model of one of the tasks {', '.join(tasks)}. Received: one of the "
            f"task {task}. {remedy}"
        )
