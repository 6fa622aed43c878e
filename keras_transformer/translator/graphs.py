"""What the functions of a module share of its model, each as one graph that all of them call: so a
SavedModel holds it once.
"""

import tensorflow as tf

from keras_transformer.decoding.scoring import token_log_probabilities
from pipelines.special_ids import BOS

IDS = tf.TensorSpec([None, None], tf.int32)


def graphs_of(model):
    """`Graphs` of a `Transformer`, or what there is of them for an `Ensemble`."""
    return Graphs(model) if hasattr(model, "attention_weights") else EnsembleGraphs(model)


class Graphs:
    """A `Transformer`'s.

    Args:
        model: the `Transformer`.
    """

    def __init__(self, model):
        memory = tf.TensorSpec(
            [None, None, model.hyperparameters.d_model], model.decoder.compute_dtype
        )
        self.model = model
        self._read = tf.function(model.attentive_encode, input_signature=[IDS])
        self._write = tf.function(model.attentive_decode, input_signature=[IDS, IDS, memory])

    def encode(self, source):
        """What decoding needs of sources (B, S)."""
        return self.model.cache(source, self._read(source)[0])

    def log_probabilities(self, source, target):
        """Log P of each token of targets (B, T), 0 at padding."""
        logits, _, _ = self._write(source, shifted(target), self._read(source)[0])
        return token_log_probabilities(logits, target)

    def attention(self, source, target):
        """What every layer's heads attend to: see `Transformer.attention_weights`."""
        memory, within_source = self._read(source)
        _, to_target, to_memory = self._write(source, shifted(target), memory)
        return {"encoder": within_source, "decoder": to_target, "cross": to_memory}


class EnsembleGraphs:
    """An `Ensemble`'s, which has no attention of its own.

    Args:
        model: the `Ensemble`.
    """

    def __init__(self, model):
        def log_probabilities(source, target):
            return token_log_probabilities(model((source, shifted(target))), target)

        self.model = model
        self.encode = tf.function(model.encode, input_signature=[IDS])
        self.log_probabilities = tf.function(log_probabilities, input_signature=[IDS, IDS])


def shifted(target):
    """Each row begun by BOS, its last token gone: what the decoder sees of targets (B, T)."""
    return tf.concat([tf.fill([tf.shape(target)[0], 1], BOS), target[:, :-1]], axis=1)
