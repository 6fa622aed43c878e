"""The parser as one TensorFlow graph: sentences in, trees out (Vaswani et al. 2017, 6.3)."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.constraints import under
from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH
from keras_transformer.decoding.tree_constraints import TreeConstraints
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines.special_ids import PAD
from pipelines.trees import bracketing
from pipelines.trees.linearization import alphabet_of


class ParsingModule(TranslationModule):
    """A `TranslationModule` from words, separated by white space, into trees in brackets.

    Any symbols that the model writes become a tree over exactly the words, by the rules of
    `trees.linearization`. With the option `constrained` the model writes only the symbols of such
    a tree. References are trees in brackets, prefixes are symbols.
    """

    output = "tree"
    outputs = "trees"
    does = (
        "sentences in, whose words and punctuation stand between spaces; trees in brackets out "
        "(Vaswani et al. 2017, section 6.3)"
    )
    heading = "A constituency parser"
    # Section 6.3. EOS may come first, because incomplete trees are repaired.
    default_options: Mapping[str, Any] = {"max_length": "+300", "min_length": 1}

    def __init__(self, *of_all):
        super().__init__(*of_all)
        self._alphabet = alphabet_of(self.vocabulary.target.pieces)

    def title(self, card):
        corpus = card.get("corpus")
        return f"{self.heading}, {corpus['source_language'] if corpus else 'unknown'}"

    def score_rows(self, scores):
        if not scores:
            return {"test set": "unknown"}
        return {
            "test set": f"labelled F1 {scores['short']['f1']} of sentences of at most "
            f"{scores['cutoff']} words, {scores['all']['f1']} of all ({scores['weights']})"
        }

    @classmethod
    def check(cls, options):
        """Refuse nothing: a parser can have all options."""

    def search(self, search, text, prefixes=None, limits=None):
        """Search as `TranslationModule` does; with `constrained` among well-formed trees only."""
        if self.options.constrained:
            rules = self.options.constraints(
                TreeConstraints,
                opens=self._alphabet.opens,
                closes=self._alphabet.closes,
                is_leaf=self._alphabet.is_leaf,
                **self._leaves(text),
            )
            search = under(search, rules)
        return super().search(search, text, prefixes, limits)

    def _leaves(self, text):
        """Return the number of leaves of a tree over the words of `text`, and the leaves if they
        are words. The repair adds words after the cut of the source, which are not read.
        """
        if self._alphabet.leaves != "words":
            words = tf.strings.split(_spaced(text)).row_lengths()
            return {"count": tf.minimum(words, MAX_SOURCE_LENGTH)}
        pieces = self.target_tokenizer.tokenize(_spaced(text))[:, :-1][:, :MAX_SOURCE_LENGTH]
        # A word that is written like a symbol cannot be distinguished from it.
        pieces = tf.ragged.boolean_mask(pieces, tf.gather(self._alphabet.is_leaf, pieces))
        return {
            "count": pieces.row_lengths(),
            "leaves": pieces.to_tensor(PAD),
            "begins_word": self._alphabet.takes >= 0,
        }

    def source_tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return ragged ids (B, None) of sentences (B,) with any white space between words."""
        return super().source_tokens(_spaced(text))

    def target_tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return ragged ids of trees in brackets or in symbols, (B,); each row ends in EOS."""
        return super().target_tokens(bracketing.symbols(text, self._alphabet.leaves))

    def target_text(self, ids: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Return trees over the words of `text`, strings (B,), of ids (B, L); "" if it is blank."""
        return bracketing.trees(self._alphabet, ids, _spaced(text))


def _spaced(text):
    """Return strings (B,) with one space between words, like the sentences of a treebank."""
    words = tf.strings.split(tf.strings.regex_replace(text, r"[\pZ\x1c-\x1f\x85]", " "))
    return tf.strings.reduce_join(words, axis=-1, separator=" ")
