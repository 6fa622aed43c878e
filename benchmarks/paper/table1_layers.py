"""The layer types of table 1 (Vaswani et al. 2017, section 4), and what is measured of each: time
and memory of a forward and backward pass, sequential operations, and how far a layer reaches.
"""

import ctypes
import statistics
import time
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_transformer.layers import (
    LinearHeads,
    LocalHeads,
    LowRankHeads,
    SoftmaxHeads,
    SparseHeads,
)
from keras_transformer.layers.scaled_dot_product import AttentionHeads

A_ROUND = 0.2


class SelfAttention(keras.layers.Layer):
    """Attention of x (B, n, d) to itself in h heads, without the four projections, which table 1
    leaves out.
    """

    def __init__(self, heads: AttentionHeads, num_heads: int, **kwargs):
        super().__init__(**kwargs)
        self.heads = heads
        self.num_heads = num_heads

    def build(self, shape):
        of_a_head = (None, self.num_heads, None, shape[-1] // self.num_heads)
        self.heads.build(of_a_head, of_a_head, of_a_head)

    def call(self, x):
        batch, length, width = ops.shape(x)
        split = ops.reshape(x, (batch, length, self.num_heads, width // self.num_heads))
        split = ops.transpose(split, (0, 2, 1, 3))
        heads = ops.transpose(self.heads(split, split, split), (0, 2, 1, 3))
        return ops.reshape(heads, (batch, length, width))


class DilatedConvolution(keras.layers.Conv1D):
    """A convolution of kernel k for a stack in which the positions that a layer's kernel reads lie
    k times as far apart as those of the layer below: L layers reach k^L positions. As made, it is
    the lowest: they are neighbours. Each reads backwards, or the highest would miss both ends.
    """

    def climb(self) -> None:
        """Become the next layer of the stack, with the same weights."""
        self.dilation_rate = (self.dilation_rate[0] * self.kernel_size[0],)


def _attention(heads):
    return lambda length, width, num_heads, **sizes: SelfAttention(heads(length, sizes), num_heads)


LAYERS = {
    "self-attention": _attention(lambda length, sizes: SoftmaxHeads()),
    "restricted": _attention(lambda length, sizes: LocalHeads(sizes["radius"])),
    # The root of n is the stride that its authors advise.
    "sparse": _attention(lambda length, sizes: SparseHeads(round(length**0.5))),
    "low-rank": _attention(lambda length, sizes: LowRankHeads(sizes["rank"], length)),
    "linear": _attention(lambda length, sizes: LinearHeads()),
    "LSTM": lambda length, width, **sizes: keras.layers.LSTM(width, return_sequences=True),
    "GRU": lambda length, width, **sizes: keras.layers.GRU(width, return_sequences=True),
    "convolution": lambda length, width, kernel, **sizes: keras.layers.Conv1D(
        width, kernel, padding="same"
    ),
    "dilated convolution": lambda length, width, kernel, **sizes: DilatedConvolution(
        width, kernel, padding="causal"
    ),
    "separable convolution": lambda length, width, kernel, **sizes: keras.layers.SeparableConv1D(
        width, kernel, padding="same"
    ),
}


def make(name: str, length: int, **sizes: int) -> keras.layers.Layer:
    """A layer of `LAYERS` for n positions.

    Args:
        name: of the layer.
        length: n.
        sizes: `width` d, `num_heads` h, `radius` r, `rank` K, `kernel` k.
    """
    return LAYERS[name](length, **sizes)


# Operations a layer, sequential operations and longest path. The paper's table has self-attention,
# recurrence, convolution with the path of dilated kernels, and restricted self-attention; its text
# has the path of contiguous kernels and the operations of a separable convolution. Sparse, low-rank
# and linear attention are of later papers (Child et al. 2019; Wang et al. 2020; Katharopoulos et
# al. 2020).
PAPER = {
    "self-attention": ("n^2 d", "1", "1"),
    "restricted": ("r n d", "1", "n / r"),
    "sparse": ("n^1.5 d", "1", "1"),
    "low-rank": ("K n d", "1", "1"),
    "linear": ("n d^2 / h", "1", "1"),
    "LSTM": ("n d^2", "n", "n"),
    "GRU": ("n d^2", "n", "n"),
    "convolution": ("k n d^2", "1", "n / k (contiguous)"),
    "dilated convolution": ("k n d^2", "1", "log_k n"),
    "separable convolution": ("k n d + n d^2", "1", "n / k (contiguous)"),
}


def passes(layer: keras.layers.Layer, x: tf.Tensor) -> Callable[[], list[tf.Tensor]]:
    """A compiled function: forward and backward pass, the gradients of x and of the weights."""
    layer.build(x.shape)

    @tf.function(autograph=False)
    def both():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(layer(x)))
        variables = [variable.value for variable in layer.trainable_variables]
        return tape.gradient(y, [x, *variables])

    return both


def seconds(function: Callable, rounds: int) -> float:
    """The median of the rounds: seconds of a call, after a first one, where a round calls again and
    again for a fifth of a second.
    """
    times = []
    function()[0].numpy()
    for _ in range(rounds):
        calls = 0
        began = time.perf_counter()
        while not calls or time.perf_counter() - began < A_ROUND:
            # One result is fetched, so that a device has finished.
            function()[0].numpy()
            calls += 1
        times.append((time.perf_counter() - began) / calls)
    return statistics.median(times)


def resident_bytes() -> int:
    """Memory of the process now; the highest size is counted from here on (Linux, glibc)."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        # Sets the highest resident size back to that of now.
        file.write("5")
    return _resident("VmRSS")


def highest_bytes(function: Callable) -> int:
    """The highest memory of the process up to the end of a call."""
    function()[0].numpy()
    return _resident("VmHWM")


def _resident(name):
    with open("/proc/self/status") as file:
        [line] = [line for line in file if line.startswith(name)]
    return int(line.split()[1]) * 1024


def depth(layer: keras.layers.Layer, length: int, width: int) -> int:
    """Operations on the longest way through the graph of a forward pass: what no number of
    processors can do at once.
    """
    if isinstance(layer, keras.layers.RNN):
        layer.unroll = True
    x = tf.TensorSpec((1, length, width))
    layer.build(x.shape)
    graph = tf.function(layer, autograph=False).get_concrete_function(x).graph
    depths = {}
    # A graph's operations are in an order in which each follows its inputs.
    for operation in graph.get_operations():
        before = [depths[tensor.op.name] for tensor in operation.inputs]
        depths[operation.name] = 1 + max(before, default=0)
    return max(depths.values())


def layers_to_reach(layer: keras.layers.Layer, length: int, width: int) -> int:
    """How many layers lie between the first position and the last: the gradient of the last output
    is followed back, layer by layer, until it comes to the first position.

    Args:
        layer: of dtype float64, so that a small gradient does not become 0.
        length: n.
        width: d.
    """
    random = np.random.default_rng(0)
    layer.build((1, length, width))
    gradient = np.zeros((1, length, width))
    gradient[0, -1] = 1.0
    for layers in range(1, length + 1):
        x = tf.constant(random.normal(size=gradient.shape))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        gradient = tape.gradient(y, x, output_gradients=tf.constant(gradient)).numpy()
        if gradient[0, 0].any():
            return layers
        if isinstance(layer, DilatedConvolution):
            layer.climb()
        # Only where it comes from matters.
        gradient = np.sign(gradient) * random.uniform(0.5, 1.0, gradient.shape)
    return length
