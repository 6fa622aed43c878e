"""One update from many batches (Vaswani et al. 2017, section 5.1: 25,000 tokens an update; section
5.2: one machine with 8 GPUs).

    gradient = d/d theta  sum of weight * loss of a label  /  sum of weights

Both sums are over all batches of a step, on all replicas. A mean of the batches' means would weigh
a label by the number of its neighbours, and depend on how the batches are spread.
"""

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.training.ending import Ending
from keras_transformer.training.objective import LIKELIHOOD, Objective
from keras_transformer.training.replicas import has_hosts


class TrainFunction:
    """What `model.fit` calls for each update: it takes the step's batches, adds up their gradients,
    and applies them once.

    A batch is Keras' triple (inputs, labels, weights): labels int32 (B, T), weights float32 of that
    shape; or (B,) for a task with one label an example, or of any other shape. A call takes an
    iterator over a distributed dataset of batches and returns means of the epoch so far, over all
    replicas: "loss" and "accuracy" per label that counts; and "labels", the sum of their weights.

    Args:
        model: gives logits (B, T, V) for such inputs; compiled in the strategy's scope, with a
            built optimizer and a loss whose `call` gives float32 losses (B, T); already restored.
        strategy: from `replicas.make_strategy`, of R replicas.
        accumulate: K, how many batches each replica adds up before an update; K times R batches
            make a step.
        static_shapes: compile one graph for each shape, in which every dimension is known; else
            one graph for all shapes.
        jit_compile: compile forward and backward pass by XLA.
        objective: what a batch adds to the loss, one of `training.objective`.
    """

    def __init__(
        self,
        model: keras.Model,
        strategy: tf.distribute.Strategy,
        accumulate: int = 1,
        static_shapes: bool = False,
        jit_compile: bool = False,
        objective: Objective = LIKELIHOOD,
    ):
        self.objective = objective
        self.model = model
        self.strategy = strategy
        self.accumulate = accumulate
        self.static_shapes = static_shapes
        self.ending = Ending(model, has_hosts(strategy))
        if jit_compile:
            self._gradients = tf.function(self._gradients, jit_compile=True)
        # Keras would sum the gradients over the replicas after clipping each replica's share. Here
        # the optimizer gets the sums.
        model.optimizer._all_reduce_sum_gradients = list
        # Keras builds a model of a strategy's scope from the mean of the replicas' batches, which
        # must then have one shape. This model is built already.
        model._distribute_strategy = None
        model.train_function = self
        with strategy.scope():
            shapes = [*(variable.shape for variable in model.trainable_variables), 3]
            self._sums = [_local(shape) for shape in shapes] if accumulate > 1 else []
        if strategy.num_replicas_in_sync > 1:
            tf.function(lambda: strategy.run(self._part_random_numbers), autograph=False)()
        self._add_all = tf.function(self._add_all)
        self._update_all = tf.function(self._update_all)
        self._compiled = {}
        self.start_epoch()

    def start_epoch(self) -> None:
        """Start the means of a new epoch."""
        self._epoch = np.zeros(3)

    def __call__(self, iterator):
        for _ in range(self.accumulate - 1):
            batch = next(iterator)
            self._of_shape(batch, iterator)[0](batch)
        batch = next(iterator)
        update = self._of_shape(batch, iterator)[1]
        sums = update(batch, tf.constant(self.ending.votes)).numpy()
        self._epoch = self._epoch + sums[:3]
        self.ending.count(*sums[3:])
        labels, loss, correct = map(float, self._epoch)
        count = labels or 1.0
        return {"loss": loss / count, "accuracy": correct / count, "labels": labels}

    def _of_shape(self, batch, iterator):
        """Return the two compiled functions for batches of this shape: add up, and update."""
        spec = iterator.element_spec
        if self.static_shapes:
            spec = tf.nest.map_structure(tf.type_spec_from_value, batch)
        shape = tuple(tf.nest.flatten(spec))
        if shape not in self._compiled:
            votes = tf.TensorSpec((2,), tf.float32)
            add = self._add_all.get_concrete_function(spec) if self.accumulate > 1 else None
            self._compiled[shape] = add, self._update_all.get_concrete_function(spec, votes)
        return self._compiled[shape]

    def _part_random_numbers(self):
        """Let each replica draw its own dropout: Keras lets all draw the same. The first, whose
        states are saved, draws as one replica alone does.
        """
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        for state in self.model.variables:
            if state.path.endswith("seed_generator_state"):
                state.assign_add(tf.cast(tf.stack([replica, 0]), state.dtype))

    def _gradients(self, batch, divisor):
        """Differentiate one batch on one replica: gradients of the summed losses divided by the sum
        of the weights of the whole step; and counts, float32 (3,): sums of the weights, of the
        losses, and of the weights of the labels that were predicted right.
        """
        inputs, labels, weights = batch
        with tf.GradientTape() as tape:
            losses, logits = self.objective(self.model, inputs, labels, weights)
        # Flat, as in the loss: TensorFlow would cast logits of two shapes to float32 twice.
        flat = tf.reshape(logits, (-1, logits.shape[-1]))
        labels = tf.reshape(labels, (-1,))
        weights = tf.reshape(weights, (-1,))
        right = tf.argmax(flat, axis=-1, output_type=labels.dtype) == labels
        counts = tf.stack(
            [tf.reduce_sum(weights), losses, tf.reduce_sum(weights * tf.cast(right, weights.dtype))]
        )
        # Compute the counts first: the gradient can then take the logits' place in memory.
        with tf.control_dependencies([counts]):
            upstream = 1.0 / divisor
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
        for total, value in zip(self._sums, [*gradients, counts], strict=True):
            total.assign_add(value)

    def _update(self, batch, votes):
        """Update the weights; return the step's counts and votes of all replicas, (5,)."""
        replicas = tf.distribute.get_replica_context()
        if self.accumulate == 1:
            total_weight = replicas.all_reduce("SUM", tf.reduce_sum(batch[2]))
            gradients, counts = self._gradients(batch, _divisor(total_weight))
        else:
            self._add(batch)
            *gradients, counts = (total.read_value() for total in self._sums)
        sums = [*gradients, tf.concat([counts, votes], 0)]
        *gradients, counts = replicas.all_reduce("SUM", sums)
        if self.accumulate > 1:
            gradients = [gradient / _divisor(counts[0]) for gradient in gradients]
            for total in self._sums:
                total.assign(tf.zeros_like(total))
        self.model.optimizer.apply(gradients, self.model.trainable_variables)
        return counts


def _divisor(total_weight):
    # If no label of a step counts, all sums are 0.
    return tf.where(total_weight > 0, total_weight, 1.0)


def _local(shape):
    """Make a variable of which each replica has its own copy."""
    on_read = tf.VariableSynchronization.ON_READ
    first = tf.VariableAggregation.ONLY_FIRST_REPLICA
    return tf.Variable(tf.zeros(shape), trainable=False, synchronization=on_read, aggregation=first)
