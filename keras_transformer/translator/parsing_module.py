"""The parser as one TensorFlow graph: sentences in, trees out (Vaswani et al. 2017, section
6.3).
"""

import tensorflow as tf

from keras_transformer.decoding import DecodingOptions
from keras_transformer.models import Ensemble, Transformer
from keras_transformer.translator.translation_module import TranslationModule
from pipelines import bracketing
from pipelines.linearization import alphabet_of
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabulary import Vocabulary


class ParsingModule(TranslationModule):
    """A `TranslationModule` from words, which stand between white space, into trees in brackets.

    Whatever symbols the model writes become a tree over exactly the words, by the rules of
    `pipelines.linearization`. References are trees in brackets, prefixes are symbols.

    Args:
        model, vocabulary, options: see `TranslationModule`.

    Raises:
        ValueError: if the vocabulary has no pieces for trees, or another width than the model.
    """

    output = "tree"

    def __init__(
        self,
        model: Transformer | Ensemble,
        vocabulary: Vocabulary | SeparateVocabularies,
        options: DecodingOptions | None = None,
    ):
        super().__init__(model, vocabulary, options)
        self._alphabet = alphabet_of(vocabulary.target.pieces)

    def target_tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Trees in brackets, or their symbols, (B,) to ragged ids, each row closed by EOS."""
        return super().target_tokens(bracketing.symbols(text))

    def target_text(self, ids: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Ids (B, L) to trees over the words of `text`, strings (B,), empty where it is blank."""
        return bracketing.trees(self._alphabet, ids, text)
