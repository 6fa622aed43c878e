"""Classifiers of texts and of their words as one TensorFlow graph (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding", section 4): strings in,
labels out. Shapes: B texts; W words of the text that has most; T tokens; C labels.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.evaluation.span_score import OUTSIDE
from keras_transformer.inference.model_graphs import IDS, traced
from keras_transformer.inference.text_encoder_module import TextEncoderModule
from keras_transformer.inference.text_module import TEXT
from keras_transformer.models import TextClassifier, TokenClassifier, sizes_of_description
from keras_transformer.runs.folder import RunFolder
from pipelines import vocabularies
from pipelines.batches.labelled_texts import NOWHERE, cut, in_words, opened
from pipelines.json_files import read_json
from pipelines.special_ids import PAD
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.vocabularies.word_pieces import WordPieces

LABELS_FILE = "labels.json"


class _OfLabels(TextEncoderModule):
    """Base class of classifiers of texts and of words: labels, and logits of ids."""

    def __init__(
        self,
        model: TextClassifier | TokenClassifier,
        vocabulary: Vocabulary | WordPieces,
        labels: Sequence[str],
    ):
        super().__init__(model, vocabulary)
        self.labels = list(labels)
        self._logits = traced(
            lambda tokens, segments: model((tokens, segments), training=False), IDS, IDS
        )

    @classmethod
    def of_model(cls, model, folder, values):
        return cls(model, vocabularies.load(folder.path).source, names_of(folder))

    def facts(self):
        return {**super().facts(), "labels": {"names": self.labels}}


class LabelModule(_OfLabels):
    """A classifier, functions of `text`, strings (B,). `embed` and `attend` as
    `TextEncoderModule`, and

    serving_default, classify  -> label (B,), labels and probabilities (B, C)
    """

    does = "texts in, labels out"
    heading = "A text classifier"

    def __init__(self, model: TextClassifier, *of_all):
        super().__init__(model, *of_all)
        self.pooling = model.pooling
        self.classify = traced(self._classify, TEXT)

    @classmethod
    def build(cls, description: Mapping[str, Any], dtype) -> TextClassifier:
        labels = description["labels"]
        sizes = sizes_of_description(description["hyperparameters"])
        return TextClassifier(sizes, len(labels["names"]), labels["pooling"], dtype)

    def functions(self):
        return super().functions() | {"serving_default": self.classify, "classify": self.classify}

    def facts(self):
        facts = super().facts()
        facts["labels"]["pooling"] = self.pooling
        return facts

    def _classify(self, text):
        """Return the likeliest label of strings (B,), and all labels and probabilities, (B, C)."""
        tokens = self.tokens(text)
        logits = self._logits(tokens, tf.zeros_like(tokens))
        labels = tf.constant(self.labels)
        shape = [tf.shape(tokens)[0], len(self.labels)]
        return {
            "label": tf.gather(labels, tf.argmax(logits, axis=-1)),
            "labels": tf.broadcast_to(labels, shape),
            "probabilities": tf.nn.softmax(logits),
        }


class TagModule(_OfLabels):
    """A tagger, functions of `text`, strings (B,) (Devlin et al. 2019, section 5.3). `embed` and
    `attend` as `TextEncoderModule`, and

    serving_default  -> tags (B,), one string for all tags of a text
    tag              -> words, tags and probabilities (B, W)
    """

    does = "texts in, a tag for each word out"
    heading = "A tagger"

    def __init__(self, model: TokenClassifier, *of_all):
        super().__init__(model, *of_all)
        self.tag = traced(self._tag, TEXT)
        self.line_of_tags = traced(self._line_of_tags, TEXT)

    @classmethod
    def build(cls, description: Mapping[str, Any], dtype) -> TokenClassifier:
        sizes = sizes_of_description(description["hyperparameters"])
        return TokenClassifier(sizes, len(description["labels"]["names"]), dtype)

    def functions(self):
        return super().functions() | {"serving_default": self.line_of_tags, "tag": self.tag}

    def _line_of_tags(self, text):
        """Return the tags of the words of strings (B,), joined by spaces."""
        tags = self.tag(text)["tags"]
        tags = tf.ragged.boolean_mask(tags, tags != "")
        return {"tags": tf.strings.reduce_join(tags, axis=-1, separator=" ")}

    def _tag(self, text):
        """Return the words of strings (B,), the tag of each, and its probability, (B, W) each. A
        word without a piece, or beyond the longest text, is "O" with a probability of 0.
        """
        rows = in_words(text, self.vocabulary)
        # `labelled_texts.read` would drop a space before a mask, and shift the words after it.
        marks = self.vocabulary.marks
        ids = cut(rows.ids, self.longest - 1, marks.last)
        tokens = opened(ids.to_tensor(default_value=PAD), marks)
        shares = tf.nn.softmax(self._logits(tokens, tf.zeros_like(tokens)))
        # The first token is the mark of the beginning.
        places = rows.places.to_tensor(default_value=NOWHERE) + 1
        lengths = tf.minimum(rows.ids.row_lengths(), self.longest - 1)
        is_read = (places > 0) & (places < tf.cast(lengths, tf.int32)[:, None])
        at_words = tf.gather(shares, tf.where(is_read, places, 0), batch_dims=1)
        tags = tf.gather(tf.constant(self.labels), tf.argmax(at_words, axis=-1))
        words = rows.words.to_tensor()
        return {
            "words": words,
            "tags": tf.where(is_read, tags, tf.where(words == "", "", OUTSIDE)),
            "probabilities": tf.where(is_read, tf.reduce_max(at_words, axis=-1), 0.0),
        }


def names_of(folder: RunFolder) -> list[str]:
    """Read the labels of a run, in the order of their numbers."""
    return read_json(folder.path / LABELS_FILE, "They stand in model.json too.")
