"""The graphs of a model that several functions of a module call, so that a SavedModel holds each of
them once.
"""

import tensorflow as tf

from keras_transformer.decoding.scoring import token_log_probabilities
from keras_transformer.models import Ensemble, Transformer
from pipelines.special_ids import BOS

IDS = tf.TensorSpec([None, None], tf.int32)


def graphs_of(model: Transformer | Ensemble) -> "Graphs | AttentionGraphs":
    """The graphs of a built model, with its attention if it gives any."""
    return AttentionGraphs(model) if model.gives_attention else Graphs(model)


class Graphs:
    """Encoding and scoring by a model that gives no attention, such as an `Ensemble`.

    Args:
        model: the model.
    """

    def __init__(self, model: Ensemble):
        def log_probabilities(source, target):
            return token_log_probabilities(model((source, shifted(target))), target)

        self.model = model
        # What decoding needs of sources (B, S).
        self.encode = tf.function(model.encode, input_signature=[IDS])
        # Log P of each token of targets (B, T), 0 at padding, from sources (B, S).
        self.log_probabilities = tf.function(log_probabilities, input_signature=[IDS, IDS])


class AttentionGraphs:
    """Encoding, scoring and attention by a `Transformer`, from two graphs that they share.

    Args:
        model: the `Transformer`.
    """

    def __init__(self, model: Transformer):
        memory = tf.TensorSpec(
            [None, None, model.hyperparameters.d_model], model.decoder.compute_dtype
        )
        self.model = model
        self._read = tf.function(model.encode_with_attention, input_signature=[IDS])
        self._write = tf.function(model.decode_with_attention, input_signature=[IDS, IDS, memory])

    def encode(self, source: tf.Tensor) -> dict:
        """What decoding needs of sources (B, S)."""
        return self.model.cache(source, self._read(source)[0])

    def log_probabilities(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Log P of each token of targets (B, T), 0 at padding, from sources (B, S)."""
        logits, _, _ = self._write(source, shifted(target), self._read(source)[0])
        return token_log_probabilities(logits, target)

    def attention(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """What every layer's heads attend to: see `Transformer.attention_weights`."""
        memory, within_source = self._read(source)
        _, to_target, to_memory = self._write(source, shifted(target), memory)
        return {"encoder": within_source, "decoder": to_target, "cross": to_memory}


def shifted(target: tf.Tensor) -> tf.Tensor:
    """What the decoder reads for targets (B, T): BOS, then all tokens but the last."""
    return tf.concat([tf.fill([tf.shape(target)[0], 1], BOS), target[:, :-1]], axis=1)
