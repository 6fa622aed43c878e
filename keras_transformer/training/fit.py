"""How a run trains (Vaswani et al. 2017, section 5): a compiled model, its data on any backend, and
`model.fit` from where the run stopped; in float32, or in bfloat16 with float32 weights if the
machine is fast at it.
"""

import dataclasses
import math
import os
import pathlib
import re
from collections.abc import Callable, Sequence

import keras

from keras_transformer.training import checkpoint
from keras_transformer.training.ending import Ending
from keras_transformer.training.loss import LabelAccuracy, LabelCount
from keras_transformer.training.replicas import distribute, gpu_capability
from keras_transformer.training.train_function import TrainFunction

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
FAST_BFLOAT16 = {"avx512_bf16", "amx_bf16"}
# Values of ONEDNN_MAX_CPU_ISA with which oneDNN can multiply bfloat16; with others it would abort.
WITH_BFLOAT16 = re.compile("DEFAULT|BF16|FP16|AMX|AVX10")
# GPUs from Ampere on.
FAST_CAPABILITY = (8, 0)
# Peak memory of an update, in arrays as large as the logits: 6.1 at base's sizes
# (benchmarks/limits/memory.py).
ARRAYS_HELD = 6


def dtype_policy(mixed_precision: str) -> str:
    """Return the Keras dtype policy of "float32", "bfloat16", or "auto": bfloat16 if the GPU, or
    without one the processor, reports that it multiplies matrices in it.
    """
    if mixed_precision == "auto":
        capability = gpu_capability()
        fast = FAST_BFLOAT16 & _cpu_flags() if capability is None else capability >= FAST_CAPABILITY
        mixed_precision = "bfloat16" if fast else "float32"
    if mixed_precision not in POLICIES:
        raise ValueError(
            f"`mixed_precision` must be auto, {' or '.join(POLICIES)}. Received: "
            f"{mixed_precision!r}."
        )
    return POLICIES[mixed_precision]


def _cpu_flags():
    if not WITH_BFLOAT16.search(os.environ.get("ONEDNN_MAX_CPU_ISA", "DEFAULT").upper()):
        return set()
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    lines = [line for line in text.splitlines() if line.startswith("flags")]
    return {flag for line in lines for flag in line.split(":", 1)[1].split()}


def in_words(mixed_precision: str, policy: str, tokens: int, parts: int, pieces: int) -> str:
    """Say which dtype is computed in, and with "auto" why. Add a line if a processor may lack the
    memory for updates of so many tokens in so many parts, where the system kills without a word.
    """
    name = next(name for name, of_name in POLICIES.items() if of_name == policy)
    words = f"computing in {name}"
    if mixed_precision == "auto":
        device = "processor" if gpu_capability() is None else "GPU"
        reason = "multiplies in it" if name == "bfloat16" else "does not multiply in bfloat16"
        words += f", because this {device} {reason}"
    file = pathlib.Path("/proc/meminfo")
    kilobytes = re.search(r"MemAvailable: +(\d+)", file.read_text("ascii") if file.exists() else "")
    free = 1024 * int(kilobytes[1]) if kilobytes else math.inf
    needed = ARRAYS_HELD * 4 * tokens * pieces
    if needed / parts < free or gpu_capability() is not None:
        return words
    more = math.ceil(2 * needed / free)
    on_tensorflow = keras.backend.backend() == "tensorflow"
    smaller = f"accumulate={more}" if on_tensorflow else f"batch_tokens={tokens // more}"
    return (
        f"{words}\na batch needs some {needed / parts / 1e9:.0f} GB, and {free / 1e9:.0f} are "
        f"free. If the run is killed: --{smaller} takes smaller ones"
    )


def compile_model(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, loss: keras.losses.Loss
) -> None:
    """Compile a model with a loss, whose `call` gives a loss per label, and build the optimizer."""
    if keras.backend.backend() == "tensorflow":
        # `TrainFunction` computes accuracy and count itself, over all replicas.
        model.compile(optimizer, loss, jit_compile=False)
    else:
        model.compile(optimizer, loss, weighted_metrics=[LabelAccuracy(), LabelCount()])
    model.optimizer.build(model.trainable_variables)


def resume(model: keras.Model, folder: pathlib.Path) -> tuple[int, float]:
    """Restore a compiled model from the newest checkpoint of a folder that can be read, if there is
    one. Return the updates made, and the seconds that the run has trained.
    """
    newest, arrays = checkpoint.read_newest(folder)
    progress = checkpoint.restore(newest, model, arrays) if newest else {"step": 0, "seconds": 0.0}
    return progress["step"], progress["seconds"]


@dataclasses.dataclass(frozen=True)
class Feed:
    """What `fit` trains with: a function that makes the data from the step at which `model.fit`
    continues, how the run ends before its last step, and callbacks that come before all others.
    """

    data_from: Callable
    ending: Ending
    callbacks: tuple = ()


def attach(model: keras.Model, strategy, batches, **of_tensorflow) -> Feed:
    """Make `model.fit` train on many batches a step (section 5.1), from `TrainingBatches` of R
    times K parts; `of_tensorflow` are arguments of `TrainFunction`, for TensorFlow alone.
    """
    if keras.backend.backend() == "tensorflow":
        function = TrainFunction(model, strategy, **of_tensorflow)
        new_means = keras.callbacks.LambdaCallback(on_epoch_begin=lambda *_: function.start_epoch())
        parts = strategy.num_replicas_in_sync * function.accumulate
        return Feed(
            lambda step: distribute(strategy, batches, step * parts), function.ending, (new_means,)
        )
    return Feed(batches.arrays, Ending(model))


def fit(
    model: keras.Model,
    feed: Feed,
    steps_per_epoch: int,
    last_step: int,
    callbacks: Sequence[keras.callbacks.Callback],
) -> None:
    """Train a model that `resume` has restored until the last step, or until a callback ends it.

    An interrupted epoch is finished first, in a call of `model.fit` of its own; then all others.
    """
    model.stop_training = False
    while (step := checkpoint.step_of(model)) < last_step and not model.stop_training:
        epoch, steps_done = divmod(step, steps_per_epoch)
        model.fit(
            feed.data_from(step),
            initial_epoch=epoch,
            epochs=epoch + 1 if steps_done else math.ceil(last_step / steps_per_epoch),
            steps_per_epoch=steps_per_epoch - steps_done,
            callbacks=[*feed.callbacks, *callbacks],
            shuffle=False,
            verbose=0,
        )
