"""One update from many batches: the same weights however the batches are spread over replicas, hosts and time."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.models import Transformer
from keras_transformer.training import fit, strategy
from keras_transformer.training.optimizer import optimizer
from keras_transformer.training.strategy import TrainFunction, make_strategy
from pipelines.batching import training_batches
from pipelines.token_ids import TokenIds, TokenizedPairs

PROGRAM = pathlib.Path(__file__).with_name("replicas_program.py")


def start(folder, name, environment=(), **arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **dict(environment)}
    arguments = json.dumps({**arguments, "output": str(folder / f"{name}.npz")})
    return subprocess.Popen([sys.executable, str(PROGRAM), arguments], env=environment, stderr=subprocess.PIPE, text=True)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def cluster(index, ports):
    return {"TF_CONFIG": json.dumps({"cluster": {"worker": [f"127.0.0.1:{p}" for p in ports]}, "task": {"type": "worker", "index": index}})}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Weights and losses after 20 steps, by the way the batches were spread."""
    folder, ports = tmp_path_factory.mktemp("replicas"), free_ports(2)
    processes = [
        start(folder, "one, 2 accumulated", distribution="one", accumulate=2),
        start(folder, "two devices", distribution="mirrored", accumulate=1),
        start(folder, "mean of means", distribution="mirrored", accumulate=1, mean_of_means=True),
        *(start(folder, "two hosts", cluster(index, ports), distribution="multi_worker", accumulate=1) for index in range(2)),
    ]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    return {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}


def difference(first, second):
    return max(np.abs(first[name] - second[name]).max() for name in first)


@pytest.mark.parametrize("spread", ["two devices", "two hosts"])
def test_two_replicas_are_one_that_was_fed_the_same_examples(runs, spread):
    assert difference(runs[spread], runs["one, 2 accumulated"]) < 1e-5


def test_control_a_mean_of_means_is_not(runs):
    assert difference(runs["mean of means"], runs["one, 2 accumulated"]) > 1e-3


def side(random, longest=12):
    lengths = random.integers(2, longest, 200)
    return TokenIds.of_lengths(random.integers(4, 50, lengths.sum()).astype(np.uint16), lengths)


@pytest.fixture(scope="module")
def batches():
    random = np.random.default_rng(0)
    return training_batches(TokenizedPairs(side(random), side(random)), batch_tokens=60, seed=1, most_padding=0.3)


def trained(data, steps=6, dropout=0.0, **options):
    """A model after some steps, and its train function."""
    keras.utils.set_random_seed(1)
    model = Transformer(vocabulary_size=50, num_layers=1, d_model=16, d_ff=32, num_heads=2, dropout=dropout)
    fit.compile_model(model, optimizer(1e-2), label_smoothing=0.1)
    one = make_strategy("one")
    function = TrainFunction(model, one, **options)
    iterator = iter(one.experimental_distribute_dataset(data))
    logs = [function(iterator) for _ in range(steps)]
    return model, function, logs


def assert_same_weights(first, second, tolerance=1e-5):
    assert max(np.abs(a - b).max() for a, b in zip(first.get_weights(), second.get_weights(), strict=True)) < tolerance


def together(batches, count):
    """A dataset in which so many batches are one, padded to the longest."""

    def pad(arrays):
        width = max(array.shape[1] for array in arrays)
        return np.concatenate([np.pad(array, [(0, 0), (0, width - array.shape[1])]) for array in arrays])

    def generate():
        stream = batches.arrays()
        while True:
            some = [next(stream) for _ in range(count)]
            yield (pad([s for (s, _), _ in some]), pad([t for (_, t), _ in some])), pad([o for _, o in some])

    ids = tf.TensorSpec((None, None), tf.int32)
    return tf.data.Dataset.from_generator(generate, output_signature=((ids, ids), ids))


def test_accumulated_batches_are_one_large_batch(batches):
    accumulated, _, logs = trained(batches.dataset(), accumulate=3)
    large, _, expected = trained(together(batches, 3))
    assert_same_weights(accumulated, large)
    assert [log["tokens"] for log in logs] == [log["tokens"] for log in expected]
    np.testing.assert_allclose([log["loss"] for log in logs], [log["loss"] for log in expected], rtol=1e-5)
    with pytest.raises(AssertionError):
        assert_same_weights(accumulated, trained(batches.dataset())[0])


def test_the_logs_are_means_over_the_tokens_since_the_epoch_began(batches):
    model, function, _ = trained(batches.dataset(), steps=0)
    iterator = iter(batches.dataset())
    seen = []
    for number in range(4):
        if number == 2:
            function.start_epoch()
            seen = []
        (source, target), labels = batches[number]
        logits, real = np.asarray(model((source, target)), np.float64), labels > 0
        shifted = logits - logits.max(-1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        losses = -0.9 * np.take_along_axis(log_p, labels[..., None], -1)[..., 0] - 0.1 * log_p.mean(-1)
        seen.append((real.sum(), losses[real].sum(), (logits.argmax(-1) == labels)[real].sum()))
        tokens, loss, right = np.sum(seen, axis=0)
        assert function(iterator) == pytest.approx({"loss": loss / tokens, "accuracy": right / tokens, "tokens": tokens}, rel=1e-5)


def test_one_graph_serves_all_shapes(batches):
    _, function, _ = trained(batches.dataset(), steps=12)
    assert function._update_all.experimental_get_tracing_count() == 1


def test_with_static_shapes_there_is_a_graph_a_shape(batches):
    _, function, _ = trained(batches.dataset(), steps=12, static_shapes=True)
    shapes = {(source.shape, labels.shape) for (source, _), labels in (batches[number] for number in range(12))}
    assert 1 < len(shapes) == function._update_all.experimental_get_tracing_count()


# What XLA, and so a TPU, cannot compile: the shape of the result depends on the values.
DYNAMIC = {"Where", "Unique", "UniqueV2", "DynamicPartition", "NonMaxSuppressionV3", "BooleanMask"}


def graphs(graph):
    yield graph
    for definition in graph._functions.values():
        yield from graphs(definition.graph) if hasattr(definition, "graph") else ()


def test_with_static_shapes_every_shape_in_the_step_is_known(batches):
    def unknown(function):
        [(_, update), *_] = function._compiled.values()
        operations = [operation for graph in graphs(update.graph) for operation in graph.get_operations()]
        assert len(operations) > 300
        assert not DYNAMIC & {operation.type for operation in operations}
        return [tensor.name for operation in operations for tensor in operation.outputs if not tensor.shape.is_fully_defined()]

    assert unknown(trained(batches.dataset(), steps=1, dropout=0.1, static_shapes=True)[1]) == []
    assert unknown(trained(batches.dataset(), steps=1, dropout=0.1)[1]) != []


def test_xla_compiles_the_whole_step_and_gives_the_same(batches):
    expected, _, logs = trained(batches.dataset(), steps=1)
    model, function, _ = trained(batches.dataset(), steps=0, static_shapes=True)
    (source, target), labels = batches[0]
    batch = ((tf.constant(source), tf.constant(target)), tf.constant(labels))
    step = tf.function(function._update, jit_compile=True)
    counts = step(batch, tf.constant(0.0)).numpy()
    assert counts[1] / counts[0] == pytest.approx(logs[0]["loss"], abs=1e-4)
    assert_same_weights(model, expected, 1e-4)


def test_forward_and_backward_by_xla_give_the_same(batches):
    expected, _, _ = trained(batches.dataset(), steps=2)
    compiled, _, _ = trained(batches.dataset(), steps=2, static_shapes=True, jit_compile=True)
    assert_same_weights(compiled, expected, 1e-4)


def test_what_does_not_fit_is_told(monkeypatch):
    with pytest.raises(ValueError, match=r"^`distribution` must be one of one, mirrored, multi_worker, tpu. Received: 'two'"):
        make_strategy("two")
    for config in ("", "nonsense", '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}'):
        monkeypatch.setenv("TF_CONFIG", config)
        with pytest.raises(ValueError, match=r"needs the environment variable TF_CONFIG, .*Received: "):
            make_strategy("multi_worker")


def test_another_backend_neither_accumulates_nor_distributes(batches, monkeypatch):
    model, _, _ = trained(batches.dataset(), steps=0)
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    data_from = strategy.attach(model, make_strategy("one"), batches, lambda step: step)
    np.testing.assert_array_equal(next(data_from(3))[1], batches[3][1])
    with pytest.raises(ValueError, match="KERAS_BACKEND=jax trains with --distribution=one and --accumulate=1"):
        strategy.attach(model, make_strategy("one"), batches, lambda step: step, accumulate=2)
