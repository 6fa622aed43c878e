"""A run's folder: the description of a model, its checkpoints and their average (Vaswani et al.
2017, section 6.1).

<model_dir>/model.json        the task and its description of the run: sizes, corpus, ...
<model_dir>/vocabulary.model  SentencePiece's, if the task has a vocabulary; or
                              vocabulary.source.model and vocabulary.target.model
<model_dir>/checkpoints/      whole states: step-*.npz, the last K, to average; last-*.npz, one or
                              two of the newest, to resume from
<model_dir>/averaged.npz      the weights that are scored and served
<model_dir>/adapter.npz       with --lora_rank: the matrices that were learned, for --adapter
<model_dir>/best.npz          with --keep_best: the weights of the best epoch
<model_dir>/history.jsonl     losses and other measures after each epoch
<model_dir>/evaluation.json   the final scores
<model_dir>/cost.json         with --report: operations and time of the training
<model_dir>/examples.json     examples of the test set, with which exports are checked
<model_dir>/logs/             TensorBoard's
"""

import contextlib
import os
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping

import keras
import numpy as np

from keras_transformer.runs.description import COPY, hyperparameters_in, read_description, task_of
from keras_transformer.training import checkpoint
from pipelines.json_files import read_json
from pipelines.whole_files import kept_if_used, lock, write_json

WRITTEN = "Name a folder that `train`, `import_model` or `export` wrote."
AGAIN = "Delete it, and run the command that trained again: it scores again."


class RunFolder:
    """The files of a run. `weights` is a checkpoint to load in place of the newest, `added` another
    run's adapter file, whose product is added to the weights.
    """

    def __init__(
        self,
        path: pathlib.Path | str,
        weights: pathlib.Path | None = None,
        added: pathlib.Path | str | None = None,
    ):
        self._weights = weights
        self._added = added
        # The shell does not expand the ~ of `--model_dir=~/runs/x`.
        self.path = pathlib.Path(os.path.expanduser(path))
        self.description = self.path / "model.json"
        self.checkpoints = self.path / "checkpoints"
        self.averaged = self.path / "averaged.npz"
        self.adapter = self.path / "adapter.npz"
        self.best = self.path / "best.npz"
        self.history = self.path / "history.jsonl"
        self.evaluation = self.path / "evaluation.json"
        self.cost = self.path / "cost.json"
        self.examples = self.path / "examples.json"
        self.logs = self.path / "logs"

    @property
    def is_started(self) -> bool:
        """Whether the run has checkpoints, which another run would spoil."""
        return bool(checkpoint.checkpoints(self.checkpoints))

    def export_dir(self, path: str | None) -> pathlib.Path:
        """Return the folder of exported versions: `path`, or `saved_models/<name of the run>`."""
        return pathlib.Path(path or f"saved_models/{self.path.resolve().name}")

    def refuse_finished(self) -> None:
        """Refuse a folder with a model and no checkpoint: training would overwrite the model."""
        if not self.is_started:
            self._refuse_to_overwrite(f"{self.path} holds a model without checkpoints")
        if (self.path / "preparation.json").exists() and not self.description.exists():
            raise ValueError(
                f"{self.path} holds a prepared corpus, whose vocabulary training would overwrite. "
                "Name another --model_dir."
            )

    def begin(self) -> None:
        """Remove the history of an earlier run before training begins anew. A ValueError says that
        its checkpoints cannot be read, and that training would overwrite its model.
        """
        self._refuse_to_overwrite(f"no checkpoint of {self.path} can be read")
        self.history.unlink(missing_ok=True)

    def _refuse_to_overwrite(self, reason):
        for model in (self.averaged, self.best):
            if model.exists():
                raise ValueError(
                    f"{reason}: training would begin anew and overwrite {model.name}. Name another "
                    f"--model_dir; --init_from={model} starts from it."
                )

    def write_averaged(self, weights: Mapping[str, np.ndarray]) -> None:
        """Write the weights that are scored and served, from the trained arrays by name."""
        if checkpoint.adapters_in(weights):
            checkpoint.write_adapter(self.adapter, weights)
        # The old evaluation goes: an export must not have the scores of other weights.
        arrays = checkpoint.merged(weights)
        checkpoint.write_archive(self.averaged, arrays, outdated=[self.evaluation])

    def describe(
        self, description: Mapping, fixed: Callable[[Mapping], Mapping] = lambda whole: whole
    ) -> list[str]:
        """Write the description of the run. Return the changes of its fixed parts, in words. With
        checkpoints they are refused, except new places of files and folders that were moved.
        """
        before = self.read_description() if self.is_started or self.description.exists() else None
        changes = [] if before is None else [*self._differences(before, description, fixed)]
        now = description
        if self.is_started:
            then = _with_moved(before, description)
            if refused := self._differences(then, description, fixed):
                raise ValueError(
                    f"{self.path} holds another run: {'; '.join(refused)}. Name another "
                    "--model_dir, or delete this one."
                )
            free = description.keys() - fixed(description).keys()
            now = {**then, **{name: description[name] for name in free}}
        if now != before:
            write_json(self.description, now)
        return changes

    def _differences(self, before, description, fixed):
        """Return, as keys, each change of a fixed value in words; two parts may have the same."""
        if task_of(before) != task_of(description):
            return [f"task was {task_of(before)}, now {task_of(description)}"]
        if "hyperparameters" in description:
            # An earlier version may have others, but a run without any is damaged.
            hyperparameters_in(before, self.description, dict)
        was = fixed(before)
        return dict.fromkeys(
            f"{name} was {was.get(part, {}).get(name)}, now {value}"
            for part, values in fixed(description).items()
            if part != "task"
            for name, value in values.items()
            if was.get(part, {}).get(name) != value
        )

    def read_description(self) -> dict:
        """Read what `describe` wrote; a FileNotFoundError says that the folder holds no run."""
        try:
            description = read_description(self.description)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(
                f"{self.path} holds no trained model: there is no {self.description.name} in it. "
                f"{COPY if self.is_started else WRITTEN}"
            ) from None
        # CTranslate2's export has weights of its own format in place of versions.
        if "versions" in description or (self.path / "model.bin").exists():
            raise ValueError(
                f"{self.path} is no run's folder: its {self.description.name} is an export's. Name "
                "the run's, or, if the graph was lost, export the run again."
            )
        return description

    def read_scores(self) -> dict:
        """Read the scores of the last evaluation: {"scores": ...}, or {}."""
        return {"scores": read_json(self.evaluation, AGAIN)} if self.evaluation.exists() else {}

    def read_examples(self) -> list:
        """Read examples of the test set; none if the run was never scored."""
        return read_json(self.examples, AGAIN) if self.examples.exists() else []

    def load_weights(self, model: keras.Model, weights: pathlib.Path | None = None) -> None:
        """Set the weights of a model from a checkpoint, by default from `newest_weights`."""
        checkpoint.load_weights(weights or self.newest_weights(), model, self._added)

    def newest_weights(self) -> pathlib.Path:
        """Return the checkpoint that was named, else the averaged weights, else the newest."""
        if self._weights:
            return self._weights
        if self.averaged.exists():
            return self.averaged
        # Standard output is for a command's results, such as translations.
        weights = checkpoint.read_newest(
            self.checkpoints, lambda line: print(line, file=sys.stderr)
        )[0]
        if weights is None:
            raise FileNotFoundError(f"{self.path} holds no checkpoint. Train, or name its run.")
        return weights


@contextlib.contextmanager
def exclusive(folder: pathlib.Path) -> Iterator[None]:
    """Lock a folder while a block trains in it. A missing folder is made, and removed if the block
    fails before it writes anything.

    The folder itself is locked, so that no lock file stays in it. On a file system without such
    locks, nothing is locked.
    """
    with kept_if_used(folder), contextlib.ExitStack() as locks:
        try:
            lock(folder, locks)
        except BlockingIOError as error:
            raise ValueError(
                f"another process trains in {folder}. Wait for its end, or name another "
                "--model_dir."
            ) from error
        except OSError:
            pass
        yield


def _with_moved(was, now):
    """Return a run's old description, with the new paths of files and folders that were moved."""
    if isinstance(was, dict) and isinstance(now, dict):
        return {name: _with_moved(value, now.get(name)) for name, value in was.items()}
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [_with_moved(*pair) for pair in zip(was, now, strict=True)]
    if not (was and isinstance(was, str) and isinstance(now, str) and os.path.isabs(now)):
        return was
    is_moved = os.path.exists(now) and not os.path.exists(was)
    return now if is_moved or os.path.realpath(was) == now else was
