"""The graphs that a search without TensorFlow calls (Vaswani et al. 2017, section 6.1): an encoder
and a step of the decoder, made of the live `encode` and `Stepper`, whatever the architecture.
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
    """The name, the function and the inputs of each graph; also of blocks, if the model has any."""
    steps = _Steps(module)
    of_blocks = of_blocks and module.has_blocks
    if module.encode:
        yield steps.encoder(of_blocks)
    yield steps.decoder()
    if of_blocks:
        yield steps.blocks()


class _Steps:
    """Of a module and of what its steps need of the source."""

    def __init__(self, module):
        self._stepper = module.stepper
        # It lays out its matrices: once, for all that is asked of it here.
        self._live = module.stepper()
        rows = tf.TensorSpec([], tf.int32)
        start = traced(lambda rows: module.stepper().start(rows), rows).get_concrete_function()
        self._state = start.structured_outputs
        self._encode = module.encode
        self._source = {}
        if module.encode:
            self._source = module.encode.get_concrete_function(IDS).structured_outputs

    def encoder(self, of_blocks):
        """What the steps need of sources; and last what is proposed behind BOS, if blocks are."""

        def encode(ids):
            source = self._encode(ids)
            given = tf.nest.flatten(source)
            if of_blocks:
                with tf.name_scope(PROPOSALS):
                    given.append(_first(self._stepper().first_proposals(source)))
            return _named("source", given)

        ids = tf.TensorSpec([None, None], tf.int32, name="ids")
        return "encoder", traced(encode, ids), [ids]

    def decoder(self):
        """A token of each of K hypotheses of each sentence: see `decoding.numpy_search`."""
        specifications = [
            tf.TensorSpec([None, None], tf.int32, name="ids"),
            tf.TensorSpec([], tf.int32, name="position"),
            tf.TensorSpec([None], tf.int32, name="rows"),
            tf.TensorSpec([], tf.int32, name="count"),
            *self._others(None),
        ]

        def step(ids, position, rows, count, bias, factor, *tensors):
            state, source = self._packed(tensors)
            state = tf.nest.map_structure(lambda one: tf.gather(one, rows), state)
            # Made in the graph, where its matrices are constants.
            logits, state, _ = self._stepper()(ids, position, state, source)
            return {**_likeliest(logits, count, bias, factor), **_named("next", state)}

        return "decoder", traced(step, *specifications), specifications

    def blocks(self):
        """A block of one sentence: see `decoding.numpy_blocks`."""
        size = self._live.block_size
        specifications = [
            tf.TensorSpec([1, size], tf.int32, name="ids"),
            tf.TensorSpec([], tf.int32, name="position"),
            *self._others(1),
        ]

        def block(ids, position, bias, factor, *tensors):
            stepper = self._stepper()
            state, source = self._packed(tensors)
            logits, given, state = stepper.block_alone(ids, position, state, source)
            likeliest = _likeliest(logits, 1, bias, factor)
            newest = tf.reshape(likeliest["tokens"], [size])
            before = newest[:-1]
            agrees = tf.cast((tf.reshape(ids, [size])[1:] == before) & (before != EOS), tf.int32)
            # All before the first that does not agree, and that one.
            count = 1 + tf.argmin(tf.pad(agrees, [[0, 1]]), output_type=tf.int32)
            last, given = (tf.gather(one, [count - 1]) for one in (newest, given[0]))
            length = position + count
            with tf.name_scope(PROPOSALS):
                logits = stepper.proposals(given, last, tf.reshape(length, [1]), source)
                proposed = _first(logits)[0]
            state = tf.nest.map_structure(
                lambda one, axis: one if axis < 0 else tf.gather(one, tf.range(length), axis=axis),
                state,
                self._live.growing,
            )
            return {**likeliest, "count": count, "proposed": proposed, **_named("next", state)}

        return BLOCKS, traced(block, *specifications), specifications

    def _others(self, rows):
        """What both read besides, of a number of rows."""
        shapes = loop.shape_invariants(self._state, self._live.growing)
        of_source = loop.shape_invariants(self._source, loop.fixed(self._source))
        return [
            tf.TensorSpec([None, None], tf.float32, name="bias"),
            tf.TensorSpec([None, None], tf.float32, name="factor"),
            *_specifications("state", self._state, shapes, rows),
            *_specifications("source", self._source, of_source, rows),
        ]

    def _packed(self, tensors):
        """The state and the source."""
        state = tensors[: len(tf.nest.flatten(self._state))]
        source = tensors[len(state) :]
        nests = zip((self._state, self._source), (state, source), strict=True)
        return [tf.nest.pack_sequence_as(*one) for one in nests]


def _first(logits):
    """The likeliest tokens, (B, k), from logits (B, k, V), which are laid out as rows: ONNX Runtime
    has that faster.
    """
    rows = tf.reshape(logits, [-1, logits.shape[2]])
    return tf.reshape(tf.argmax(rows, axis=1, output_type=tf.int32), [-1, logits.shape[1]])


def _named(name, nest):
    return {f"{name}_{number}": one for number, one in enumerate(tf.nest.flatten(nest))}


def _specifications(name, nest, shapes, rows):
    shapes = [[rows, *shape[1:]] for shape in tf.nest.flatten(shapes)]
    return [
        tf.TensorSpec(shape, tensor.dtype, name=key)
        for (key, tensor), shape in zip(_named(name, nest).items(), shapes, strict=True)
    ]


def _likeliest(logits, count, bias, factor):
    """What a search asks of a step besides the state."""
    size = logits.shape[-1]
    logits = tf.reshape(logits, [-1, size])
    # Positive ones divided by the factor: in place of a choice, which takes ONNX Runtime longer.
    logits = logits * factor + tf.nn.relu(logits) * (1 / factor - factor)
    never = np.zeros(size, np.float32)
    never[[PAD, BOS]] = -np.inf
    # One operation of each runtime, where the sum of exponentials is ten.
    logs, tokens = tf.math.top_k(tf.nn.log_softmax(logits) + (never + bias), count)
    return {"logs": logs, "tokens": tokens}
