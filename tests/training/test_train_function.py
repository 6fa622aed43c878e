"""However the batches of a step are spread over replicas, hosts and time, it is the step of one
batch of all their rows.
"""

import functools
import os
import pathlib
import subprocess
import sys
import urllib.error

import keras
import numpy as np
import pytest
import tensorflow as tf
from hosts import tf_configs

from keras_transformer.models import Transformer
from keras_transformer.training import callbacks, fit
from keras_transformer.training import replicas as strategy
from keras_transformer.training.optimizer import optimizer

PROGRAM = pathlib.Path(__file__).with_name("replicas_program.py")
LONGEST_SECONDS = 600
# Batches that each replica adds up, and what is done otherwise. Of use by hand, but slower:
# 2-static equals 1-static of two replicas.
EXPERIMENTS = {
    "one": ("2", "4", "2-unclipped"),
    "mirrored": ("1", "2", "1-mean_of_means"),
    "multi_worker": ("1",),
}


@pytest.fixture(scope="module", autouse=True)
def programs(tmp_path_factory):
    """The experiments, under way beside the tests of this file, the last of which ask for what they
    left; and where they leave it.
    """
    folder = tmp_path_factory.mktemp("replicas")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    clusters = {"multi_worker": [{"TF_CONFIG": config} for config in tf_configs(2)]}
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), distribution, *experiments],
            env=environment | addition,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for distribution, experiments in EXPERIMENTS.items()
        for addition in clusters.get(distribution, [{}])
    ]
    yield folder, processes
    for process in processes:
        process.kill()
        process.communicate()


def batch(rows, source_length, target_length, seed=0):
    """Ids 3 to 19, each row with some padding behind it."""
    random = np.random.default_rng(seed)

    def side(length):
        kept = np.arange(length) < random.integers(1, length + 1, (rows, 1))
        return np.where(kept, random.integers(3, 20, (rows, length)), 0).astype(np.int32)

    output = side(target_length)
    shifted = np.concatenate([np.full((rows, 1), 2, np.int32), output[:, :-1]], axis=1)
    return (side(source_length), shifted), output


def joined(batches):
    """One batch of all their rows, padded to the longest."""

    def side(*parts):
        width = max(part.shape[1] for part in parts)
        return np.concatenate(
            [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts]
        )

    return tf.nest.map_structure(side, *batches)


THREE = [batch(2, 3, 4, seed=1), batch(4, 5, 2, seed=2), batch(3, 7, 6, seed=3)]


class Stream:
    """Some batches over and over."""

    def __init__(self, *batches):
        self.batches = batches

    def dataset(self, start=0, replicas=1, first=0, here=1):
        ids = tf.TensorSpec((None, None), tf.int32)
        return tf.data.Dataset.from_generator(
            lambda: iter(self.batches), output_signature=((ids, ids), ids)
        ).repeat()


class Reports(keras.callbacks.Callback):
    """What is reported of each step."""

    def __init__(self):
        super().__init__()
        self.reports = []

    def on_train_batch_end(self, batch, logs=None):
        self.reports.append(dict(logs))


def make_model(rate=0.003, dropout=0.0):
    keras.utils.set_random_seed(2)
    model = Transformer(
        vocabulary_size=20, num_layers=1, d_model=8, d_ff=16, num_heads=2, dropout=dropout
    )
    fit.compile_model(model, optimizer(rate, clip_norm=0.3), label_smoothing=0.1)
    return model


def train(
    batches,
    steps,
    rate=0.003,
    dropout=0.0,
    steps_per_epoch=100,
    make=strategy.TrainFunction,
    **options,
):
    """The model, its train function, and the reports of the steps."""
    model, reports = make_model(rate, dropout), Reports()
    function = make(model, tf.distribute.get_strategy(), **options)
    data = strategy.distribute(function.strategy, Stream(*batches), 0)
    fit.fit(model, lambda step: data, min(steps_per_epoch, steps), steps, [reports])
    return model, function, reports.reports


def weights_differ(model, other):
    return max(
        np.abs(here - there).max()
        for here, there in zip(model.get_weights(), other.get_weights(), strict=True)
    )


class MeanOfMeans(strategy.TrainFunction):
    """Weighs each batch alike, however many tokens it has."""

    def _gradients(self, batch, tokens):
        return super()._gradients(batch, tokens * tf.math.count_nonzero(batch[1], dtype=tf.float32))


def test_batches_that_are_added_up_make_the_step_of_one_batch_of_all_their_rows():
    whole, _, whole_reports = train([joined(THREE)], steps=5)
    added, _, added_reports = train(THREE, steps=5, accumulate=3)
    assert weights_differ(whole, added) < 1e-5
    assert [report["loss"] for report in added_reports] == pytest.approx(
        [report["loss"] for report in whole_reports], rel=1e-5
    )
    assert [report["tokens"] for report in added_reports] == [
        report["tokens"] for report in whole_reports
    ]
    assert weights_differ(whole, make_model()) > 1e-3
    # A control: the mean of the batches' means makes other steps.
    averaged, _, _ = train(THREE, steps=5, accumulate=3, make=MeanOfMeans)
    assert weights_differ(whole, averaged) > 1e-3


def expected_counts(model, batch):
    """Summed loss (section 5.4 with epsilon 0.1), tokens guessed right, and tokens, in float64."""
    inputs, labels = batch
    logits = np.asarray(model(inputs), np.float64)
    log_p = logits - logits.max(-1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
    losses = -0.9 * np.take_along_axis(log_p, labels[..., None], -1)[..., 0] - 0.1 * log_p.mean(-1)
    real = labels != 0
    return np.array([losses[real].sum(), (logits.argmax(-1) == labels)[real].sum(), real.sum()])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_reports_are_numpy_s_means_over_the_tokens_of_the_epoch_so_far(accumulate):
    model, _, reports = train(THREE, steps=4, steps_per_epoch=2, rate=0.0, accumulate=accumulate)
    counts = [expected_counts(model, THREE[number % 3]) for number in range(4 * accumulate)]
    assert len(reports) == 4
    for step, report in enumerate(reports):
        loss, right, tokens = sum(counts[step // 2 * 2 * accumulate : (step + 1) * accumulate])
        assert report["tokens"] == tokens
        assert report["accuracy"] == pytest.approx(right / tokens, rel=1e-6)
        assert report["loss"] == pytest.approx(loss / tokens, rel=1e-5)
    assert reports[2]["tokens"] < reports[1]["tokens"]  # a new epoch


@pytest.fixture(scope="module")
def compiled():
    """Train functions after four batches of two shapes, by whether shapes are static."""
    options = {"steps": 2, "dropout": 0.1, "accumulate": 2}
    return {
        static_shapes: train(THREE[:2], static_shapes=static_shapes, **options)[1]
        for static_shapes in (True, False)
    }


@pytest.mark.parametrize(("static_shapes", "graphs"), [(False, 1), (True, 2)])
def test_one_graph_serves_all_shapes_or_each_has_its_own(compiled, static_shapes, graphs):
    assert compiled[static_shapes]._update_all.experimental_get_tracing_count() == graphs
    assert compiled[static_shapes]._add_all.experimental_get_tracing_count() == graphs


# Their results' shapes depend on values.
DYNAMIC = {
    "Where",
    "Unique",
    "UniqueV2",
    "DynamicPartition",
    "ListDiff",
    "NonMaxSuppression",
    "RaggedRange",
    "StringSplit",
    "PyFunc",
}


def nodes(concrete):
    """All nodes of a compiled function and of those that it calls."""
    graph = concrete.graph.as_graph_def(add_shapes=True)
    return [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]


def with_unknown_shapes(nodes):
    """The names of those that have a result of which some dimension is unknown."""
    shapes = [
        (node.name, shape) for node in nodes for shape in node.attr["_output_shapes"].list.shape
    ]
    return [
        name
        for name, shape in shapes
        if shape.unknown_rank or -1 in [dimension.size for dimension in shape.dim]
    ]


def test_with_static_shapes_every_tensor_of_a_step_has_one_and_no_operation_is_dynamic(compiled):
    for concrete in (concrete for pair in compiled[True]._compiled.values() for concrete in pair):
        assert sum("_output_shapes" in node.attr for node in nodes(concrete)) > 1000
        assert with_unknown_shapes(nodes(concrete)) == []
        assert {node.op for node in nodes(concrete)} & DYNAMIC == set()


def test_control_without_static_shapes_many_tensors_have_none(compiled):
    for concrete in (concrete for pair in compiled[False]._compiled.values() for concrete in pair):
        assert len(with_unknown_shapes(nodes(concrete))) > 100


ALIKE = [batch(4, 5, 6, seed=4), batch(4, 5, 6, seed=5)]


@pytest.mark.parametrize(("accumulate", "static_shapes"), [(1, False), (2, True)])
def test_xla_gives_the_same_losses_and_weights(accumulate, static_shapes):
    plain, _, plain_reports = train(ALIKE, steps=3, accumulate=accumulate)
    compiled, _, reports = train(
        ALIKE, steps=3, accumulate=accumulate, static_shapes=static_shapes, jit_compile=True
    )
    assert [report["loss"] for report in reports] == pytest.approx(
        [report["loss"] for report in plain_reports], abs=1e-4
    )
    assert weights_differ(plain, compiled) < 1e-4


def test_the_whole_step_with_its_update_compiles_under_xla():
    first, second = (tf.nest.map_structure(tf.constant, batch) for batch in ALIKE)
    plain, plain_function, _ = train(ALIKE, steps=0, accumulate=2)
    whole, function, _ = train(ALIKE, steps=0, accumulate=2)
    add, update = (
        tf.function(method, jit_compile=True, autograph=False)
        for method in (function._add, function._update)
    )
    for _ in range(2):
        plain_function._add(first)
        expected = plain_function._update(second, tf.zeros(2))
        add(first)
        np.testing.assert_allclose(update(second, tf.zeros(2)), expected, rtol=1e-5)
    assert weights_differ(plain, whole) < 1e-4
    assert weights_differ(plain, make_model()) > 1e-3


def test_a_callback_ends_training_after_the_step():
    model, reports = make_model(), Reports()
    function = strategy.TrainFunction(model, tf.distribute.get_strategy())
    ending = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: step == 1 and callbacks.end_training(model)
    )
    data = strategy.distribute(function.strategy, Stream(*THREE), 0)
    fit.fit(model, lambda step: data, 5, 100, [reports, ending])
    assert len(reports.reports) == 2


TASK = (
    '{"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, "task": {"type": "%s", "index": %s}}'
)
NO_TASK_IN_IT = [
    TASK % place
    for place in (("worker", 2), ("worker", -1), ("worker", "null"), ("chief", 0), ("ps", 0))
]


@pytest.mark.parametrize(
    "config", [None, "", "worker", "[]", "{}", '{"cluster": {}}', *NO_TASK_IN_IT]
)
def test_several_hosts_need_a_cluster_that_this_one_is_in(monkeypatch, config):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if config is not None:
        monkeypatch.setenv("TF_CONFIG", config)
    message = (
        r"^--distribution=multi_worker needs the environment variable TF_CONFIG, "
        r"\{.cluster.*\}\. Received: '.*'\.$"
    )
    with pytest.raises(ValueError, match=message):
        strategy.make_strategy("multi_worker")


NO_TPU = (
    r"^--distribution=tpu found no TPU at --tpu='{}' \(.*\)\. Name its address, or choose "
    r"another\.$"
)
TPU_ERRORS = [
    ValueError("none"),
    urllib.error.URLError("unknown host"),
    tf.errors.NotFoundError(None, None, "none\nat all"),
]


@pytest.mark.parametrize("error", TPU_ERRORS)
def test_a_tpu_that_cannot_be_had_is_told_in_a_line(monkeypatch, error):
    def resolver(tpu):
        raise error

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", resolver)
    with pytest.raises(ValueError, match=NO_TPU.format("mine")):
        strategy.make_strategy("tpu", "mine")


def test_here_is_no_tpu(monkeypatch):
    monkeypatch.delenv("TPU_NAME", raising=False)
    with pytest.raises(ValueError, match=NO_TPU.format("")):
        strategy.make_strategy("tpu")


def test_another_distribution_is_refused_by_name():
    with pytest.raises(
        ValueError,
        match=r"^`distribution` must be one of one, mirrored, multi_worker, tpu\. Received: "
        r"'many'\.$",
    ):
        strategy.make_strategy("many")


@pytest.mark.parametrize(("replicas", "accumulate"), [(1, 2), (2, 1)])
def test_another_backend_neither_distributes_nor_accumulates(monkeypatch, replicas, accumulate):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    several = functools.partial(tf.distribute.MirroredStrategy, ["CPU:0"])()
    monkeypatch.setattr(type(several), "num_replicas_in_sync", replicas)
    with pytest.raises(
        ValueError,
        match=rf"^KERAS_BACKEND=jax .*Received: {replicas} replicas, accumulate={accumulate}\. "
        r"Leave them out",
    ):
        strategy.attach(None, several, None, None, accumulate)


def test_one_process_is_its_own_chief_and_waits_for_none():
    alone = strategy.make_strategy("one")
    assert strategy.is_chief(alone)
    strategy.wait_for_all(alone)
    with pytest.raises(tf.errors.UnavailableError), strategy.telling_of_lost_hosts(alone):
        raise tf.errors.UnavailableError(None, None, "a file server, say")


@pytest.fixture(scope="module")
def trained(programs):
    """What each experiment left."""
    folder, processes = programs
    for process in processes:
        output, _ = process.communicate(timeout=LONGEST_SECONDS)
        assert process.returncode == 0, output
    return {path.stem: dict(np.load(path)) for path in folder.iterdir()}


def largest_difference(here, there, kind):
    """Of the arrays whose names begin so."""
    assert here.keys() == there.keys()
    return max(
        float(np.abs(here[name] - there[name]).max()) for name in here if name.startswith(kind)
    )


SPREAD = [
    ("one-2-0", "mirrored-1-0"),
    ("one-4-0", "mirrored-2-0"),
    ("one-2-0", "multi_worker-1-0"),
    ("one-2-0", "multi_worker-1-1"),
]


@pytest.mark.parametrize(("whole", "spread"), SPREAD)
@pytest.mark.parametrize("kind", ["weight", "average", "reports"])
def test_replicas_make_the_steps_of_one_that_sees_all_their_batches(trained, whole, spread, kind):
    assert largest_difference(trained[whole], trained[spread], kind) < 1e-5


@pytest.mark.parametrize("other", ["mirrored-1-mean_of_means-0", "one-4-0", "one-2-unclipped-0"])
def test_control_other_steps_make_other_weights(trained, other):
    """The mean of the replicas' means; more batches; and clipping does take part."""
    assert largest_difference(trained["one-2-0"], trained[other], "weight") > 1e-3


def test_hosts_have_the_same_weights_to_the_last_bit(trained):
    assert largest_difference(trained["multi_worker-1-0"], trained["multi_worker-1-1"], "") == 0
