"""What a training step of ours is made of: its parts compiled alone, forward and backward, in the
shapes of one batch.
"""

import statistics
import time

import keras
import tensorflow as tf

from benchmarks import our_training
from benchmarks.batches import Batches
from benchmarks.sizes import DROPOUT, LABEL_SMOOTHING
from benchmarks.trainers.ours import bare_step
from benchmarks.turns import Parent
from keras_transformer import layers
from keras_transformer.training.loss import label_smoothed_cross_entropy

REPEATS = 7


def seconds_of(function, *inputs):
    """The median of some calls, the first left out."""
    seconds = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        tf.nest.map_structure(lambda tensor: tensor.numpy(), function(*inputs))
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def there_and_back(forward, *inputs, variables=()):
    """Seconds of a piece with its gradients, for an upstream gradient that is there already."""
    upstream = tf.random.normal(tf.shape(forward(*inputs)))

    @tf.function
    def run(upstream, *inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = forward(*inputs)
        gradients = tape.gradient(outputs, [*inputs, *variables], tf.cast(upstream, outputs.dtype))
        # Enough of each result that none is pruned from the graph, too little to cost.
        return [
            tf.reshape(tensor, (-1,))[:1] for tensor in [outputs, *gradients] if tensor is not None
        ]

    return seconds_of(run, upstream, *inputs)


def measure(task, precision):
    """Seconds by piece, all the calls of it in a step together; "whole step" among them."""
    size = task["size"]
    vocabulary_size = task["vocabulary_size"]
    model = our_training.compiled(size, vocabulary_size, precision, DROPOUT, LABEL_SMOOTHING)
    dtype = model.compute_dtype
    n, h, d_model, d_ff = (size[name] for name in ("num_layers", "num_heads", "d_model", "d_ff"))
    batches = Batches(task["batches"])
    source, shifted, target = map(tf.constant, batches.shifted(task["batch"]))
    (b, s) = source.shape
    t = target.shape[1]

    def normal(*shape):
        return tf.cast(tf.random.normal(shape), dtype)

    def product(rows, inner, columns, transpose_b=False):
        kernel = normal(columns, inner) if transpose_b else normal(inner, columns)
        return there_and_back(
            lambda x, w: tf.matmul(x, w, transpose_b=transpose_b), normal(rows, inner), kernel
        )

    pieces = {
        "products d x d": n
        * (6 * product(b * s, d_model, d_model) + 6 * product(b * t, d_model, d_model)),
        "products d x d_ff, d_ff x d": n
        * sum(product(b * w, d_model, d_ff) + product(b * w, d_ff, d_model) for w in (s, t)),
        "product d x V": product(b * t, d_model, vocabulary_size, transpose_b=True),
    }

    masks = (
        layers.padding_mask(source)[:, None],
        layers.causal_mask(t)[:, None],
        layers.padding_mask(source)[:, None],
    )
    shapes = ((s, s), (t, t), (t, s))
    whole = products = heads = 0.0
    for mask, (queries, keys) in zip(masks, shapes, strict=True):
        q = normal(b, h, queries, d_model // h)
        k = normal(b, h, keys, d_model // h)
        products += there_and_back(lambda q, k: tf.matmul(q, k, transpose_b=True), q, k)
        products += there_and_back(tf.matmul, normal(b, h, queries, keys), k)
        whole += there_and_back(
            lambda q, k, v, mask=mask: layers.scaled_dot_product_attention(q, k, v, mask), q, k, k
        )
        for width in (queries, keys, keys, queries):
            split = there_and_back(
                lambda x: tf.transpose(tf.reshape(x, (b, -1, h, d_model // h)), (0, 2, 1, 3)),
                normal(b, width, d_model),
            )
            heads += split
    pieces["attention: its two products"] = n * products
    pieces["attention: scaling, mask, softmax"] = n * (whole - products)
    pieces["attention: heads split and joined"] = n * heads

    feed_forward = layers.FeedForward(
        d_ff, dtype=model.dtype_policy if precision == "float32" else "mixed_bfloat16"
    )
    feed_forward.build((None, None, d_model))
    whole = sum(
        there_and_back(
            feed_forward, normal(b, w, d_model), variables=feed_forward.trainable_variables
        )
        for w in (s, t)
    )
    pieces["feed-forward: bias, ReLU, casts"] = n * whole - pieces["products d x d_ff, d_ff x d"]

    def post_norm(dropout, width):
        layer = layers.PostNorm(dropout, dtype=feed_forward.dtype_policy)
        layer.build((None, None, d_model))
        x = normal(b, width, d_model)
        y = normal(b, width, d_model)
        return there_and_back(
            lambda x, y: layer(x, sublayer=lambda _: (y, None), training=True)[0],
            x,
            y,
            variables=layer.trainable_variables,
        )

    without = n * (2 * post_norm(0.0, s) + 3 * post_norm(0.0, t))
    pieces["layer norm, residual"] = without
    pieces["dropout of sublayers"] = (
        n * (2 * post_norm(DROPOUT, s) + 3 * post_norm(DROPOUT, t)) - without
    )

    table = model.embedding.trainable_variables

    def embedded(ids):
        return lambda: model.embedding(ids, training=True)

    pieces["embedding, positions, dropout"] = there_and_back(embedded(source), variables=table)
    pieces["embedding, positions, dropout"] += there_and_back(embedded(shifted), variables=table)
    logits = tf.random.normal((b, t, vocabulary_size))
    pieces["loss"] = there_and_back(
        lambda z: label_smoothed_cross_entropy(target, z, LABEL_SMOOTHING), logits
    )
    pieces["accuracy"] = seconds_of(
        tf.function(lambda z: tf.reduce_sum(tf.argmax(z, axis=-1))), logits
    )

    gradients = [tf.random.normal(variable.shape) for variable in model.trainable_variables]
    update = tf.function(lambda *values: model.optimizer.apply(values, model.trainable_variables))
    pieces["Adam"] = seconds_of(lambda: (update(*gradients), tf.zeros(()))[1])
    if precision != "float32":
        weights = [variable for variable in model.trainable_variables if len(variable.shape) > 1]
        casts = sum(
            there_and_back(lambda x: tf.cast(x, dtype), tf.convert_to_tensor(weight))
            for weight in weights
        )
        pieces["weights and their gradients cast"] = casts
    step = bare_step(model)
    pieces["whole step"] = seconds_of(step, source, shifted, target)
    return pieces


def main():
    parent = Parent()
    keras.utils.set_random_seed(our_training.SEED)
    parent.say(ready=True)
    for _ in parent.orders():
        parent.say(
            **{precision: measure(parent.task, precision) for precision in ("float32", "bfloat16")}
        )


if __name__ == "__main__":
    main()
