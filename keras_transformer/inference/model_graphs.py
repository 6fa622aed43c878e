"""A translator as TensorFlow graphs of ids (Vaswani et al. 2017, section 3), for search, scores and
attention.
"""

import uuid
from collections.abc import Callable

import tensorflow as tf
from tensorflow.python.eager.context import anonymous_name

from keras_transformer.decoding.candidates import token_log_probabilities
from keras_transformer.models import EncoderDecoder, Ensemble
from pipelines.special_ids import BOS, PAD

IDS = tf.TensorSpec([None, None], tf.int32)


def traced(function: Callable, *inputs: tf.TensorSpec) -> tf.types.experimental.PolymorphicFunction:
    """Make a graph of a function that has no Python control flow over tensors.

    AutoGraph, which would look for it, takes two thirds of the time of a first call (measured:
    16.5 s of processor time with it, 6.1 s without).
    """
    return tf.function(function, input_signature=inputs, autograph=False)


class LaidOutTable(tf.saved_model.experimental.TrackableResource):
    """The table of a model's projection in the layout of decoding steps, computed by each call
    until it is fixed: when an export is loaded, or by `lay_out` once weights no longer change.
    """

    def __init__(self, model: EncoderDecoder):
        super().__init__()
        self._compute = lambda: model.projection.matrix().laid_out
        # Traced, to know its shape without computing it.
        [table] = traced(self._compute).get_concrete_function().outputs
        self._spec = {"dtype": table.dtype, "shape": table.shape}
        _ = self.resource_handle

    def read(self) -> tf.Tensor:
        """Return the table, (d_model, at least V)."""
        handle = self.resource_handle

        def laid_out():
            table = tf.raw_ops.ReadVariableOp(resource=handle, dtype=self._spec["dtype"])
            return tf.ensure_shape(table, self._spec["shape"])

        return tf.cond(tf.raw_ops.VarIsInitializedOp(resource=handle), laid_out, self._compute)

    def _create_resource(self):
        # An anonymous resource is freed with its owner. A server's session makes the handle anew at
        # each run, and finds the resource by a name, which must be unique.
        in_session = not tf.executing_eagerly() and not tf.inside_function()
        name = f"table_{uuid.uuid4()}" if in_session else anonymous_name()
        return tf.raw_ops.VarHandleOp(**self._spec, shared_name=name)

    def lay_out(self) -> None:
        """Fix the table as it is now."""
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=self._compute())

    _initialize = lay_out


def laid_out_tables(model: EncoderDecoder | Ensemble) -> list[LaidOutTable]:
    """Return a table for each model, also of an ensemble; none if one reads its table in place."""
    models = getattr(model, "models", [model])
    are_laid_out = all(member.projection.is_laid_out for member in models)
    return [LaidOutTable(member) for member in models] if are_laid_out else []


def shifted(target: tf.Tensor) -> tf.Tensor:
    """Return the decoder's inputs for targets (B, T): BOS, then all tokens but the last."""
    return tf.concat([tf.fill([tf.shape(target)[0], 1], BOS), target[:, :-1]], axis=1)


class Graphs:
    """Encoding, scores and next tokens of a model without attention, such as an `Ensemble`."""

    def __init__(self, model: Ensemble):
        self.model = model
        # From sources (B, S).
        self.encode = traced(model.encode, IDS)
        # Logits (B, T, V) from sources (B, S) and the decoder's inputs (B, T).
        self.logits = traced(lambda source, inputs: model((source, inputs)), IDS, IDS)

    def log_probabilities(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Return log P of each token of targets (B, T), 0 at padding, given sources (B, S)."""
        return token_log_probabilities(self.logits(source, shifted(target)), target)

    def next_logits(self, source: tf.Tensor, prefix: tf.Tensor) -> tf.Tensor:
        """Return logits (B, V) of the token after each prefix, (B, P) padded, of sources (B, S)."""
        inputs = tf.pad(prefix, [[0, 0], [1, 0]], constant_values=BOS)
        length = tf.math.count_nonzero(prefix != PAD, axis=1, dtype=tf.int32)
        return tf.gather(self.logits(source, inputs), length, batch_dims=1)


class AttentionGraphs(Graphs):
    """`Graphs` of an `EncoderDecoder`, and its attention. All but `encode` share two graphs, which
    compute attention weights. `encode` has its own: without weights, linear, low-rank and local
    attention take fewer than n^2 steps.
    """

    def __init__(self, model: EncoderDecoder):
        embedded = (None, None, model.hyperparameters.d_model)
        of_encoder = model.encoder.compute_output_shape(embedded)
        memory = tf.TensorSpec([None, None, of_encoder[-1]], model.decoder.compute_dtype)
        self.model = model
        self.encode = traced(model.encode, IDS)
        self._read = traced(model.encode_with_attention, IDS)
        self._write = traced(model.decode_with_attention, IDS, IDS, memory)

    def logits(self, source: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
        """Return logits (B, T, V) from sources (B, S) and the decoder's inputs (B, T)."""
        return self._write(source, inputs, self._read(source)[0])[0]

    def attention(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return every layer's attention: see `EncoderDecoder.attention_weights`."""
        memory, encoder = self._read(source)
        _, decoder = self._write(source, shifted(target), memory)
        return {**encoder, **decoder}
