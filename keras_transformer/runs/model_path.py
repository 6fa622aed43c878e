"""What `--model` and `--init_from` may name: a run's folder, a checkpoint in one, a SavedModel,
graphs of ONNX or LiteRT, or a folder of numbered versions of these. Only this file tells them
apart.

Keras and the runtime of SavedModels are imported where they are needed: importing them takes longer
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
    """Return the folder of portable graphs at a path, or its newest version, else None."""
    path = pathlib.Path(os.path.expanduser(path))
    newest = path if portable_format(path) else newest_version(path)
    return newest if newest and portable_format(newest) else None


def refuse_graphs(path: str | os.PathLike) -> None:
    """Refuse a folder of portable graphs where a model is needed."""
    if graphs := portable_folder(path):
        raise ValueError(
            f"{graphs} has only graphs, which give no weights or attention. Name the folder of the "
            "run."
        )


@dataclasses.dataclass(frozen=True)
class ModelPath:
    """A path to a model. `version` is the folder of the newest version of a SavedModel, None for
    other models; `is_portable` says whether it is a folder of graphs that need no TensorFlow.
    """

    path: pathlib.Path
    version: pathlib.Path | None
    is_portable: bool = False

    @classmethod
    def of(cls, path: str | os.PathLike) -> "ModelPath":
        """Find out what is at a path; a FileNotFoundError says that nothing is."""
        if not isinstance(path, str | os.PathLike):
            raise ValueError(f"`path` must be a path or a list of paths. Received: {path!r:.80}.")
        # The shell does not expand the ~ of `--model=~/runs/x`.
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
        """Read one or several paths: a list, or a string with commas."""
        paths = path.split(",") if isinstance(path, str) else path
        if paths in ([], ()):
            raise FileNotFoundError("there is no model in an empty list. Name one at least.")
        return [*map(cls.of, paths if isinstance(paths, list | tuple) else [paths])]

    @classmethod
    def exported(cls, path: str | os.PathLike) -> "ModelPath":
        """Read a path that has to be a SavedModel's; refuse a run's folder."""
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
        """The `RunFolder`; for a checkpoint, the folder it lies in, with its weights."""
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
        """Read the `model.json` of the run, or that beside the graph; {} if there is none."""
        if self.version is None and not self.is_portable:
            return self.run.read_description()
        path = (self.version or self.path) / "model.json"
        return read_description(path) if path.exists() else {}


def description_of(path: str | os.PathLike | Sequence[str | os.PathLike]) -> dict:
    """Read the `model.json` of a model, or of the first of several: see `ModelPath.describe`."""
    return ModelPath.listed(path)[0].describe()


def weights_of_runs(path: str | os.PathLike | Sequence[str | os.PathLike]) -> list[str]:
    """Return a digest of the weights of each run, which more training changes. Exported versions,
    which never change, have none.
    """
    digests = []
    for model in ModelPath.listed(path):
        if not (model.version or model.is_portable):
            with open(model.run.newest_weights(), "rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return digests


def starting_point(path: pathlib.Path | str) -> tuple:
    """Return the weights of the model that `--init_from` names, as `checkpoint.weights_of` does (of
    a run, the averaged ones if there are any), and its vocabulary, None if it has none.
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


def vocabulary_at(path: pathlib.Path | str):
    """Load the vocabulary of the model that `--init_from` names; None if it has none."""
    from pipelines import vocabularies

    model = ModelPath.of(path)
    folder = model.version / "assets.extra" if model.version else model.run.path
    return vocabularies.load(folder) if vocabularies.exist(folder) else None
