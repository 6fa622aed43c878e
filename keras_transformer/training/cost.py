"""What a training costs, in floating-point operations (Vaswani et al. 2017, table 2).

The paper estimates it "by multiplying the training time, the number of GPUs used, and an estimate
of the sustained single-precision floating-point capacity of each GPU" (section 6.1). Here it is
counted too: the matrix products and convolutions of a forward pass, times `Objective.passes`. What
is not counted, such as softmax and normalization, is a few percent.
"""

import dataclasses
import itertools
import math
import statistics
import time
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf

# All iterations of an LSTM on a GPU, in one operation.
RECURRENT = "CudnnRNNV3"


def _inner(flag):
    """Count the terms of each entry of a matrix product: the inner dimension."""

    def terms(operation):
        left = operation.inputs[0].shape
        return left[-2] if operation.get_attr(flag) else left[-1]

    return terms


def _window(axes):
    """Count the terms of each entry of a convolution: the size of its filter."""
    return lambda operation: math.prod(operation.inputs[1].shape[:axes])


def _summed(operation):
    """Count the terms of each entry of an einsum: the sizes of letters that its result lacks."""
    inputs, _, result = operation.get_attr("equation").decode().partition("->")
    sizes = {}
    for letters, tensor in zip(inputs.split(","), operation.inputs, strict=True):
        # An ellipsis stands for the axes that no letter names.
        unnamed = "." * (len(tensor.shape) - len(letters.replace("...", "")))
        sizes.update(zip(letters.replace("...", unnamed), tensor.shape, strict=True))
    return math.prod(size for letter, size in sizes.items() if letter not in result)


# The terms, products of two numbers, that each entry of an operation's result sums.
TERMS = {
    "MatMul": _inner("transpose_a"),
    "BatchMatMulV2": _inner("adj_x"),
    "Conv2D": _window(3),
    "DepthwiseConv2dNative": _window(2),
    "Einsum": _summed,
    # cuDNN's LSTM: four gates from x and h.
    RECURRENT: lambda lstm: 4 * (lstm.inputs[0].shape[-1] + lstm.outputs[0].shape[-1]),
}
# TensorFlow's loops. Their second input is the most iterations, which Keras sets to the length.
LOOPS = ("While", "StatelessWhile")
# Number of updates whose mean operations are counted.
SAMPLE = 300
# Width of the matrices that measure a device's rate, and how many products: the median counts.
WIDTH = 2048
ROUNDS = 5


@dataclasses.dataclass(frozen=True)
class Cost:
    """The cost of a training: the counted operations of its matrix products and convolutions, its
    seconds, its devices, and the operations a second that each sustains in a large matrix product.
    """

    counted: float
    seconds: float
    devices: int
    sustained: float

    @property
    def estimated(self) -> float:
        """Operations as the paper estimates them."""
        return self.seconds * self.devices * self.sustained

    def as_dict(self) -> dict[str, float]:
        """Return the four fields and the estimate, by name, for a file."""
        return {**dataclasses.asdict(self), "estimated": self.estimated}

    def describe(self) -> str:
        devices = f"{self.devices} {'device' if self.devices == 1 else 'devices'}"
        return (
            f"cost: {self.counted:.2g} operations counted; {self.estimated:.2g} as the paper "
            f"estimates ({self.seconds / 60:.1f} min x {devices} x {self.sustained / 1e9:.0f} "
            f"GFLOP/s), of which {self.counted / self.estimated:.0%} were counted"
        )


def forward_operations(model: keras.Model, inputs) -> int:
    """Count the operations of a model's forward pass in its graph, for arrays or specs of inputs of
    which every dimension is known.
    """
    specs = tf.nest.map_structure(lambda array: tf.TensorSpec(array.shape, array.dtype), inputs)
    forward = tf.function(lambda x: model(x), autograph=False).get_concrete_function(specs)
    return _operations(forward.graph)


def _operations(graph):
    """Count the operations that the outputs of a graph need."""
    total = 0
    needed = {output.op for output in graph.outputs}
    # A graph lists each operation after those that it needs.
    for operation in reversed(graph.get_operations()):
        if operation not in needed:
            continue
        needed |= {tensor.op for tensor in operation.inputs}
        if operation.type in TERMS:
            entries = operation.outputs[0].shape.num_elements()
            total += 2 * entries * TERMS[operation.type](operation)
        elif operation.type in LOOPS:
            total += turns(operation) * _operations(body(operation))
    return total


def turns(loop: tf.Operation) -> int:
    """Return the number of iterations of a loop over time, such as that of an LSTM."""
    with tf.compat.v1.Session(graph=loop.graph) as session:
        return int(session.run(loop.inputs[1]))


def body(loop: tf.Operation) -> tf.Graph:
    """Return the graph of a loop's iteration."""
    return loop.graph._get_function(loop.get_attr("body").name).graph


def operations_of_an_update(model: keras.Model, batches: Iterable, parts: int = 1) -> float:
    """Count the operations of the forward passes of an update of `parts` batches: the mean of the
    first updates of a stream of triples (inputs, labels, weights) of arrays.
    """
    counts = {}
    total = 0
    sample = list(itertools.islice(batches, SAMPLE * parts))
    for inputs, _, _ in sample:
        shapes = str(tf.nest.map_structure(np.shape, inputs))
        if shapes not in counts:
            counts[shapes] = forward_operations(model, inputs)
        total += counts[shapes]
    return total * parts / len(sample)


def sustained_rate(dtype: str) -> float:
    """Measure operations a second of a product of square matrices on TensorFlow's first device."""
    a = tf.cast(tf.random.stateless_normal((WIDTH, WIDTH), (1, 2)), dtype)
    seconds = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        # Fetch one number, to wait until a GPU has finished.
        tf.matmul(a, a)[0, 0].numpy()
        seconds.append(time.perf_counter() - began)
    return 2 * WIDTH**3 / statistics.median(seconds[1:])
