"""A run's folder: what a model is, its checkpoints and their average (Vaswani et al. 2017, section
6.1).

<model_dir>/model.json        the task and what it says of the run: sizes, corpus, ...
<model_dir>/vocabulary.model  SentencePiece, of a task that has a vocabulary; or
                              vocabulary.source.model and vocabulary.target.model
<model_dir>/checkpoints/      whole states: step-*.npz, the last K, to average; last-*.npz, one or
                              two of the newest, to resume from
<model_dir>/averaged.npz      the weights that are scored and served
<model_dir>/adapter.npz       with --lora_rank: what was learned of them, which --adapter adds
<model_dir>/best.npz          those of the best epoch, with --keep_best
<model_dir>/history.jsonl     losses and other measures after each epoch
<model_dir>/evaluation.json   the final scores
<model_dir>/cost.json         operations and time of the training, with --report
<model_dir>/examples.json     of the test set; exports are checked with them
<model_dir>/logs/             TensorBoard's
"""

import contextlib
import os
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping

import keras
import numpy as np

from keras_transformer.runs.description import hyperparameters_in, read_description, task_of
from keras_transformer.training import checkpoint
from pipelines.json_files import read_json
from pipelines.whole_files import kept_if_used, lock, write_json

AGAIN = "Delete it, and run the command that trained again: it scores again."


class RunFolder:
    """The paths of a run, and what is read from them; `weights` is a checkpoint to take in place of
    the newest, `added` the file of an adapter of another run.
    """

    def __init__(
        self,
        path: pathlib.Path | str,
        weights: pathlib.Path | None = None,
        added: pathlib.Path | str | None = None,
    ):
        self._weights = weights
        self._added = added
        # Of `--model_dir=~/runs/x` the shell leaves the ~.
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
        """Whether the run has saved anything that another run would spoil."""
        return bool(checkpoint.checkpoints(self.checkpoints))

    def export_dir(self, path: str | None) -> pathlib.Path:
        """The folder of the exported versions: `path`, or `saved_models/<name of the run>`."""
        return pathlib.Path(path or f"saved_models/{self.path.resolve().name}")

    def refuse_finished(self) -> None:
        """Refuse to begin where a model lies without a checkpoint: it would be overwritten."""
        if not self.is_started:
            self._refuse_to_overwrite(f"{self.path} holds a model without checkpoints")
        if (self.path / "preparation.json").exists() and not self.description.exists():
            raise ValueError(
                f"{self.path} holds a prepared corpus, whose vocabulary training would overwrite. "
                "Name another --model_dir."
            )

    def begin(self) -> None:
        """Remove what a run measured whose checkpoints are gone, before training begins anew. Where
        checkpoints are there and none can be read, training would overwrite a model: a ValueError.
        """
        self._refuse_to_overwrite(f"no checkpoint of {self.path} can be read")
        self.history.unlink(missing_ok=True)

    def _refuse_to_overwrite(self, why):
        for model in (self.averaged, self.best):
            if model.exists():
                raise ValueError(
                    f"{why}: training would begin anew and overwrite {model.name}. Name another "
                    f"--model_dir; --init_from={model} starts from it."
                )

    def write_averaged(self, weights: Mapping[str, np.ndarray]) -> None:
        """Write the weights that are scored and served, arrays by name as they are trained."""
        if checkpoint.adapters_in(weights):
            checkpoint.write_adapter(self.adapter, weights)
        # Scores of other weights must not go into an export.
        arrays = checkpoint.merged(weights)
        checkpoint.write_archive(self.averaged, arrays, outdated=[self.evaluation])

    def describe(
        self, description: Mapping, fixed: Callable[[Mapping], Mapping] = lambda whole: whole
    ) -> list[str]:
        """Write what the run is. Fixed parts that change are told; with checkpoints, refused, but
        for files and folders that were moved.
        """
        before = self.read_description() if self.is_started or self.description.exists() else None
        told = [] if before is None else [*self._differences(before, description, fixed)]
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
        return told

    def _differences(self, before, description, fixed):
        """Each fixed value that is not what it was, in words; two parts may have the same."""
        if task_of(before) != task_of(description):
            return [f"task was {task_of(before)}, now {task_of(description)}"]
        if "hyperparameters" in description:
            # Those of an earlier version may be others; a run without any is damaged.
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
                "Name a folder that `train` or `export` wrote."
            ) from None
        if "versions" in description:
            raise ValueError(
                f"{self.path} is no run's folder: its {self.description.name} is an export's. Name "
                "the run's, or, if the graph was lost, export the run again."
            )
        return description

    def read_scores(self) -> dict:
        """{"scores": ...} of the last evaluation, or {}."""
        return {"scores": read_json(self.evaluation, AGAIN)} if self.evaluation.exists() else {}

    def read_examples(self) -> list:
        """Examples of the test set; none if the run was never scored."""
        return read_json(self.examples, AGAIN) if self.examples.exists() else []

    def load_weights(self, model: keras.Model, weights: pathlib.Path | None = None) -> None:
        """Set the weights of a model from a checkpoint, by default from `newest_weights`."""
        checkpoint.load_weights(weights or self.newest_weights(), model, self._added)

    def newest_weights(self) -> pathlib.Path:
        """The checkpoint that was named, the averaged weights, or the newest that can be read."""
        if self._weights:
            return self._weights
        if self.averaged.exists():
            return self.averaged
        # Standard output is what a command gives, such as translations.
        weights = checkpoint.read_newest(
            self.checkpoints, lambda line: print(line, file=sys.stderr)
        )[0]
        if weights is None:
            raise FileNotFoundError(f"{self.path} holds no checkpoint. Train, or name its run.")
        return weights


@contextlib.contextmanager
def exclusive(folder: pathlib.Path) -> Iterator[None]:
    """Hold a folder while a block trains in it. What is missing of it is made, and removed if the
    block fails before it writes anything.

    The folder itself is locked, so that no file is left in it. Where a file system knows no such
    locks, nothing is held.
    """
    with kept_if_used(folder), contextlib.ExitStack() as held:
        try:
            lock(folder, held)
        except BlockingIOError as error:
            raise ValueError(
                f"another process trains in {folder}. Wait for its end, or name another "
                "--model_dir."
            ) from error
        except OSError:
            pass
        yield


def _with_moved(was, now):
    """What a run said of itself, with the new places of files and folders that were moved."""
    if isinstance(was, dict) and isinstance(now, dict):
        return {name: _with_moved(value, now.get(name)) for name, value in was.items()}
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [_with_moved(*pair) for pair in zip(was, now, strict=True)]
    are_paths = all(isinstance(one, str) and os.path.isabs(one) for one in (was, now))
    return now if are_paths and not os.path.exists(was) and os.path.exists(now) else was
