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


class Pieces:
    """The pieces of a step on one batch, all the calls of each in a step together, in seconds.

    Args:
        task: what `benchmarks.train_speed` asks for.
        precision: "float32" or "bfloat16".
    """

    def __init__(self, task, precision):
        self._precision = precision
        self._size = task["size"]
        self._n = self._size["num_layers"]
        self._vocabulary_size = task["vocabulary_size"]
        sizes = (self._size, self._vocabulary_size)
        self._model = our_training.compiled(*sizes, precision, DROPOUT, LABEL_SMOOTHING)
        batch = Batches(task["batches"]).shifted(task["batch"])
        self._source, self._shifted, self._target = map(tf.constant, batch)
        self._sentences, s = self._source.shape
        self._lengths = (s, self._target.shape[1])

    def measure(self):
        """Seconds by piece; "whole step" among them."""
        pieces = self._products()
        pieces |= self._attention()
        pieces |= self._feed_forward(pieces["products d x d_ff, d_ff x d"])
        pieces |= self._norms()
        pieces |= self._ends()
        pieces |= self._update()
        step = bare_step(self._model)
        pieces["whole step"] = seconds_of(step, self._source, self._shifted, self._target)
        return pieces

    def _normal(self, *shape):
        return tf.cast(tf.random.normal(shape), self._model.compute_dtype)

    def _product(self, length, inner, columns, transpose_b=False):
        shape = (columns, inner) if transpose_b else (inner, columns)
        return there_and_back(
            lambda x, w: tf.matmul(x, w, transpose_b=transpose_b),
            self._normal(self._sentences * length, inner),
            self._normal(*shape),
        )

    def _products(self):
        d = self._size["d_model"]
        d_ff = self._size["d_ff"]
        square = sum(6 * self._product(length, d, d) for length in self._lengths)
        maps = sum(
            self._product(length, d, d_ff) + self._product(length, d_ff, d)
            for length in self._lengths
        )
        projection = self._product(self._lengths[1], d, self._vocabulary_size, transpose_b=True)
        return {
            "products d x d": self._n * square,
            "products d x d_ff, d_ff x d": self._n * maps,
            "product d x V": projection,
        }

    def _attention(self):
        """Of the encoder, of the decoder to itself, and to the memory."""
        s, t = self._lengths
        padding = layers.padding_mask(self._source)[:, None]
        causal = layers.causal_mask(t)[:, None]
        whole = products = heads = 0.0
        for mask, queries, keys in ((padding, s, s), (causal, t, t), (padding, t, s)):
            of_products, of_whole = self._one_attention(mask, queries, keys)
            products += of_products
            whole += of_whole
            heads += sum(self._split(width) for width in (queries, keys, keys, queries))
        return {
            "attention: its two products": self._n * products,
            "attention: scaling, mask, softmax": self._n * (whole - products),
            "attention: heads split and joined": self._n * heads,
        }

    def _one_attention(self, mask, queries, keys):
        h = self._size["num_heads"]
        d_k = self._size["d_model"] // h
        q = self._normal(self._sentences, h, queries, d_k)
        k = self._normal(self._sentences, h, keys, d_k)
        weights = self._normal(self._sentences, h, queries, keys)
        products = there_and_back(lambda q, k: tf.matmul(q, k, transpose_b=True), q, k)
        products += there_and_back(tf.matmul, weights, k)
        whole = there_and_back(
            lambda q, k, v: layers.scaled_dot_product_attention(q, k, v, mask)[0], q, k, k
        )
        return products, whole

    def _split(self, width):
        h = self._size["num_heads"]
        d = self._size["d_model"]
        shape = (self._sentences, -1, h, d // h)
        return there_and_back(
            lambda x: tf.transpose(tf.reshape(x, shape), (0, 2, 1, 3)),
            self._normal(self._sentences, width, d),
        )

    def _policy(self):
        return self._model.dtype_policy if self._precision == "float32" else "mixed_bfloat16"

    def _feed_forward(self, products):
        d = self._size["d_model"]
        layer = layers.FeedForward(self._size["d_ff"], dtype=self._policy())
        layer.build((None, None, d))
        variables = layer.trainable_variables
        whole = sum(
            there_and_back(layer, self._normal(self._sentences, length, d), variables=variables)
            for length in self._lengths
        )
        return {"feed-forward: bias, ReLU, casts": self._n * whole - products}

    def _norms(self):
        """Two in a layer of the encoder, three in one of the decoder."""
        s, t = self._lengths
        without, with_dropout = (
            self._n * (2 * self._post_norm(rate, s) + 3 * self._post_norm(rate, t))
            for rate in (0.0, DROPOUT)
        )
        return {"layer norm, residual": without, "dropout of sublayers": with_dropout - without}

    def _post_norm(self, dropout, length):
        layer = layers.PostNorm(dropout, dtype=self._policy())
        d = self._size["d_model"]
        layer.build((None, None, d))
        return there_and_back(
            lambda x, y: layer(x, sublayer=lambda _: (y, None), training=True)[0],
            self._normal(self._sentences, length, d),
            self._normal(self._sentences, length, d),
            variables=layer.trainable_variables,
        )

    def _ends(self):
        """What stands before the first layer and after the last."""
        embedding = self._model.embedding
        table = embedding.trainable_variables
        embedded = sum(
            there_and_back(lambda ids=ids: embedding(ids, training=True), variables=table)
            for ids in (self._source, self._shifted)
        )
        logits = tf.random.normal((*self._target.shape, self._vocabulary_size))
        loss = there_and_back(
            lambda z: label_smoothed_cross_entropy(self._target, z, LABEL_SMOOTHING), logits
        )
        right = tf.function(lambda z: tf.reduce_sum(tf.argmax(z, axis=-1)))
        return {
            "embedding, positions, dropout": embedded,
            "loss": loss,
            "accuracy": seconds_of(right, logits),
        }

    def _update(self):
        variables = self._model.trainable_variables
        gradients = [tf.random.normal(variable.shape) for variable in variables]
        update = tf.function(lambda *values: self._model.optimizer.apply(values, variables))
        pieces = {"Adam": seconds_of(lambda: (update(*gradients), tf.zeros(()))[1])}
        if self._precision != "float32":
            dtype = self._model.compute_dtype
            pieces["weights and their gradients cast"] = sum(
                there_and_back(lambda x: tf.cast(x, dtype), tf.convert_to_tensor(variable))
                for variable in variables
                if len(variable.shape) > 1
            )
        return pieces


def main():
    parent = Parent()
    keras.utils.set_random_seed(our_training.SEED)
    parent.say(ready=True)
    for _ in parent.orders():
        parent.say(
            **{
                precision: Pieces(parent.task, precision).measure()
                for precision in ("float32", "bfloat16")
            }
        )


if __name__ == "__main__":
    main()
