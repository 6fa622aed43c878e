"""One update from many batches (Vaswani et al. 2017, section 5.2: one machine with 8 GPUs; section
5.1: 25,000 tokens a batch).

The gradient is the sum of the token losses of all batches of a step, over all replicas, divided by
their target tokens. A mean of means would weigh a token by its neighbours' length, and depend on
how the batches are spread. No other module here knows TensorFlow.
"""

import contextlib
import json
import os

import keras
import tensorflow as tf

from keras_transformer.training.metrics import PAD

DISTRIBUTIONS = ("one", "mirrored", "multi_worker", "tpu")


def make_strategy(distribution, tpu=""):
    """The `tf.distribute.Strategy` of a run. To be called before anything else asks TensorFlow for
    a device.

    Args:
        distribution: "one" device; "mirrored": all GPUs of this machine; "multi_worker": all GPUs
            of all machines that `TF_CONFIG` names; "tpu".
        tpu: name or address of the TPU; "": this machine's own.

    Raises:
        ValueError: if `distribution` is none of these, or the hardware or `TF_CONFIG` does not fit
            it.
    """
    if distribution == "one":
        return tf.distribute.get_strategy()
    if distribution == "mirrored":
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    if distribution == "multi_worker":
        _check_cluster(os.environ.get("TF_CONFIG", ""))
        return tf.distribute.MultiWorkerMirroredStrategy()
    if distribution == "tpu":
        return _tpu_strategy(tpu)
    raise ValueError(
        f"`distribution` must be one of {', '.join(DISTRIBUTIONS)}. Received: {distribution!r}."
    )


def _check_cluster(text):
    expected = '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'
    try:
        cluster, task = (json.loads(text)[name] for name in ("cluster", "task"))
        is_in_it = task["index"] in range(len(cluster[task["type"]])) and task["type"] in (
            "worker",
            "chief",
        )
    except (ValueError, KeyError, TypeError):
        is_in_it = False
    if not is_in_it:
        raise ValueError(
            f"--distribution=multi_worker needs the environment variable TF_CONFIG, {expected}. "
            f"Received: {text!r}."
        )


def _tpu_strategy(tpu):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, tf.errors.OpError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"--distribution=tpu found no TPU at --tpu={tpu!r} ({reason}). Name its address, or "
            "choose another."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _has_hosts(strategy):
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy):
    """Whether this process is the one that writes files."""
    if not _has_hosts(strategy):
        return True
    resolver = strategy.cluster_resolver
    return resolver.task_id == 0 and (
        resolver.task_type == "chief" or not resolver.cluster_spec().as_dict().get("chief")
    )


def wait_for_all(strategy):
    """Wait until all hosts have come here."""
    if _has_hosts(strategy):
        tf.function(
            lambda: strategy.reduce("SUM", strategy.run(tf.ones, ([],)), axis=None), autograph=False
        )()


@contextlib.contextmanager
def telling_of_lost_hosts(strategy):
    """Raise a `ConnectionError` when another host is gone, of which there is but an echo here in
    whichever operation was under way.
    """
    try:
        yield
    except (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.CancelledError,
        tf.errors.DeadlineExceededError,
    ) as error:
        if not _has_hosts(strategy):
            raise
        reason = " ".join((str(error).partition("aborted by: ")[2] or str(error)).split())[:160]
        raise ConnectionError(
            f"another host is gone ({reason}). Start all again: the run goes on from its last "
            "checkpoint."
        ) from error


def distribute(strategy, batches, start):
    """A distributed dataset in which of R batches in a row, from `start`, a multiple of R, each of
    the R replicas takes one.
    """
    replicas = strategy.num_replicas_in_sync

    def of_this_host(context):
        here = replicas // context.num_input_pipelines
        endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        # Of data that may end, all hosts ask each other before each batch whether there is more.
        return batches.dataset(start, replicas, context.input_pipeline_id * here, here).apply(
            endless
        )

    return strategy.distribute_datasets_from_function(of_this_host)


def attach(
    model, strategy, batches, batches_before, accumulate=1, static_shapes=False, jit_compile=False
):
    """Make `model.fit` train on many batches a step.

    Args:
        model, strategy, accumulate, static_shapes, jit_compile: see `TrainFunction`.
        batches: `pipelines.batching.TrainingBatches`, or whatever has its methods `dataset` and
            `arrays`.
        batches_before: takes a step, gives how many batches were seen before it.

    Returns:
        A function that takes a step and gives the data that `model.fit` goes on with.

    Raises:
        ValueError: if another backend than TensorFlow, which leaves `fit` as it is, is to
            distribute or accumulate.
    """
    if keras.backend.backend() == "tensorflow":
        TrainFunction(model, strategy, accumulate, static_shapes, jit_compile)
        return lambda step: distribute(strategy, batches, batches_before(step))
    if strategy.num_replicas_in_sync > 1 or accumulate > 1:
        raise ValueError(
            f"KERAS_BACKEND={keras.backend.backend()} trains with --distribution=one and "
            "--accumulate=1. Received: "
            f"{strategy.num_replicas_in_sync} replicas, accumulate={accumulate}. Leave them out, "
            "or use TensorFlow."
        )
    return lambda step: batches.arrays(batches_before(step))


class TrainFunction:
    """What `model.fit` calls for each update: draws the step's batches, adds up their gradients,
    applies them once.

    Args:
        model: compiled in the strategy's scope with a `LabelSmoothedCrossEntropy` and a built
            optimizer.
        strategy: from `make_strategy`.
        accumulate: K, how many batches each replica adds up before an update; K times R batches
            make a step.
        static_shapes: compile a graph a shape, in which every dimension is known; else one graph
            for all.
        jit_compile: compile forward and backward pass by XLA.

    Call arguments:
        iterator: over a distributed dataset.

    Returns:
        Means of the epoch so far, over all replicas: "loss" and "accuracy" per target token; and
        "tokens", their number.
    """

    def __init__(self, model, strategy, accumulate=1, static_shapes=False, jit_compile=False):
        self.model = model
        self.strategy = strategy
        self.accumulate = accumulate
        self.static_shapes = static_shapes
        # Whether this host asks for an end, and for one by preemption; and whether some host did
        # the latter.
        self.votes = [0.0, 0.0]
        self.is_preempted = False
        self._gradients = (
            tf.function(self._gradients, jit_compile=True) if jit_compile else self._gradients
        )
        # Keras adds the gradients up over the replicas behind clipping, which clips each replica's
        # share. They come to it added up.
        model.optimizer._all_reduce_sum_gradients = list
        # Keras builds a model made in a strategy's scope by the mean of a batch's replicas, which
        # must then be of one shape. It is built.
        model._distribute_strategy = None
        model.train_function = self
        with strategy.scope():
            self._sums = (
                [_local(variable.shape) for variable in model.trainable_variables]
                if accumulate > 1
                else []
            )
            self._counts = _local(3) if accumulate > 1 else None
        self._add_all = tf.function(self._add_all)
        self._update_all = tf.function(self._update_all)
        self._compiled = {}
        self.start_epoch()

    def start_epoch(self):
        """Begin the means anew."""
        self._epoch = [0.0, 0.0, 0.0]

    def end_training(self, preempted=False):
        """End `model.fit` after this step; where several hosts train, after the next: all must stop
        at the same.
        """
        self.votes = [1.0, float(preempted)]
        self.model.stop_training |= not _has_hosts(self.strategy)

    def __call__(self, iterator):
        for _ in range(self.accumulate - 1):
            batch = next(iterator)
            self._of_shape(batch, iterator)[0](batch)
        batch = next(iterator)
        # The hosts vote in the step itself: one that left alone would leave the others waiting.
        *counts, stop, preempted = self._of_shape(batch, iterator)[1](
            batch, tf.constant(self.votes)
        ).numpy()
        self.model.stop_training |= bool(stop)
        self.is_preempted = bool(preempted)
        self._epoch = [
            float(total + count) for total, count in zip(self._epoch, counts, strict=True)
        ]
        tokens, loss, correct = self._epoch
        return {
            "loss": loss / max(tokens, 1),
            "accuracy": correct / max(tokens, 1),
            "tokens": tokens,
        }

    def _of_shape(self, batch, iterator):
        """The two compiled functions for batches like this one."""
        shape = tuple(
            str(source.shape) + str(target.shape)
            for (source, target), *_ in self.strategy.experimental_local_results(batch)
        )
        shape = shape if self.static_shapes else ()
        if shape not in self._compiled:
            spec = (
                tf.nest.map_structure(tf.type_spec_from_value, batch)
                if self.static_shapes
                else iterator.element_spec
            )
            votes = tf.TensorSpec((2,), tf.float32)
            add = self._add_all.get_concrete_function(spec) if self.accumulate > 1 else None
            self._compiled[shape] = add, self._update_all.get_concrete_function(spec, votes)
        return self._compiled[shape]

    def _gradients(self, batch, tokens):
        """Gradients of the summed losses divided by `tokens`; and the counts: target tokens, summed
        losses, tokens guessed right.
        """
        inputs, labels, _ = batch
        with tf.GradientTape() as tape:
            logits = self.model(inputs, training=True)
            losses = self.model.loss.total(labels, logits)
        # Flat, as in the loss: TensorFlow would cast logits of two shapes to float32 twice.
        flat = tf.reshape(logits, (-1, logits.shape[-1]))
        labels = tf.reshape(labels, (-1,))
        real = labels != PAD
        right = tf.argmax(flat, axis=-1, output_type=labels.dtype) == labels
        counts = tf.stack(
            [
                tf.math.count_nonzero(real, dtype=tf.float32),
                losses,
                tf.math.count_nonzero(real & right, dtype=tf.float32),
            ]
        )
        # Counted first: the gradient can then take the logits' place in memory.
        with tf.control_dependencies([counts]):
            upstream = 1.0 / tokens
        gradients = tape.gradient(losses, self.model.trainable_variables, upstream)
        return [tf.convert_to_tensor(gradient) for gradient in gradients], counts

    def _add_all(self, batch):
        self.strategy.run(self._add, (batch,))

    def _update_all(self, batch, votes):
        return self.strategy.experimental_local_results(
            self.strategy.run(self._update, (batch, votes))
        )[0]

    def _add(self, batch):
        gradients, counts = self._gradients(batch, tf.constant(1.0))
        for total, value in zip([*self._sums, self._counts], [*gradients, counts], strict=True):
            total.assign_add(value)

    def _update(self, batch, votes):
        replicas = tf.distribute.get_replica_context()
        if self.accumulate == 1:
            tokens = replicas.all_reduce(
                "SUM", tf.math.count_nonzero(batch[1] != PAD, dtype=tf.float32)
            )
            gradients, counts = self._gradients(batch, tf.maximum(tokens, 1.0))
            *gradients, counts = replicas.all_reduce(
                "SUM", [*gradients, tf.concat([counts, votes], 0)]
            )
        else:
            self._add(batch)
            sums = [
                *(total.read_value() for total in self._sums),
                tf.concat([self._counts.read_value(), votes], 0),
            ]
            *gradients, counts = replicas.all_reduce("SUM", sums)
            gradients = [gradient / tf.maximum(counts[0], 1.0) for gradient in gradients]
            for total in (*self._sums, self._counts):
                total.assign(tf.zeros_like(total))
        self.model.optimizer.apply(gradients, self.model.trainable_variables)
        return counts


def _local(shape):
    """A variable of which each replica has its own."""
    on_read = tf.VariableSynchronization.ON_READ
    first = tf.VariableAggregation.ONLY_FIRST_REPLICA
    return tf.Variable(tf.zeros(shape), trainable=False, synchronization=on_read, aggregation=first)
