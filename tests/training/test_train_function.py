"""However the batches of a step are spread over time, it is the step of one batch of all their
rows. What replicas and hosts add is in `test_replicas`.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import paper
from small_model import Reports, eager_training, small_model, transformer

from keras_transformer.training import fit
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import optimizer
from keras_transformer.training.replicas import distribute
from keras_transformer.training.train_function import TrainFunction


def batch(rows, source_length, target_length, seed=0):
    """Ids 3 to 19, each row padded at its end."""
    random = np.random.default_rng(seed)

    def side(length):
        is_token = np.arange(length) < random.integers(1, length + 1, (rows, 1))
        return np.where(is_token, random.integers(3, 20, (rows, length)), 0).astype(np.int32)

    output = side(target_length)
    shifted = np.concatenate([np.full((rows, 1), 2, np.int32), output[:, :-1]], axis=1)
    return (side(source_length), shifted), output, (output != 0).astype(np.float32)


def joined(batches):
    """One batch of all their rows, padded to the longest."""

    def side(*parts):
        width = max(part.shape[1] for part in parts)
        padded = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts]
        return np.concatenate(padded)

    return tf.nest.map_structure(side, *batches)


THREE = [batch(2, 3, 4, seed=1), batch(4, 5, 2, seed=2), batch(3, 7, 6, seed=3)]


class Stream:
    """A stream that repeats some batches without end."""

    def __init__(self, *batches):
        self.batches = batches

    def dataset(self, start=0, replicas=1, first=0, here=1):
        ids = tf.TensorSpec((None, None), tf.int32)
        weights = tf.TensorSpec((None, None), tf.float32)
        return tf.data.Dataset.from_generator(
            lambda: iter(self.batches), output_signature=((ids, ids), ids, weights)
        ).repeat()


CLIPPED = functools.partial(optimizer, clip_norm=0.3)


def make_model(rate=0.003, dropout=0.0, body=small_model, rule=CLIPPED):
    keras.utils.set_random_seed(2)
    model = body(dropout=dropout)
    fit.compile_model(model, rule(rate), LabelSmoothedCrossEntropy(0.1))
    return model


def feed_of(function, *batches):
    """The feed of an endless repetition of the batches, like that of `fit.attach`."""
    data = distribute(function.strategy, Stream(*batches), 0)
    new_means = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: function.start_epoch()
    )
    return fit.Feed(lambda step: data, function.ending, (new_means,))


def train(batches, steps, steps_per_epoch=100, **options):
    """The model, its train function, and the reports of the steps."""
    of_model = options.keys() & {"rate", "dropout", "body", "rule"}
    model = make_model(**{name: options.pop(name) for name in of_model})
    reports = Reports()
    function = TrainFunction(model, tf.distribute.get_strategy(), **options)
    fit.fit(model, feed_of(function, *batches), min(steps_per_epoch, steps), steps, [reports])
    return model, function, reports.steps


def weights_differ(model, reference):
    return max(
        np.abs(here - there).max()
        for here, there in zip(model.get_weights(), reference.get_weights(), strict=True)
    )


@pytest.mark.parametrize(("rule", "rate"), [(CLIPPED, 0.003), (keras.optimizers.SGD, 0.1)])
def test_batches_that_are_added_up_make_the_step_of_one_batch_of_all_their_rows(rule, rate):
    """By gradient descent too: Adam's steps are as long for gradients of any length."""
    whole, _, whole_reports = train([joined(THREE)], steps=5, rule=rule, rate=rate)
    added, _, added_reports = train(THREE, steps=5, accumulate=3, rule=rule, rate=rate)
    assert weights_differ(whole, added) < 1e-5
    expected = pytest.approx([report["loss"] for report in whole_reports], rel=1e-5)
    assert [report["loss"] for report in added_reports] == expected
    expected = [report["labels"] for report in whole_reports]
    assert [report["labels"] for report in added_reports] == expected
    assert weights_differ(whole, make_model()) > 1e-3


@pytest.fixture
def eagerly():
    """Where the numbers of a few steps count, and not their graph."""
    with eager_training():
        yield


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_dropout_is_on_in_a_step(dropout):
    """With fixed weights, the loss of a repeated batch changes only through dropout."""
    _, _, reports = train(THREE[:1], steps=2, rate=0.0, dropout=dropout)
    same = reports[0]["loss"] == pytest.approx(reports[1]["loss"], rel=1e-6)
    assert same == (dropout == 0.0)


def expected_counts(model, batch):
    """Summed loss (section 5.4, epsilon 0.1), labels guessed right, and labels, in float64."""
    inputs, labels, weights = batch
    logits = np.asarray(model(inputs))
    losses = paper.label_smoothed_cross_entropy(labels, logits, 0.1)
    right = logits.argmax(-1) == labels
    return np.array([(losses * weights).sum(), (right * weights).sum(), weights.sum()])


FRACTIONS = [
    (inputs, labels, np.random.default_rng(6).random(labels.shape).astype(np.float32))
    for inputs, labels, _ in THREE
]


@pytest.mark.parametrize(
    ("batches", "accumulate"),
    [(THREE, 1), (THREE, 3), (FRACTIONS, 2)],
    ids=["whole labels-1", "whole labels-3", "weights between-2"],
)
def test_reports_are_numpy_s_means_over_the_labels_of_the_epoch_so_far(batches, accumulate):
    model, _, reports = train(batches, steps=4, steps_per_epoch=2, rate=0.0, accumulate=accumulate)
    counts = [expected_counts(model, batches[number % 3]) for number in range(4 * accumulate)]
    assert len(reports) == 4
    for step, report in enumerate(reports):
        loss, right, total = sum(counts[step // 2 * 2 * accumulate : (step + 1) * accumulate])
        assert report["labels"] == pytest.approx(total)
        assert report["accuracy"] == pytest.approx(right / total, rel=1e-6)
        assert report["loss"] == pytest.approx(loss / total, rel=1e-5)


@pytest.mark.parametrize(("static_shapes", "graphs"), [(False, 1), (True, 2)])
def test_one_graph_serves_all_shapes_or_each_has_its_own(static_shapes, graphs):
    """Two shapes, twice each."""
    _, function, _ = train(THREE[:2], steps=2, accumulate=2, static_shapes=static_shapes)
    assert function._update_all.experimental_get_tracing_count() == graphs
    assert function._add_all.experimental_get_tracing_count() == graphs


# Operations whose result shapes depend on values.
DYNAMIC = {
    *("Where", "Unique", "UniqueV2", "DynamicPartition", "ListDiff", "NonMaxSuppression"),
    *("RaggedRange", "StringSplit", "PyFunc"),
}


def nodes(concrete):
    """All nodes of a compiled function and of those that it calls."""
    graph = concrete.graph.as_graph_def(add_shapes=True)
    return [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]


def with_unknown_shapes(nodes):
    """The names of the nodes that have a result with an unknown dimension."""
    return [
        node.name
        for node in nodes
        for shape in node.attr["_output_shapes"].list.shape
        if shape.unknown_rank or -1 in [dimension.size for dimension in shape.dim]
    ]


def graphs_of(body, accumulate, static_shapes):
    """The nodes of each compiled function after a step."""
    options = {"dropout": 0.1, "body": body, "accumulate": accumulate}
    _, function, _ = train(THREE[:1], steps=1, static_shapes=static_shapes, **options)
    return [
        nodes(concrete)
        for pair in function._compiled.values()
        for concrete in pair
        if concrete is not None
    ]


@pytest.mark.parametrize(
    ("body", "accumulate", "least"), [(transformer, 1, 1000), (small_model, 2, 100)]
)
def test_with_static_shapes_no_tensor_or_operation_is_dynamic(body, accumulate, least):
    graphs = graphs_of(body, accumulate, static_shapes=True)
    assert len(graphs) == accumulate
    for graph in graphs:
        assert sum("_output_shapes" in node.attr for node in graph) > least
        assert with_unknown_shapes(graph) == []
        assert {node.op for node in graph} & DYNAMIC == set()


def test_control_without_static_shapes_many_tensors_have_none():
    for graph in graphs_of(small_model, 2, static_shapes=False):
        assert len(with_unknown_shapes(graph)) > 20


ALIKE = [batch(4, 5, 6, seed=4), batch(4, 5, 6, seed=5)]


@pytest.mark.parametrize(
    ("body", "accumulate", "static_shapes"),
    [
        pytest.param(small_model, 1, False, marks=pytest.mark.slow),
        (small_model, 2, True),
        pytest.param(transformer, 1, False, marks=pytest.mark.slow),
        pytest.param(transformer, 2, True, marks=pytest.mark.slow),
    ],
)
def test_xla_gives_the_same_losses_and_weights(body, accumulate, static_shapes):
    options = {"steps": 3, "accumulate": accumulate, "body": body}
    plain, _, plain_reports = train(ALIKE, **options)
    compiled, _, reports = train(ALIKE, static_shapes=static_shapes, jit_compile=True, **options)
    expected = pytest.approx([report["loss"] for report in plain_reports], abs=1e-4)
    assert [report["loss"] for report in reports] == expected
    assert weights_differ(plain, compiled) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("body", [small_model, transformer])
def test_the_whole_step_with_its_update_compiles_under_xla(body):
    first, second = (tf.nest.map_structure(tf.constant, batch) for batch in ALIKE)
    plain, plain_function, _ = train(ALIKE, steps=0, accumulate=2, body=body)
    whole, function, _ = train(ALIKE, steps=0, accumulate=2, body=body)
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
    assert weights_differ(plain, make_model(body=body)) > 1e-3


@pytest.mark.usefixtures("eagerly")
def test_a_callback_ends_training_after_the_step():
    model = make_model()
    reports = Reports()
    function = TrainFunction(model, tf.distribute.get_strategy())
    asking = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: step == 1 and function.ending.ask()
    )
    fit.fit(model, feed_of(function, *THREE), 5, 100, [reports, asking])
    assert len(reports.steps) == 2


@pytest.mark.usefixtures("eagerly")
def test_a_label_that_does_not_count_has_no_part_in_the_step():
    inputs, labels, weights = joined(THREE)
    elsewhere = np.where(weights > 0, labels, 5)
    model, _, _ = train([(inputs, labels, weights)], steps=3)
    changed, _, _ = train([(inputs, elsewhere, weights)], steps=3)
    assert weights_differ(model, changed) == 0
    counting, _, _ = train([(inputs, elsewhere, np.ones_like(weights))], steps=3)
    assert weights_differ(model, counting) > 1e-3


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_step_in_which_no_label_counts_changes_nothing(accumulate):
    inputs, labels, weights = THREE[0]
    nothing = (inputs, labels, np.zeros_like(weights))
    model, _, reports = train([nothing], steps=2, accumulate=accumulate)
    assert weights_differ(model, make_model()) == 0
    assert reports[-1] == {"loss": 0.0, "accuracy": 0.0, "labels": 0.0}


def test_the_private_attributes_of_keras_that_a_step_replaces_are_there():
    """`_all_reduce_sum_gradients` of the optimizer adds gradients up over replicas, after each
    replica's were clipped: ours are added up before. `_distribute_strategy` of a model makes
    `fit` build it from a batch of every replica: ours is built.
    """
    model = make_model()
    assert callable(model.optimizer._all_reduce_sum_gradients)
    assert isinstance(model._distribute_strategy, tf.distribute.Strategy | None)
    TrainFunction(model, tf.distribute.get_strategy())
    assert model.optimizer._all_reduce_sum_gradients is list
    assert model._distribute_strategy is None
