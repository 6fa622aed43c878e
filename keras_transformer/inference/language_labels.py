"""One model for many languages (Johnson et al. 2017, "Google's Multilingual Neural Machine
Translation System: Enabling Zero-Shot Translation"; Fan et al. 2021, "Beyond English-Centric
Multilingual Machine Translation"): a label before the text says its language, and the first token
of a translation is the label of its own.
"""

import dataclasses
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.constraints import under
from keras_transformer.decoding.remembered_options import LANGUAGES
from pipelines.vocabularies.other_order import language_labels
from pipelines.vocabularies.vocabulary import Vocabulary


class LanguageLabels:
    """The labels of source and target, by default those of the languages that it is made with."""

    def __init__(self, vocabulary: Vocabulary, source: str | None, target: str | None):
        self.ids = language_labels(vocabulary)
        self.default = {"source_language": source, "target_language": target}
        for name, language in self.default.items():
            if language not in self.ids:
                raise ValueError(f"{self._wanted(name)}. Received: {name}={language}.")

    def _wanted(self, name):
        return f"`{name}` must be one of {', '.join(sorted(self.ids))}"

    def ids_of(self, name: str, languages: tf.Tensor | None = None) -> tf.Tensor:
        """The ids of the labels of languages, strings (1,) or (B,), "" for the default."""
        default = tf.constant([self.ids[self.default[name]]])
        if languages is None:
            return default
        matches = languages[:, None] == tf.constant(list(self.ids))
        found = tf.reduce_max(tf.where(matches, tf.constant(list(self.ids.values())), 0), axis=1)
        is_known = (languages == "") | (found > 0)
        unknown = tf.boolean_mask(languages, ~is_known)
        check = tf.debugging.Assert(
            tf.reduce_all(is_known), [f"{self._wanted(name)}. Received: ", unknown]
        )
        with tf.control_dependencies([check]):
            return tf.where(languages == "", default, found)

    @staticmethod
    def before(tokens: tf.Tensor | tf.RaggedTensor | None, labels: tf.Tensor, count: tf.Tensor):
        """Ids (B, None), or None, of `count` texts, behind their labels, which are (1,) or (B,)."""
        labels = tf.broadcast_to(labels, [count])[:, None]
        return labels if tokens is None else tf.concat([labels, tokens], axis=1)

    @staticmethod
    def after_label(search):
        """The same search, where the first token is given: it costs nothing."""
        return under(search, dataclasses.replace(search.constraints, given=1))


def labels_of(vocabulary: Any, options: DecodingOptions) -> LanguageLabels | None:
    """The labels of a vocabulary of one table for all languages; None of others."""
    said = {name: getattr(options, name) for name in LANGUAGES}
    if not language_labels(vocabulary.target):
        for name, language in said.items():
            if language is not None:
                raise ValueError(
                    f"`{name}` is for a model that has labels of languages, such as NLLB-200. "
                    f"Received: {name}={language}. Leave it out."
                )
        return None
    return LanguageLabels(vocabulary.target, *said.values())
