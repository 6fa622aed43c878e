"""What `--model` and `--init_from` may name: a run's folder, a checkpoint in one, a SavedModel,
graphs of ONNX or LiteRT, or a folder of numbered versions of these. Nothing else decides which of
these a path is.

Keras and what runs a SavedModel are imported where they are needed: importing them takes longer
than translating a few lines.
"""

import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Sequence

from keras_transformer.runs.description import read_description
from keras_transformer.saved_models.versions import GRAPH, newest_version, portable_format

CHECKPOINT = ".npz"


def portable_folder(path: str | os.PathLike) -> pathlib.Path | None:
    """The folder of portable graphs at a path, or its newest version if that has such, or None."""
    path = pathlib.Path(os.path.expanduser(path))
    newest = path if portable_format(path) else newest_version(path)
    return newest if newest and portable_format(newest) else None


def refuse_graphs(path: str | os.PathLike) -> None:
    """Refuse a folder of portable graphs where a model is needed."""
    if graphs := portable_folder(path):
        raise ValueError(
            f"{graphs} has graphs, which answer alone and give no weights or attention. Name "
            "the folder of the run."
        )


@dataclasses.dataclass(frozen=True)
class ModelPath:
    """What a path leads to: the newest version of a SavedModel, None of others; `is_portable` says
    whether it is a folder of graphs that need no TensorFlow.
    """

    path: pathlib.Path
    version: pathlib.Path | None
    is_portable: bool = False

    @classmethod
    def of(cls, path: str | os.PathLike) -> "ModelPath":
        """Find out what a path is; a FileNotFoundError says that nothing is there."""
        if not isinstance(path, str | os.PathLike):
            raise ValueError(f"`path` must be a path or a list of paths. Received: {path!r:.80}.")
        # Of `--model=~/runs/x` the shell leaves the ~.
        path = pathlib.Path(os.path.expanduser(path))
        if not path.exists():
            raise FileNotFoundError(
                f"there is no model at {path}: neither a run's folder nor a SavedModel."
            )
        if graphs := portable_folder(path):
            return cls(graphs, None, is_portable=True)
        return cls(path, path if (path / GRAPH).exists() else newest_version(path))

    @classmethod
    def listed(cls, path: str | os.PathLike | Sequence[str | os.PathLike]) -> "list[ModelPath]":
        """One or several paths: a list, or a string with commas."""
        paths = path.split(",") if isinstance(path, str) else path
        if paths in ([], ()):
            raise FileNotFoundError("there is no model in an empty list. Name one at least.")
        return [cls.of(one) for one in (paths if isinstance(paths, list | tuple) else [paths])]

    @classmethod
    def exported(cls, path: str | os.PathLike) -> "ModelPath":
        """A path that has to be a SavedModel's; a run's folder is refused."""
        model = cls.of(path)
        if model.version is None:
            model.run.read_description()
            raise ValueError(
                f"{path} is no SavedModel. Export the run: python -m keras_transformer.export "
                f"--model_dir={model.run.path}."
            )
        return model

    @property
    def run(self):
        """The `RunFolder`; of a checkpoint, that which it lies in, and whose weights it is."""
        refuse_graphs(self.path)
        from keras_transformer.runs.folder import RunFolder

        if self.path.suffix != CHECKPOINT:
            return RunFolder(self.path)
        for parent in self.path.parents[:2]:
            if RunFolder(parent).description.exists():
                return RunFolder(parent, self.path)
        raise FileNotFoundError(
            f"{self.path} lies in no run's folder: its model.json is missing. Name the folder of "
            "the run."
        )

    def describe(self) -> dict:
        """The `model.json` of the run or beside the SavedModel; {} of another program's."""
        if self.version is None and not self.is_portable:
            return self.run.read_description()
        path = (self.version or self.path) / "model.json"
        return read_description(path) if path.exists() else {}


def description_of(path: str | os.PathLike | Sequence[str | os.PathLike]) -> dict:
    """The `model.json` of a model, or of the first of several: see `ModelPath.describe`."""
    return ModelPath.listed(path)[0].describe()


def weights_of_runs(path: str | os.PathLike | Sequence[str | os.PathLike]) -> list[str]:
    """The digests of the weights of a run, or of several, which more training changes; an exported
    version is never changed, and has none.
    """
    models = [one for one in ModelPath.listed(path) if not (one.version or one.is_portable)]
    digests = []
    for one in models:
        with open(one.run.newest_weights(), "rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return digests


def starting_point(path: pathlib.Path | str) -> tuple:
    """The weights of what `--init_from` names, as `checkpoint.weights_of` gives them (of a run the
    averaged ones if there are any), and its vocabulary, None if it has none.
    """
    from keras_transformer.saved_models.session import reload
    from keras_transformer.training import checkpoint

    model = ModelPath.of(path)
    if model.version:
        weights = {
            checkpoint.WEIGHTS + variable.name.removesuffix(":0"): variable.numpy()
            for variable in reload(model.version).weights
        }
        return weights, vocabulary_at(path)
    run = model.run
    run.read_description()
    return checkpoint.weights_of(run.newest_weights()), vocabulary_at(path)


def hyperparameters_of(path: pathlib.Path | str) -> dict:
    """The hyperparameters of what `--init_from` names, by name; {} if it does not say them."""
    return ModelPath.of(path).describe().get("hyperparameters") or {}


def vocabulary_at(path: pathlib.Path | str):
    """The vocabulary of what `--init_from` names; None if it has none."""
    from pipelines import vocabularies

    model = ModelPath.of(path)
    folder = model.version / "assets.extra" if model.version else model.run.path
    return vocabularies.load(folder) if vocabularies.exist(folder) else None
