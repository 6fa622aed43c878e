"""How many products of a forward pass wait for one another, counted in a model's graph ("sequential
operations" of Vaswani et al. 2017, table 1).
"""

import keras
import tensorflow as tf

from keras_transformer.training.cost import LOOPS, RECURRENT, TERMS, body, graph_of, turns


def sequential_products(model: keras.Model, inputs) -> int:
    """How many matrix products and convolutions of a forward pass wait for one another: the longest
    chain of them in its graph, which no number of processors makes shorter.

    Args:
        model: of any task.
        inputs: arrays or specs of its inputs, every dimension known.
    """
    return _longest_chain(graph_of(model, inputs))


def _longest_chain(graph: tf.Graph) -> int:
    """The most products on a way through a graph."""
    longest = {}
    for operation in graph.get_operations():
        own = 0
        if operation.type == RECURRENT:
            own = operation.inputs[0].shape[0 if operation.get_attr("time_major") else 1]
        elif operation.type in TERMS:
            own = 1
        elif operation.type in LOOPS:
            own = turns(operation) * _longest_chain(body(operation))
        before = (longest[tensor.op] for tensor in operation.inputs)
        longest[operation] = own + max(before, default=0)
    return max(longest[output.op] for output in graph.outputs)
