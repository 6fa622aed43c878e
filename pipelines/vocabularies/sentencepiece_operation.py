"""SentencePiece as an operation of TensorFlow, by TensorFlow Text, which outlives a new seed."""

import tensorflow as tf
import tensorflow_text
from tensorflow_text.python.ops.sentencepiece_tokenizer import gen_sentencepiece_tokenizer


def tokenizer_of(model: bytes, name: str) -> tensorflow_text.SentencepieceTokenizer:
    """A tokenizer that closes each text by EOS.

    Args:
        model: a SentencePiece model.
        name: of this model alone. TensorFlow reloads tokenizers of one name in a SavedModel as the
            first of them, and gives those of one name in a process the same memory.
    """
    tokenizer = tensorflow_text.SentencepieceTokenizer(model=model, add_eos=True, name=name)
    tokenizer._model_resource = _NamedModel(model, name)
    return tokenizer


class _NamedModel(tf.saved_model.experimental.TrackableResource):
    """A model that belongs to the process.

    TensorFlow Text's own belongs to the operation that made it. `tf.random.set_seed` and
    `keras.utils.set_random_seed` forget all operations, and every tokenizer was broken from then on
    (github.com/tensorflow/text, issue 570).
    """

    def __init__(self, model, name):
        super().__init__()
        self._model = model
        self._name = name
        _ = self.resource_handle

    def _create_resource(self):
        with tf.name_scope(self._name):
            return gen_sentencepiece_tokenizer.sentencepiece_op(
                model=self._model, shared_name=self._name
            )
