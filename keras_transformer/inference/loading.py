"""Load trained models: from a run's description and weights, and from the path of `--model`.

A task's module builds an untrained model (`build`) and wraps a trained one (`of_model`). Training,
scoring, export and inference all go through these two.

Keras, the models, and the runtimes of exports are imported in the function that needs them:
importing them takes longer than translating a few lines.
"""

import importlib
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence

from keras_transformer.inference.live import Live
from keras_transformer.runs.description import hyperparameters_in, task_of
from keras_transformer.runs.model_path import ModelPath

USES = "Try `translate`, `parse` (parsers), `generate` (language models) or `predict` (any export)."


def load_model(
    path: str | os.PathLike | Sequence[str | os.PathLike], precision: str, options: dict
) -> tuple:
    """Return a `Live`, an `Exported` or a `Portable`, and the description of its (first) run."""
    model, *more = models = ModelPath.listed(path)
    if more or not (model.is_portable or model.version):
        return _load_runs(models, precision, options)
    refuse_precision(model.version or model.path, precision)
    description = model.describe()
    if model.is_portable:
        from keras_transformer.inference.portable import Portable

        # Portable models are translators or language models. `require_sentences` imports all tasks.
        refuse_other_task(description, model.path, "translation")
        return Portable(model.path, options), description
    from keras_transformer.inference.exported import Exported

    if description:
        require_sentences(description, model.version)
    return Exported(model.version, options, description), description


def refuse_precision(version: pathlib.Path, precision: str) -> None:
    """Refuse a precision other than float32 for a SavedModel, whose weights have their own."""
    if precision != "float32":
        raise ValueError(
            f"precision={precision}: {version} was exported with its own precision. Name the "
            "folder of the run, or export it with another (python -m keras_transformer.export)."
        )


def refuse_other_task(
    description: Mapping, path: str | os.PathLike, *tasks: str, remedy: str = USES
) -> None:
    """Refuse a model of another task than `tasks`."""
    if (actual := task_of(description)) not in tasks:
        raise ValueError(
            f"{path} must be a model of the task {' or '.join(tasks)}. Received: one of the task "
            f"{actual}. {remedy}"
        )


def trained_model(build: Callable, run, precision: str = "float32"):
    """Return a run's model, made by `build(description, policy)` of its task, with its weights."""
    from keras_transformer.models import translation_policy

    description = run.read_description()
    policy = translation_policy(precision)
    model = hyperparameters_in(description, run.description, lambda _: build(description, policy))
    run.load_weights(model)
    return model


def load_trained(run, precision: str = "float32") -> tuple:
    """Return the model of a run that has a vocabulary, and the vocabulary."""
    from pipelines import vocabularies

    kind = module_class(run.read_description())
    return trained_model(kind.build, run, precision), vocabularies.load(run.path)


def module_of_run(run, values: Mapping, kind: type | None = None):
    """Return a run's module, of the class `kind` or that of its task. Flags missing in `values` are
    as in training.
    """
    kind = kind or module_class(run.read_description())
    model = trained_model(kind.build, run, values.get("precision", "float32"))
    return kind.of_model(model, run, values)


def _tasks():
    """Import the tasks late: they import this package."""
    return importlib.import_module("keras_transformer.tasks")


def module_class(description):
    """Return the class that wraps the trained models of a run's task."""
    return _tasks().task_class(task_of(description)).module_class


def _load_runs(models, precision, options):
    from keras_transformer.decoding.remembered_options import options_of_run
    from keras_transformer.models import Ensemble

    explicit = {name: value for name, value in options.items() if value is not None}
    for model in models:
        if model.version:
            raise ValueError(
                f"{model.path} is a SavedModel: an ensemble is made of runs' folders or of "
                "checkpoints in them."
            )
    runs = [model.run for model in models]
    descriptions = [run.read_description() for run in runs]
    for model, description in zip(models, descriptions, strict=True):
        require_sentences(description, model.path)
    kind = module_class(descriptions[0])
    defaults = kind.defaults(descriptions[0])
    if len(models) > 1:
        # An ensemble proposes no blocks. The beam of 1 stays, which gives the same.
        defaults.pop("blockwise", None)
    # Before any weights are loaded, so that wrong options are reported at once.
    decoding = options_of_run(explicit, defaults)
    trained = [load_trained(run, precision) for run in runs]
    members = [member for member, _ in trained]
    vocabulary = trained[0][1]
    for model, (_, own_vocabulary) in zip(models, trained, strict=True):
        if own_vocabulary.fingerprint != vocabulary.fingerprint:
            raise ValueError(
                f"{model.path} has another vocabulary than {models[0].path}: models of an ensemble "
                "must share theirs."
            )
    module = kind(Ensemble(members) if len(members) > 1 else members[0], vocabulary, decoding)
    for table in module.tables:
        table.lay_out()
    return Live(module, module.gives_attention), descriptions[0]


def require_sentences(description: Mapping, path: str | os.PathLike, remedy: str = USES) -> None:
    """Refuse a model that does not write a sentence or a tree for each sentence."""
    refuse_other_task(description, path, *_tasks().OF_SENTENCES, remedy=remedy)
