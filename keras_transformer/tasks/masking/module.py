"""A masked language model as one TensorFlow graph (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding", section 3.1): strings with hidden words in,
the words out. Shapes: B texts; T tokens; M masked pieces of the text that has most; K guesses.
"""

import tensorflow as tf

from keras_transformer.inference.model_graphs import IDS, traced
from keras_transformer.inference.text_encoder_module import TextEncoderModule
from keras_transformer.inference.text_module import TEXT
from keras_transformer.models import MaskedLanguageModel
from pipelines.batches.labelled_texts import read
from pipelines.special_ids import PAD
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.vocabularies.word_pieces import WordPieces

GUESSES = 10


class MaskedTextModule(TextEncoderModule):
    """A masked language model, functions of `text`, strings (B,). `embed` and `attend` as
    `TextEncoderModule`, and

    serving_default  -> filled (B,)
    fill_mask        -> filled (B,), pieces and probabilities (B, M, 10)
    """

    does = "texts with hidden words in, the words out"
    heading = "A masked language model"
    model_class = MaskedLanguageModel

    def __init__(self, model: MaskedLanguageModel, vocabulary: Vocabulary | WordPieces):
        super().__init__(model, vocabulary)
        # Logits (B, M, V) of the pieces at places (B, M).
        self.logits = traced(
            lambda tokens, segments, places: model((tokens, segments, places), training=False),
            *(IDS, IDS, IDS),
        )
        marks = vocabulary.marks
        is_ordinary = tf.scatter_nd(
            marks.ordinary[:, None], tf.ones(len(marks.ordinary), tf.bool), [vocabulary.size]
        )
        self._is_ordinary = is_ordinary.numpy()
        self.fill = traced(lambda text: {"filled": self._guessed(text)[0]}, TEXT)
        self.fill_mask = traced(self._fill_mask, TEXT)

    def functions(self):
        return super().functions() | {"serving_default": self.fill, "fill_mask": self.fill_mask}

    def facts(self):
        return {**super().facts(), "mask": self.vocabulary.marks.name}

    def _fill_mask(self, text):
        """Return the likeliest pieces for each mask in strings (B,).

        Returns:
            filled: (B,), as in `fill`.
            pieces: (B, M, K), best first; "" where a text has fewer masks than M.
            probabilities: (B, M, K), of all pieces of text; 0 there.
        """
        filled, logits, is_hidden = self._guessed(text)
        probabilities = tf.nn.softmax(logits)
        probabilities, ids = tf.math.top_k(probabilities, min(GUESSES, self.vocabulary.size))
        pieces = tf.gather(tf.constant(self.vocabulary.pieces), ids)
        return {
            "filled": filled,
            "pieces": tf.where(is_hidden[..., None], pieces, ""),
            "probabilities": tf.where(is_hidden[..., None], probabilities, 0.0),
        }

    def _guessed(self, text):
        """Fill each mask in strings (B,) with its likeliest piece, independently of the others.
        Return the strings; logits (B, M, V) without those of marks; and which masks (B, M) exist.
        """
        ids = self.vocabulary.tokenize(text)
        marks = self.vocabulary.marks
        tokens = read(ids, marks, self.longest)
        places, is_hidden = self._hidden(tokens)
        logits = self.logits(tokens, tf.zeros_like(tokens), places)
        logits = tf.where(self._is_ordinary, logits, tf.float32.min)
        best = tf.argmax(logits, axis=-1, output_type=tf.int32)
        rows = tf.broadcast_to(tf.range(tf.shape(tokens)[0])[:, None], tf.shape(places))
        chosen = tf.stack([rows[is_hidden], places[is_hidden]], axis=-1)
        filled = tf.tensor_scatter_nd_update(tokens, chosen, best[is_hidden])
        # The rest of a text that is too long for the model is left as it is.
        rest = read(ids, marks, tf.int32.max)[:, self.longest - 1 :]
        filled = tf.concat([filled, rest], axis=1)
        is_text = (filled != PAD) & (filled != marks.first) & (filled != marks.last)
        words = self.vocabulary.detokenize(tf.ragged.boolean_mask(filled, is_text))
        return tf.where(tf.reduce_any(is_hidden, axis=1), words, text), logits, is_hidden

    def _hidden(self, tokens):
        """Return the places of masks (B, M) in tokens (B, T), M at least 1, and which exist."""
        length = tf.shape(tokens)[1]
        is_mask = tokens == self.vocabulary.marks.mask
        most = tf.maximum(1, tf.reduce_max(tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=1)))
        places = tf.sort(tf.where(is_mask, tf.range(length), length), axis=1)[:, :most]
        return tf.minimum(places, length - 1), places < length
