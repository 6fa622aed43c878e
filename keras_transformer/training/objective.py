"""The loss of one batch (Vaswani et al. 2017, section 5.4), and objectives after the paper, which
learn more from little text.

An objective is called with a model, inputs, labels and weights. It returns the weighted sum of the
losses, and logits to compute accuracy from. It is a part of the training step's graph.
"""

import dataclasses

import keras
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Likelihood:
    """The paper's objective: the loss of every label.

        sum of weight * loss of a label

    Called with a compiled model, whose loss's `call` gives a loss for each label, its inputs,
    labels and their weights; returns a float32 scalar, and logits, (B, T, V). `passes` is the cost
    of an update in forward passes: the gradient of a product is two products of its size, so it is
    three here.
    """

    passes = 3

    def __call__(
        self, model: keras.Model, inputs, labels: tf.Tensor, weights: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        logits = model(inputs, training=True)
        return tf.reduce_sum(model.loss.call(labels, logits) * weights), logits


@dataclasses.dataclass(frozen=True)
class RDrop:
    """R-Drop (Liang et al. 2021): two passes of a batch with different dropout learn to agree.

        1/2 (L(P) + L(Q)) + alpha/4 (KL(P || Q) + KL(Q || P)),    P, Q: probabilities of the passes

    This is half of the authors' objective, so that it compares with a single pass; they use an
    alpha of 5 for translation. The logits are those of the first pass.
    """

    alpha: float

    passes = 6

    def __call__(
        self, model: keras.Model, inputs, labels: tf.Tensor, weights: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        twice = tf.nest.map_structure(lambda part: tf.concat([part, part], axis=0), inputs)
        logits = model(twice, training=True)
        losses = model.loss.call(tf.concat([labels, labels], axis=0), logits)
        likelihood = 0.5 * tf.reduce_sum(losses * tf.concat([weights, weights], axis=0))
        divergence = divergence_of_halves(logits)
        total = likelihood + 0.25 * self.alpha * tf.reduce_sum(divergence * weights)
        return total, logits[: tf.shape(labels)[0]]


@tf.custom_gradient
def divergence_of_halves(logits: tf.Tensor) -> tf.Tensor:
    """Measure how far the halves a and b of a batch of logits, float32 (2 B, T, V), disagree, in
    nats (B, T).

        KL(P || Q) + KL(Q || P) = sum_v (p_v - q_v) (a_v - b_v)
        gradient of a_v         = p_v - q_v + p_v (a_v - b_v - sum_w p_w (a_w - b_w))

    The logarithms of the two sums of exponentials cancel, because p - q adds up to 0. The gradient
    is written out, and computes P and Q again: a third of the time that TensorFlow's own gradient
    takes, and no more memory.
    """

    def parts():
        a, b = tf.split(logits, 2)
        p, q = tf.split(tf.nn.softmax(logits), 2)
        return a - b, p, q

    def mean(probabilities, values):
        return tf.reduce_sum(probabilities * values, axis=-1, keepdims=True)

    def gradient(upstream):
        difference, p, q = parts()
        weight = upstream[..., None]
        of_a = weight * (p - q + p * (difference - mean(p, difference)))
        of_b = -weight * (p - q + q * (difference - mean(q, difference)))
        return tf.concat([of_a, of_b], axis=0)

    difference, p, q = parts()
    return mean(p - q, difference)[..., 0], gradient


@dataclasses.dataclass(frozen=True)
class ScheduledSampling:
    """Scheduled sampling in two passes: some target tokens are replaced by what the model itself
    predicts (Bengio et al. 2015; Mihaylova and Martins 2019).

        p = probability * min(1, step / steps)

    The first pass reads the true target, and its likeliest token of each position replaces the next
    input with probability p. The second pass reads the mixture; it alone has gradients. The last of
    the inputs is the labels shifted right, ids (B, T).
    """

    probability: float
    steps: int

    passes = 4

    def __call__(
        self, model: keras.Model, inputs, labels: tf.Tensor, weights: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        *sources, target = inputs
        guesses = tf.argmax(model(inputs, training=False), axis=-1, output_type=target.dtype)
        step = tf.cast(model.optimizer.iterations, tf.float32)
        probability = self.probability * tf.minimum(1.0, step / self.steps)
        # The step and the batch are the seed: a resumed run draws the same.
        seed = tf.stack([tf.cast(step, tf.int32), tf.reduce_sum(labels)])
        uniform = tf.random.stateless_uniform(tf.shape(labels[:, 1:]), seed)
        replaced = (uniform < probability) & (weights[:, :-1] > 0)
        mixed = tf.where(replaced, guesses[:, :-1], target[:, 1:])
        target = tf.concat([target[:, :1], mixed], axis=1)
        return LIKELIHOOD(model, (*sources, target), labels, weights)


Objective = Likelihood | RDrop | ScheduledSampling
LIKELIHOOD = Likelihood()
