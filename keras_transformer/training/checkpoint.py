"""The whole state of a run in one file: a checkpoint (Vaswani et al. 2017, section 6.1).

A checkpoint is a NumPy archive: each weight under `weights/<its path>`, then the optimizer's slots,
the states of the random generators, and the run's progress as JSON. Any Keras backend writes and
reads it. Zip's checksums show whether it is damaged.
"""

import errno
import json
import pathlib
import re
import zlib
from collections.abc import Callable, Iterable, Mapping

import keras
import numpy as np

from pipelines.whole_files import DAMAGE, write_whole

WEIGHTS = "weights/"
OPTIMIZER = "optimizer/"
# An adapter's weights A, B and scale have the name of the matrix with these ends.
LOW_RANK = ("_lora_a", "_lora_b", "_lora_scale")
# In an adapter's file: a checksum of the weights that it was trained on.
BASE = "base"
# System errors that mean damage: no number, a seek before the beginning of a file, a folder.
OF_DAMAGE = (None, errno.EINVAL, errno.EISDIR)
# More steps or seconds than any run has.
MOST = 2**60


def write_archive(
    path: pathlib.Path, arrays: Mapping[str, np.ndarray], outdated: Iterable[pathlib.Path] = ()
) -> None:
    """Write arrays by name, whole or not at all, and remove the files that this makes outdated."""

    def write(temporary):
        # Pass an open file: NumPy would append `.npz` to a name.
        with open(temporary, "wb") as file:
            np.savez(file, **arrays)

    write_whole(path, write, outdated)


def read_archive(path: pathlib.Path, under: str = "") -> dict[str, np.ndarray]:
    """Read the arrays of an archive, by name: all, or those whose name begins with `under`."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files if name.startswith(under)}
    except DAMAGE as error:
        # Other failures of the system, such as a lost network disk, are no damage.
        if isinstance(error, OSError) and error.errno not in OF_DAMAGE:
            raise
        message = f"{path} is damaged or no checkpoint ({error}). Remove it, or name another."
        raise ValueError(message) from error


def save(path: pathlib.Path, model: keras.Model, progress: Mapping) -> None:
    """Write a compiled model in training and its progress, JSON-serializable, whole or not at all.
    If a weight is not finite, raise a FloatingPointError before anything is written.
    """
    arrays = {name: np.asarray(variable) for name, variable in _state(model).items()}
    for name, array in arrays.items():
        if name.startswith(WEIGHTS) and not np.isfinite(array).all():
            raise FloatingPointError(f"{name} became NaN or infinite")
    write_archive(path, {**arrays, "progress": np.array(json.dumps(progress))})


def restore(
    path: pathlib.Path, model: keras.Model, arrays: Mapping[str, np.ndarray] | None = None
) -> dict:
    """Restore a model, its optimizer and its random generators from what `save` wrote, by `arrays`
    if it was read already. Return the progress, with "step" and "seconds".
    """
    arrays = read_archive(path) if arrays is None else arrays
    progress = _progress_in(path, arrays)
    _assign(path, _state(model), arrays)
    return progress


def weights_of(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Read a model's weights, by name: `weights/<path of the variable>`, with adapters added."""
    return merged(read_archive(path, WEIGHTS))


def adapters_in(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Select the weights, by name, that belong to adapters."""
    return {name: array for name, array in weights.items() if name.endswith(LOW_RANK)}


def merged(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights by name, with W + scale A B in place of each W that has an adapter."""
    adapters = adapters_in(weights)
    arrays = {name: array for name, array in weights.items() if name not in adapters}
    first, *_ = LOW_RANK
    for kernel in (name.removesuffix(first) for name in adapters if name.endswith(first)):
        a, b, scale = (adapters[kernel + end] for end in LOW_RANK)
        arrays[kernel] = arrays[kernel] + scale * (a @ b)
    return arrays


def with_adapter(weights: Mapping[str, np.ndarray], path: pathlib.Path) -> dict[str, np.ndarray]:
    """Return weights by name, with the adapter added that `write_adapter` wrote."""
    adapter = read_archive(path)
    if BASE not in adapter or not adapters_in(adapter):
        raise ValueError(f"{path} is no adapter. Name the adapter.npz of a run with --lora_rank.")
    if str(adapter.pop(BASE)) != _checksum(weights, adapter):
        raise ValueError(
            f"{path} was trained on other weights than these. Name the model that its run began "
            "from: by --init_from in train, by --model_dir in export."
        )
    return merged({**weights, **adapter})


def write_adapter(path: pathlib.Path, weights: Mapping[str, np.ndarray]) -> None:
    """Write the adapters among trained weights, and a checksum of the matrices that they adapt."""
    adapters = adapters_in(weights)
    write_archive(path, {**adapters, BASE: np.array(_checksum(weights, adapters))})


def _checksum(weights, adapters):
    """Compute the checksum of the adapted matrices; "" if one is missing."""
    first, *_ = LOW_RANK
    kernels = [name.removesuffix(first) for name in sorted(adapters) if name.endswith(first)]
    if not weights.keys() >= set(kernels):
        return ""
    return f"{zlib.crc32(b''.join(np.ascontiguousarray(weights[name]) for name in kernels)):08x}"


def load_weights(
    path: pathlib.Path, model: keras.Model, adapter: pathlib.Path | None = None
) -> None:
    weights = weights_of(path)
    _assign(path, _weights(model), with_adapter(weights, adapter) if adapter else weights)


def set_weights(model: keras.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Set the weights of a model to arrays by name, as `weights_of` returns them."""
    for name, variable in _weights(model).items():
        variable.assign(arrays[name])


def progress_of(path: pathlib.Path) -> dict:
    return _progress_in(path, read_archive(path, "progress"))


def _progress_in(path, arrays):
    _refuse_lack(path, "progress", arrays)
    text = str(arrays["progress"])
    try:
        progress = json.loads(text)
        if type(progress["step"]) is int and all(
            0 <= progress[name] < MOST for name in ("step", "seconds")
        ):
            return progress
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise ValueError(
        f"{path} is damaged: its progress must have a step and seconds. Received: {text[:60]}."
    )


def read_newest(folder: pathlib.Path, log: Callable = print) -> tuple[pathlib.Path | None, dict]:
    """Find a folder's readable checkpoint of the highest step, and its arrays; None and {} if there
    is none. `log` takes a line about each damaged one, which is skipped.
    """
    paths = checkpoints(folder)
    while paths:
        path = paths.pop()
        try:
            arrays = read_archive(path)
            _progress_in(path, arrays)
        except ValueError as error:
            log(f"{error} {'Taking the one before.' if paths else 'There is none before it.'}")
        else:
            return path, arrays
    return None, {}


def remedy_of(error: OSError) -> str:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return "Make room." if is_full else "See to the disk, and to who may write there."


def step_of(model: keras.Model) -> int:
    # Under a distribution strategy, int() rejects the variable itself.
    return int(np.asarray(model.optimizer.iterations))


def checkpoints(folder: pathlib.Path) -> list[pathlib.Path]:
    """List the checkpoint files of a folder, oldest first."""
    return sorted([*checkpoints_to_average(folder), *_of_kind(folder, "last")], key=step_in)


def checkpoints_to_average(folder: pathlib.Path) -> list[pathlib.Path]:
    """List the checkpoints of a folder that are written to be averaged, oldest first."""
    return sorted(_of_kind(folder, "step"), key=step_in)


def _of_kind(folder, kind):
    """List the files that `save` wrote, without copies that users made, such as last-best.npz."""
    # `path_of` writes nine digits or more.
    name = re.compile(rf"{kind}-([0-9]{{9}}|[1-9][0-9]{{9,17}})\.npz")
    return [path for path in pathlib.Path(folder).glob("*.npz") if name.fullmatch(path.name)]


def path_of(folder: pathlib.Path, step: int, averaged: bool = True) -> pathlib.Path:
    """Return the path of a step's checkpoint: one to be averaged, or only to resume from."""
    return pathlib.Path(folder) / f"{'step' if averaged else 'last'}-{step:09d}.npz"


def step_in(path: pathlib.Path) -> int:
    return int(path.stem.rpartition("-")[-1])


def _weights(model):
    named = {WEIGHTS + variable.path: variable for variable in model.weights}
    if len(named) != len(model.weights):
        raise ValueError(
            "Two weights of the model have one path. Give every layer a name of its own."
        )
    return named


def _state(model):
    weights = _weights(model)
    states = [variable for variable in model.variables if WEIGHTS + variable.path not in weights]
    random = {f"random/{index}": variable for index, variable in enumerate(states)}
    slots = enumerate(model.optimizer.variables)
    return {**weights, **random, **{f"{OPTIMIZER}{index}": variable for index, variable in slots}}


def _refuse_lack(path, name, arrays):
    if name not in arrays:
        raise ValueError(
            f"{path} lacks {name}: it comes from a model of another kind.{_remedy_for(name)}"
        )


def _remedy_for(name):
    remedy = " Resume with the --optimizer and the --ema that the run began with."
    return remedy if name.startswith(OPTIMIZER) else ""


def _assign(path, variables, arrays):
    for name, variable in variables.items():
        _refuse_lack(path, name, arrays)
        if arrays[name].shape != tuple(variable.shape):
            raise ValueError(
                f"{path}: {name} has shape {arrays[name].shape}, the model expects "
                f"{tuple(variable.shape)}.{_remedy_for(name)}"
            )
    for name, variable in variables.items():
        variable.assign(arrays[name])
