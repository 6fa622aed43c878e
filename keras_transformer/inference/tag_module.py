"""A tagger as one TensorFlow graph (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional
Transformers for Language Understanding", section 5.3): strings in; words and their tags out.
Shapes: B texts; W words of the text that has most; T tokens; C tags.
"""

from collections.abc import Sequence

import tensorflow as tf

from keras_transformer.inference.graphs import IDS, traced
from keras_transformer.inference.text_encoder_module import TEXT, TextEncoderModule
from keras_transformer.models import TokenClassifier
from pipelines.batches.labelled_words import NOWHERE, in_words
from pipelines.batches.marked_texts import opened
from pipelines.special_ids import PAD
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.vocabularies.word_pieces import WordPieces

OUTSIDE = "O"


class TagModule(TextEncoderModule):
    """A tagger: texts in, a tag for each of their words out.

    Args:
        model: a built `TokenClassifier`.
        vocabulary: what it was trained with.
        labels: what the C logits stand for.
    """

    def __init__(
        self, model: TokenClassifier, vocabulary: Vocabulary | WordPieces, labels: Sequence[str]
    ):
        super().__init__(model, vocabulary)
        self.labels = list(labels)
        self._logits = traced(
            lambda tokens, segments: model((tokens, segments), training=False), IDS, IDS
        )
        self.tag = traced(self._tag, TEXT)
        self.line_of_tags = traced(self._line_of_tags, TEXT)

    def functions(self):
        own = {"serving_default": self.line_of_tags, "tag": self.tag}
        return {**super().functions(), **own}

    def _line_of_tags(self, text):
        """Strings (B,) to a string each: a tag for each word, with spaces between them."""
        tags = self.tag(text)["tags"]
        return {"tags": tf.strings.reduce_join(_without_padding(tags), axis=-1, separator=" ")}

    def _tag(self, text):
        """Strings (B,) to their words, the tag of each, and how likely the model holds it.

        Words stand between white space. One without a piece, or after the longest text, is "O".

        Returns:
            words, tags: (B, W), "" where a text has fewer words than W.
            probabilities: (B, W), 0 there, and where a word was not read.
        """
        found = in_words(text, self.vocabulary)
        tokens = self._read(found.ids)
        shares = tf.nn.softmax(self._logits(tokens, tf.zeros_like(tokens)))
        # The mark of the beginning stands before the first piece.
        places = found.places.to_tensor(default_value=NOWHERE) + 1
        lengths = tf.minimum(found.ids.row_lengths(), self.longest - 1)
        is_read = (places > 0) & (places < tf.cast(lengths, tf.int32)[:, None])
        at_words = tf.gather(shares, tf.where(is_read, places, 0), batch_dims=1)
        tags = tf.gather(tf.constant(self.labels), tf.argmax(at_words, axis=-1))
        words = found.words.to_tensor()
        return {
            "words": words,
            "tags": tf.where(is_read, tags, tf.where(words == "", "", OUTSIDE)),
            "probabilities": tf.where(is_read, tf.reduce_max(at_words, axis=-1), 0.0),
        }

    def _read(self, ids):
        """Ragged ids (B, None) to tokens (B, T), as in training. `marked_texts.read` leaves out the
        space before a mask, so that the places of the words after it would be others.
        """
        marks = self.vocabulary.marks
        ends = tf.fill([ids.nrows(), 1], marks.last)
        cut = tf.concat([ids[:, :-1][:, : self.longest - 2], ends], axis=1)
        return opened(cut.to_tensor(default_value=PAD), marks)


def _without_padding(tags):
    return tf.ragged.boolean_mask(tags, tags != "")
