"""A run ends at its last step, and resumes inside an epoch as if it had never stopped; and its
progress bar.
"""

import io
import math
import re
import types
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from rich.console import Console
from small_model import eager_training, small_model

from keras_transformer.training import checkpoint, fit, progress, replicas
from keras_transformer.training.checkpointing import Checkpointing
from keras_transformer.training.ending import StopAtLimit, Stopwatch
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import optimizer

STEPS_PER_EPOCH = 3
IDS = np.random.default_rng(7).integers(4, 20, (10, 2, 5)).astype("int32")


class Stream:
    """An endless stream of batches, each made from its number."""

    def dataset(self, start=0, replicas=1, first=0, here=1):
        numbered = tf.data.Dataset.range(start, 10**9).map(lambda step: tf.constant(IDS)[step % 10])
        return numbered.map(lambda rows: ((rows, rows), rows, tf.ones(tf.shape(rows))))


def make_model():
    keras.utils.set_random_seed(3)
    model = small_model(dropout=0.2)
    fit.compile_model(model, optimizer(1e-3), LabelSmoothedCrossEntropy(0.1))
    return model


def run(folder, *, last_step, accumulate=1):
    """Train as a new process would, but without a graph: the model, the epochs it began, and where
    it resumed.
    """
    model = make_model()
    start, seconds = fit.resume(model, folder)
    stopwatch = Stopwatch(seconds)
    begun = []
    noting = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: begun.append(
            (epoch, checkpoint.step_of(model), model.train_function._epoch[0])
        )
    )

    feed = fit.attach(model, replicas.make_strategy("one"), Stream(), accumulate=accumulate)
    saving = Checkpointing(folder, stopwatch, keep=2, minutes=math.inf)
    limit = StopAtLimit(feed.ending, stopwatch, math.inf, last_step)
    with eager_training():
        fit.fit(model, feed, STEPS_PER_EPOCH, last_step, [saving, limit, noting])
    return model, begun, start


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Eight steps without interruption."""
    return run(tmp_path_factory.mktemp("whole"), last_step=8)


def test_it_ends_at_the_last_step_and_each_epoch_counts_anew(whole):
    model, begun, start = whole
    assert start == 0
    assert checkpoint.step_of(model) == 8
    assert begun == [(0, 0, 0.0), (1, 3, 0.0), (2, 6, 0.0)]


@pytest.mark.parametrize("stop", [2, 3, 5])
def test_two_sessions_equal_one_bit_for_bit_and_keep_the_epochs_aligned(tmp_path, whole, stop):
    run(tmp_path, last_step=stop)
    with mock.patch.object(checkpoint, "read_archive", wraps=checkpoint.read_archive) as read:
        resumed, begun, start = run(tmp_path, last_step=8)
    assert read.call_count == 1
    assert start == stop
    expected = [(stop // 3, stop), *((n, 3 * n) for n in range(stop // 3 + 1, 3))]
    assert [(epoch, step) for epoch, step, _ in begun] == expected
    for actual, expected in zip(resumed.get_weights(), whole[0].get_weights(), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_a_step_takes_the_parts_of_its_update_whatever_the_sessions_before_took(monkeypatch):
    begins = []
    strategy = replicas.make_strategy("one")
    monkeypatch.setattr(fit, "distribute", lambda *args: begins.append(args[2]))
    for accumulate in (1, 3):
        fit.attach(make_model(), strategy, Stream(), accumulate=accumulate).data_from(5)
    assert begins == [5, 15]


def test_a_run_that_is_over_takes_no_step(tmp_path):
    run(tmp_path, last_step=3)
    model, begun, start = run(tmp_path, last_step=3)
    assert start == 3
    assert begun == []
    assert checkpoint.step_of(model) == 3


@pytest.mark.parametrize(
    ("dtype", "cpu_flags", "capability", "policy"),
    [
        *(("float32", flags, None, "float32") for flags in ([], ["amx_bf16"])),
        *(("bfloat16", flags, None, "mixed_bfloat16") for flags in ([], ["amx_bf16"])),
        *(("auto", ["sse", flag], None, "mixed_bfloat16") for flag in sorted(fit.FAST_BFLOAT16)),
        *(("auto", flags, None, "float32") for flags in ([], ["avx512f", "avx2", "bf16"])),
        # A GPU decides before the processor: an H100, a V100, and one of unknown capability.
        ("auto", fit.FAST_BFLOAT16, (9, 0), "mixed_bfloat16"),
        ("auto", fit.FAST_BFLOAT16, (7, 0), "float32"),
        ("auto", fit.FAST_BFLOAT16, (0, 0), "float32"),
    ],
)
def test_the_policy_is_the_flag_s_or_the_device_s(
    dtype, cpu_flags, capability, policy, monkeypatch
):
    monkeypatch.setattr(fit, "_cpu_flags", lambda: set(cpu_flags))
    monkeypatch.setattr(fit, "gpu_capability", lambda: capability)
    assert fit.dtype_policy(dtype) == policy


@pytest.mark.parametrize(
    ("cpuinfo", "limit", "policy"),
    [
        ("flags\t\t: fpu amx_bf16\n", "DEFAULT", "mixed_bfloat16"),
        ("flags\t\t: fpu amx_bf16\n", "avx512_core_bf16", "mixed_bfloat16"),
        ("flags\t\t: fpu amx_bf16\n", "AVX2", "float32"),
        ("flags\t\t: fpu amx_bf16\n", "AVX512_CORE_VNNI", "float32"),
        ("flags : fpu\nbugs : amx_bf16\n", "DEFAULT", "float32"),
        (None, "DEFAULT", "float32"),
    ],
)
def test_auto_reads_this_machine_s_flags_and_onednn_s_limit(monkeypatch, cpuinfo, limit, policy):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)

    def read(path, encoding):
        if cpuinfo is None:
            raise FileNotFoundError(path)
        return cpuinfo

    monkeypatch.setattr("pathlib.Path.read_text", read)
    assert fit.dtype_policy("auto") == policy


@pytest.mark.parametrize(
    ("dtype", "policy", "capability", "words"),
    [
        ("float32", "float32", (9, 0), "float32"),
        ("auto", "float32", None, "float32, because this processor does not multiply in bfloat16"),
        ("auto", "mixed_bfloat16", None, "bfloat16, because this processor multiplies in it"),
        ("auto", "float32", (7, 0), "float32, because this GPU does not multiply in bfloat16"),
        ("auto", "mixed_bfloat16", (9, 0), "bfloat16, because this GPU multiplies in it"),
    ],
)
def test_the_device_that_computes_is_the_reason(dtype, policy, capability, words, monkeypatch):
    monkeypatch.setattr(fit, "gpu_capability", lambda: capability)
    assert fit.in_words(dtype, policy, 100, 1, 9) == f"computing in {words}"


@pytest.mark.parametrize(
    ("parts", "pieces", "capability", "backend", "remedy"),
    [
        (1, 37_000, None, "tensorflow", "--accumulate=3"),
        (2, 74_000, None, "tensorflow", "--accumulate=5"),
        (1, 37_000, None, "jax", "--batch_tokens=8333"),
        (2, 37_000, None, "tensorflow", None),
        (1, 4_000, None, "tensorflow", None),
        (1, 37_000, (9, 0), "tensorflow", None),
    ],
)
def test_a_batch_beyond_memory_is_reported(parts, pieces, capability, backend, remedy, monkeypatch):
    monkeypatch.setattr(fit, "gpu_capability", lambda: capability)
    monkeypatch.setattr("keras.backend.backend", lambda: backend)
    monkeypatch.setattr("pathlib.Path.exists", lambda path: True)
    meminfo = "MemFree: 1 kB\nMemAvailable:   20000000 kB\nBuffers: 9 kB\n"
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_: meminfo)
    line = fit.in_words("float32", "float32", 25_000, parts, pieces)
    words = rf"\na batch needs some 22 GB, and 20 are free\. .*: {remedy} .*" if remedy else ""
    assert re.fullmatch(f"computing in float32{words}", line)


# The progress of a run, as a terminal and as a log file see it.
LOGS = {"loss": 3.25, "accuracy": 0.5, "labels": 2000.0}
PARTS = (
    *("step 1", "loss 3.250", "accuracy 0.500"),
    *("1,000 target tokens/s", "learning rate 1.50e-03", "0:18 left"),
)


@pytest.fixture
def clock(monkeypatch):
    clock = types.SimpleNamespace(monotonic=lambda: clock.now, now=0.0)
    monkeypatch.setattr(progress, "time", clock)
    return clock


def bar(clock, terminal=False, width=200, last_step=10, minutes=math.inf, iterations=0):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width)
    stopwatch = types.SimpleNamespace(seconds=0.0)
    bar = progress.ProgressBar(last_step, stopwatch, minutes, console)
    bar.set_model(
        types.SimpleNamespace(
            optimizer=types.SimpleNamespace(iterations=iterations, learning_rate=1.5e-3)
        )
    )
    bar.on_train_begin()
    bar.on_epoch_begin(0)
    return bar


def batch(bar, clock, seconds, logs=LOGS):
    bar.on_train_batch_begin(0)
    clock.now += seconds
    bar.stopwatch.seconds += seconds
    bar.on_train_batch_end(0, logs)


def written(bar):
    """The output, without the control sequences of the terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", bar.console.file.getvalue())


def test_the_line_shows_loss_accuracy_speed_learning_rate_and_time_left(clock):
    watcher = bar(clock)
    batch(watcher, clock, seconds=2.0)
    assert watcher.line(LOGS) == "  ".join(PARTS)
    # A resumed run measures its own speed.
    watcher = bar(clock, last_step=110, iterations=100)
    batch(watcher, clock, seconds=2.0)
    assert watcher.line(LOGS).startswith("step 101 ")
    assert watcher.line(LOGS).endswith(" 0:18 left")


@pytest.mark.parametrize(("last_step", "minutes"), [(2, math.inf), (2, 9.0), (10, 1.0)])
def test_the_bar_is_full_at_the_nearer_limit_and_stays_full(clock, last_step, minutes):
    watcher = bar(clock, terminal=True, last_step=last_step, minutes=minutes)
    shares = []
    for _ in range(3):
        batch(watcher, clock, seconds=30.0)
        shares.append(watcher.bar.tasks[0].percentage)
    assert shares == [50.0, 100.0, 100.0]


@pytest.mark.parametrize("width", [80, 200])
def test_a_terminal_shows_all_of_it(clock, width):
    watcher = bar(clock, terminal=True, width=width)
    batch(watcher, clock, seconds=2.0)
    watcher.on_train_end()
    shown = " ".join(written(watcher).split())
    assert [part for part in PARTS if part not in shown] == []


def test_a_log_file_gets_a_line_every_half_minute(clock):
    watcher = bar(clock, last_step=100)
    for _ in range(9):
        batch(watcher, clock, seconds=10.0)
    watcher.on_train_end()
    lines = written(watcher).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["step 3", "step 6", "step 9"]
    assert all("\x1b" not in line and "left" in line for line in lines)


# rich answers a reader that left by the first.
@pytest.mark.parametrize("error", [SystemExit, OSError])
def test_training_goes_on_where_a_line_cannot_be_printed(clock, error, capsys):
    watcher = bar(clock)
    watcher.console.print = mock.Mock(side_effect=error)
    watcher.report("a line")
    watcher.report("another")
    assert watcher.console.print.call_count == 2
    assert capsys.readouterr().err.count("training goes on") == 1


def test_tokens_a_second_count_training_alone_over_all_epochs(clock):
    watcher = bar(clock)
    batch(watcher, clock, seconds=1.0)
    clock.now += 500  # validation
    watcher.on_epoch_begin(1)
    batch(watcher, clock, seconds=3.0, logs={**LOGS, "labels": 400.0})
    assert "600 target tokens/s" in watcher.line(LOGS)


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({"last_step": 91}, "1:30"),
        ({"last_step": 3601}, "1:00:00"),
        ({"last_step": 3601, "minutes": 1.0}, "0:59"),
    ],
)
def test_time_left_is_the_nearer_of_steps_and_minutes(clock, limits, left):
    watcher = bar(clock, **limits)
    batch(watcher, clock, seconds=1.0)
    assert f" {left} left" in watcher.line(LOGS)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_report_is_printed_as_it_is(clock, terminal):
    watcher = bar(clock, terminal=terminal, width=40)
    line = "epoch 1  [bold] val_bleu 31.5  " + "x" * 60
    watcher.report(line)
    watcher.on_train_end()
    assert line in written(watcher)


def test_a_run_that_goes_on_inside_an_epoch_has_one_bar(clock):
    watcher = bar(clock, terminal=True)
    batch(watcher, clock, seconds=1.0)
    watcher.on_train_end()
    watcher.on_train_begin()
    batch(watcher, clock, seconds=1.0)
    watcher.on_train_end()
    assert len(watcher.bar.tasks) == 1
