"""A translator as TensorFlow graphs of ids (Vaswani et al. 2017, section 3): what its search, its
scores and its pictures of attention call.
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

    AutoGraph, which would look for such, takes two thirds of the time of a first call
    (measured: 16.5 s of processor time with it, 6.1 s without).
    """
    return tf.function(function, input_signature=inputs, autograph=False)


class LaidOutTable(tf.saved_model.experimental.TrackableResource):
    """The table of a model's projection, laid out for steps: once, from when an export is loaded,
    or `lay_out` is called where weights do not change any more. Before, by each call anew.
    """

    def __init__(self, model: EncoderDecoder):
        super().__init__()
        self._made = lambda: model.projection.matrix().laid_out
        # Without a copy.
        [made] = traced(self._made).get_concrete_function().outputs
        self._of_table = {"dtype": made.dtype, "shape": made.shape}
        _ = self.resource_handle

    def read(self) -> tf.Tensor:
        """The table, (d_model, at least V)."""
        handle = self.resource_handle

        def laid_out():
            table = tf.raw_ops.ReadVariableOp(resource=handle, dtype=self._of_table["dtype"])
            return tf.ensure_shape(table, self._of_table["shape"])

        return tf.cond(tf.raw_ops.VarIsInitializedOp(resource=handle), laid_out, self._made)

    def _create_resource(self):
        # What is anonymous goes with who holds it. A server's session makes it anew at each run, so
        # that it has a name there, which no other may have.
        in_session = not tf.executing_eagerly() and not tf.inside_function()
        name = f"table_{uuid.uuid4()}" if in_session else anonymous_name()
        return tf.raw_ops.VarHandleOp(**self._of_table, shared_name=name)

    def lay_out(self) -> None:
        """Hold the table as it is now."""
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=self._made())

    _initialize = lay_out


def laid_out_tables(model: EncoderDecoder | Ensemble) -> list[LaidOutTable]:
    """Of each model that translates, unless a table is read in place."""
    models = getattr(model, "models", [model])
    are_laid_out = all(one.projection.is_laid_out for one in models)
    return [LaidOutTable(one) for one in models] if are_laid_out else []


def shifted(target: tf.Tensor) -> tf.Tensor:
    """What the decoder reads for targets (B, T): BOS, then all tokens but the last."""
    return tf.concat([tf.fill([tf.shape(target)[0], 1], BOS), target[:, :-1]], axis=1)


class Graphs:
    """Encoding, scoring and what comes next, by a model without attention, as an `Ensemble`."""

    def __init__(self, model: Ensemble):
        self.model = model
        # What decoding needs of sources (B, S).
        self.encode = traced(model.encode, IDS)
        # Logits (B, T, V) from sources (B, S) and what the decoder reads, (B, T).
        self.logits = traced(lambda source, inputs: model((source, inputs)), IDS, IDS)

    def log_probabilities(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Log P of each token of targets (B, T), 0 at padding, from sources (B, S)."""
        return token_log_probabilities(self.logits(source, shifted(target)), target)

    def next_logits(self, source: tf.Tensor, prefix: tf.Tensor) -> tf.Tensor:
        """Logits of the token after each prefix, (B, P) padded, from sources (B, S): (B, V)."""
        inputs = tf.pad(prefix, [[0, 0], [1, 0]], constant_values=BOS)
        length = tf.math.count_nonzero(prefix != PAD, axis=1, dtype=tf.int32)
        return tf.gather(self.logits(source, inputs), length, batch_dims=1)


class AttentionGraphs(Graphs):
    """Encoding, scoring, what comes next, and attention by an `EncoderDecoder`. All but encoding
    share two graphs, which give attention. Encoding has a graph of its own: a linear, a low-rank or
    a local attention takes n^2 steps only where its weights are asked for.
    """

    def __init__(self, model: EncoderDecoder):
        memory = tf.TensorSpec([None, None, model.memory_width], model.decoder.compute_dtype)
        self.model = model
        self.encode = traced(model.encode, IDS)
        self._read = traced(model.encode_with_attention, IDS)
        self._write = traced(model.decode_with_attention, IDS, IDS, memory)

    def logits(self, source: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
        """Logits (B, T, V) from sources (B, S) and what the decoder reads, (B, T)."""
        return self._write(source, inputs, self._read(source)[0])[0]

    def attention(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """What every layer's heads attend to: see `EncoderDecoder.attention_weights`."""
        memory, of_source = self._read(source)
        _, of_target = self._write(source, shifted(target), memory)
        return {**of_source, **of_target}
