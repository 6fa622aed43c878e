"""Small claims of sections 3 and 4 (Vaswani et al. 2017), measured: `python -m
benchmarks.paper.table1_claims`.

1. "Even with k = n, however, the complexity of a separable convolution is equal to the combination
   of a self-attention layer and a point-wise feed-forward layer": operations and time of both.
2. The feed-forward network "as two convolutions with kernel size 1": the outputs' difference.
3. "Due to the reduced dimension of each head, the total computational cost is similar to that of
   single-head attention with full dimensionality": time, forward and backward.

And what the parts of eq. 1 cost apart, forward: operations and time of Q K^T, softmax and A V.
"""

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.paper.table1_layers import medians, passes
from benchmarks.tables import print_table
from keras_transformer.layers import FeedForward, MultiHeadAttention

LENGTHS = flags.DEFINE_list("lengths", ["128", "256", "512", "1024", "2048"], "n.")
WIDTH = flags.DEFINE_integer("width", 512, "d.", 1)
HEADS = flags.DEFINE_integer("heads", 8, "h.", 1)
# Seconds of a turn, in which a function is called again and again.
A_TURN = 0.2
ROUNDS = flags.DEFINE_integer("rounds", 5, "How often each time is taken; they take turns.", 1)


class SelfAttention(keras.layers.Layer):
    """`MultiHeadAttention` of x to itself."""

    def __init__(self, num_heads, width):
        super().__init__()
        self.attention = MultiHeadAttention(num_heads, width)

    def build(self, shape):
        self.attention.build(shape, shape, shape)

    def call(self, x):
        return self.attention(x, x, x)


class AttentionAndFeedForward(SelfAttention):
    """Both sublayers of an encoder layer, without their norms and residuals."""

    def __init__(self, num_heads, width):
        super().__init__(num_heads, width)
        self.feed_forward = FeedForward(width)

    def build(self, shape):
        super().build(shape)
        self.feed_forward.build(shape)

    def call(self, x):
        return self.feed_forward(super().call(x))


def random_input(length, width):
    random = np.random.default_rng(0)
    return tf.constant(random.normal(size=(1, length, width)).astype("float32"))


def separable_convolution(length, width, heads, rounds):
    """Multiplications (forward) and seconds of both sides, with d_ff = d and k = n."""
    x = random_input(length, width)
    functions = {
        "convolution": passes(keras.layers.SeparableConv1D(width, length, padding="same"), x),
        "attention": passes(AttentionAndFeedForward(heads, width), x),
    }
    seconds = medians(functions, rounds, A_TURN)
    convolution = length * length * width + length * width**2
    # Scores and their sum; four projections; two maps.
    attention = 2 * length * length * width + (4 + 2) * length * width**2
    return (
        length,
        f"{convolution / 1e6:,.0f}",
        f"{attention / 1e6:,.0f}",
        f"{attention / convolution:.1f}",
        f"{seconds['convolution'] * 1e3:.1f}",
        f"{seconds['attention'] * 1e3:.1f}",
        f"{seconds['attention'] / seconds['convolution']:.2f}",
    )


def feed_forward_as_convolutions(width):
    """Largest difference of the outputs, and of the outputs of a control with another kernel."""
    d_ff = 4 * width
    x = random_input(64, width)
    feed_forward = FeedForward(d_ff)
    feed_forward.build(x.shape)
    inner = keras.layers.Conv1D(d_ff, 1, activation="relu")
    outer = keras.layers.Conv1D(width, 1)
    expected = feed_forward(x)
    outer(inner(x))
    kernels = feed_forward.get_weights()
    for layer, (kernel, bias) in ((inner, kernels[:2]), (outer, kernels[2:])):
        layer.set_weights([kernel[None], bias])
    return float(tf.reduce_max(tf.abs(outer(inner(x)) - expected)))


def heads_and_one_head(length, width, heads, rounds):
    """Seconds of h heads of d / h and of one head of d."""
    x = random_input(length, width)
    functions = {number: passes(SelfAttention(number, width), x) for number in (heads, 1)}
    seconds = medians(functions, rounds, A_TURN)
    times = [f"{seconds[number] * 1e3:.1f}" for number in (heads, 1)]
    return length, *times, f"{seconds[heads] / seconds[1]:.2f}"


def parts_of_attention(length, width, heads, rounds):
    """Operations and seconds (forward) of the two products and of the softmax between them."""
    x = tf.reshape(random_input(length, width), (1, heads, length, width // heads))
    scores = tf.matmul(x, x, transpose_b=True)
    weights = tf.nn.softmax(scores)
    parts = (
        lambda: tf.matmul(x, x, transpose_b=True),
        lambda: tf.nn.softmax(scores),
        lambda: tf.matmul(weights, x),
    )

    def compiled(part):
        # One number of a part is fetched: a copy of all would take as long as the softmax.
        return tf.function(lambda: part()[0, 0, 0, :1], autograph=False)

    seconds = medians(dict(enumerate(map(compiled, parts))), rounds, A_TURN)
    product = 2 * length**2 * width
    # The highest score, a difference, an exponential, a sum and a quotient for each score.
    operations = (product, 5 * heads * length**2, product)
    return (
        length,
        *(f"{number / 1e6:,.0f}" for number in operations),
        *(f"{seconds[part] * 1e3:.2f}" for part in range(3)),
        f"{seconds[1] / sum(seconds.values()):.0%}",
    )


def main(_):
    sizes = (WIDTH.value, HEADS.value, ROUNDS.value)
    lengths = list(map(int, LENGTHS.value))
    print_table(
        (
            *("n = k", "separable: million products", "attention and FFN: million products", "x"),
            *("separable, ms", "attention and FFN, ms", "x"),
        ),
        [separable_convolution(length, *sizes) for length in lengths],
    )
    difference = feed_forward_as_convolutions(WIDTH.value)
    print(f"\nFFN and two convolutions of kernel 1 differ by at most {difference:.1e}")
    print_table(
        ("n", f"{HEADS.value} heads, ms", "one head, ms", "x"),
        [heads_and_one_head(length, *sizes) for length in lengths],
    )
    print_table(
        (
            *("n", "Q K^T: million operations", "softmax", "A V"),
            *("Q K^T, ms", "softmax, ms", "A V, ms", "of the time, softmax"),
        ),
        [parts_of_attention(length, *sizes) for length in lengths],
    )


if __name__ == "__main__":
    app.run(main)
