"""Labels of languages in one model for many (Johnson et al. 2017, "Google's Multilingual Neural
Machine Translation System: Enabling Zero-Shot Translation"; Fan et al. 2021, "Beyond
English-Centric Multilingual Machine Translation"): the first token of a source, and that of a
translation, is the label of its language.
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
    """The labels of source and target; by default of the two languages in the constructor."""

    def __init__(self, vocabulary: Vocabulary, source: str | None, target: str | None):
        self.ids = language_labels(vocabulary)
        self.default = {"source_language": source, "target_language": target}
        for name, language in self.default.items():
            if language not in self.ids:
                raise ValueError(f"{self._expected(name)}. Received: {name}={language}.")

    def _expected(self, name):
        return f"`{name}` must be one of {', '.join(sorted(self.ids))}"

    def ids_of(self, name: str, languages: tf.Tensor | None = None) -> tf.Tensor:
        """Return the ids of the labels of languages, strings (1,) or (B,); "" is the default."""
        default = tf.constant([self.ids[self.default[name]]])
        if languages is None:
            return default
        matches = languages[:, None] == tf.constant(list(self.ids))
        ids = tf.reduce_max(tf.where(matches, tf.constant(list(self.ids.values())), 0), axis=1)
        is_known = (languages == "") | (ids > 0)
        unknown = tf.boolean_mask(languages, ~is_known)
        check = tf.debugging.Assert(
            tf.reduce_all(is_known), [f"{self._expected(name)}. Received: ", unknown]
        )
        with tf.control_dependencies([check]):
            return tf.where(languages == "", default, ids)

    @staticmethod
    def before(tokens: tf.Tensor | tf.RaggedTensor | None, labels: tf.Tensor, count: tf.Tensor):
        """Put labels, (1,) or (B,), before the tokens of `count` texts, (B, None) or None."""
        labels = tf.broadcast_to(labels, [count])[:, None]
        return labels if tokens is None else tf.concat([labels, tokens], axis=1)

    @staticmethod
    def after_label(search):
        """Return the search with its first token given, which then costs nothing."""
        return under(search, dataclasses.replace(search.constraints, free_prefix=1))


def labels_of(vocabulary: Any, options: DecodingOptions) -> LanguageLabels | None:
    """Return the labels of a vocabulary that has any, else None."""
    languages = {name: getattr(options, name) for name in LANGUAGES}
    if not language_labels(vocabulary.target):
        for name, language in languages.items():
            if language is not None:
                raise ValueError(
                    f"`{name}` is for a model that has labels of languages, such as NLLB-200. "
                    f"Received: {name}={language}. Leave it out."
                )
        return None
    return LanguageLabels(vocabulary.target, *languages.values())
