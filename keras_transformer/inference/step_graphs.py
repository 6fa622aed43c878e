"""The graphs that a search without TensorFlow calls (Vaswani et al. 2017, section 6.1): the encoder
and a step of the decoder, traced from any model's `encode` and `Stepper`.
"""

from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import loop
from keras_transformer.inference.model_graphs import IDS, traced
from keras_transformer.inference.onnx_conversion import PROPOSALS
from keras_transformer.inference.portable_graphs import BLOCKS
from keras_transformer.inference.text_module import TextModule
from pipelines.special_ids import BOS, EOS, PAD

Graph = tuple[str, Callable, list[tf.TensorSpec]]


def graphs_of(module: TextModule, of_blocks: bool) -> Iterator[Graph]:
    """Yield each graph's name, function and inputs; with `of_blocks` also the graph of blocks, if
    the model decodes blockwise.
    """
    steps = _Steps(module)
    of_blocks = of_blocks and module.has_blocks
    if module.encode:
        yield steps.encoder(of_blocks)
    yield steps.decoder()
    if of_blocks:
        yield steps.blocks()


class _Steps:
    """Makes the graphs of a module."""

    def __init__(self, module):
        self._stepper = module.stepper
        # Made once here, for its attributes: it lays out its matrices.
        self._live = module.stepper()
        rows = tf.TensorSpec([], tf.int32)
        start = traced(lambda rows: module.stepper().start(rows), rows).get_concrete_function()
        self._state = start.structured_outputs
        self._encode = module.encode
        self._source = {}
        if module.encode:
            self._source = module.encode.get_concrete_function(IDS).structured_outputs

    def encoder(self, of_blocks):
        """Encode sources for the steps; with `of_blocks` the last output is the first proposal."""

        def encode(ids):
            source = self._encode(ids)
            tensors = tf.nest.flatten(source)
            if of_blocks:
                with tf.name_scope(PROPOSALS):
                    tensors.append(_likeliest_tokens(self._stepper().first_proposals(source)))
            return _named("source", tensors)

        ids = tf.TensorSpec([None, None], tf.int32, name="ids")
        return "encoder", traced(encode, ids), [ids]

    def decoder(self):
        """Decode a token for each of K hypotheses of each sentence: see `decoding.numpy_search`."""
        specifications = [
            tf.TensorSpec([None, None], tf.int32, name="ids"),
            tf.TensorSpec([], tf.int32, name="position"),
            tf.TensorSpec([None], tf.int32, name="rows"),
            tf.TensorSpec([], tf.int32, name="count"),
            *self._shared_inputs(None),
        ]

        def step(ids, position, rows, count, bias, factor, *tensors):
            state, source = self._packed(tensors)
            state = tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), state)
            # A new stepper, whose matrices are constants of this graph.
            logits, state, _ = self._stepper()(ids, position, state, source)
            return {**_candidates(logits, count, bias, factor), **_named("next", state)}

        return "decoder", traced(step, *specifications), specifications

    def blocks(self):
        """Verify a block of one sentence, and propose the next: see `decoding.numpy_blocks`."""
        size = self._live.block_size
        specifications = [
            tf.TensorSpec([1, size], tf.int32, name="ids"),
            tf.TensorSpec([], tf.int32, name="position"),
            *self._shared_inputs(1),
        ]

        def block(ids, position, bias, factor, *tensors):
            stepper = self._stepper()
            state, source = self._packed(tensors)
            logits, hidden, state = stepper.block_alone(ids, position, state, source)
            likeliest = _candidates(logits, 1, bias, factor)
            newest = tf.reshape(likeliest["tokens"], [size])
            before = newest[:-1]
            agrees = tf.cast((tf.reshape(ids, [size])[1:] == before) & (before != EOS), tf.int32)
            # The tokens that agree with the proposals, and the first that does not.
            count = 1 + tf.argmin(tf.pad(agrees, [[0, 1]]), output_type=tf.int32)
            last, hidden = (tf.gather(tensor, [count - 1]) for tensor in (newest, hidden[0]))
            length = position + count
            with tf.name_scope(PROPOSALS):
                logits = stepper.proposals(hidden, last, tf.reshape(length, [1]), source)
                proposed = _likeliest_tokens(logits)[0]

            def cut(tensor, axis):
                return tensor if axis < 0 else tf.gather(tensor, tf.range(length), axis=axis)

            state = tf.nest.map_structure(cut, state, self._live.growing)
            return {**likeliest, "count": count, "proposed": proposed, **_named("next", state)}

        return BLOCKS, traced(block, *specifications), specifications

    def _shared_inputs(self, rows):
        """Return the inputs that steps and blocks share, for a number of rows."""
        state_shapes = loop.shape_invariants(self._state, self._live.growing)
        source_shapes = loop.shape_invariants(self._source, loop.fixed(self._source))
        return [
            tf.TensorSpec([None, None], tf.float32, name="bias"),
            tf.TensorSpec([None, None], tf.float32, name="factor"),
            *_specifications("state", self._state, state_shapes, rows),
            *_specifications("source", self._source, source_shapes, rows),
        ]

    def _packed(self, tensors):
        """Pack flat tensors into the nests of the state and of the source."""
        count = len(tf.nest.flatten(self._state))
        state = tf.nest.pack_sequence_as(self._state, tensors[:count])
        return state, tf.nest.pack_sequence_as(self._source, tensors[count:])


def _likeliest_tokens(logits):
    """Return the likeliest tokens (B, k) from logits (B, k, V)."""
    # As rows, which is faster in ONNX Runtime.
    rows = tf.reshape(logits, [-1, logits.shape[2]])
    return tf.reshape(tf.argmax(rows, axis=1, output_type=tf.int32), [-1, logits.shape[1]])


def _named(name, nest):
    return {f"{name}_{number}": tensor for number, tensor in enumerate(tf.nest.flatten(nest))}


def _specifications(name, nest, shapes, rows):
    shapes = [[rows, *shape[1:]] for shape in tf.nest.flatten(shapes)]
    return [
        tf.TensorSpec(shape, tensor.dtype, name=key)
        for (key, tensor), shape in zip(_named(name, nest).items(), shapes, strict=True)
    ]


def _candidates(logits, count, bias, factor):
    """Return the `count` likeliest tokens and their log P, under a search's bias and factor."""
    size = logits.shape[-1]
    logits = tf.reshape(logits, [-1, size])
    # Divide positive logits by the factor, multiply others: tf.where is slower in ONNX Runtime.
    logits = logits * factor + tf.nn.relu(logits) * (1 / factor - factor)
    never = np.zeros(size, np.float32)
    never[[PAD, BOS]] = -np.inf
    # log_softmax is one operation of each runtime; a sum of exponentials would be ten.
    logs, tokens = tf.math.top_k(tf.nn.log_softmax(logits) + (never + bias), count)
    return {"logs": logs, "tokens": tokens}
