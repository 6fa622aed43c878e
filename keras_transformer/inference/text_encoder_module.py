"""An encoder-only model as one TensorFlow graph (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding"): strings in; vectors, masked words or labels
out. Shapes: B texts; T tokens; M masked pieces of the text that has most; K guesses; C labels.
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH
from keras_transformer.inference.graphs import IDS, traced
from keras_transformer.models import BareTextEncoder, MaskedLanguageModel, TextClassifier
from pipelines.batches.marked_texts import read
from pipelines.special_ids import PAD
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.vocabularies.word_pieces import WordPieces

GUESSES = 10
TEXT = tf.TensorSpec([None], tf.string, name="text")


class TextEncoderModule(tf.Module):
    """Tokenizer and encoder as functions of strings.

    Args:
        model: built, with `states`.
        vocabulary: what it was trained with, with `marks`.

    Raises:
        ValueError: if the vocabulary has not as many pieces as the model.
    """

    def __init__(
        self,
        model: BareTextEncoder | MaskedLanguageModel | TextClassifier,
        vocabulary: Vocabulary | WordPieces,
    ):
        super().__init__(name="text_encoder")
        self.hyperparameters = model.hyperparameters
        width = self.hyperparameters.vocabulary_size
        if vocabulary.size != width:
            raise ValueError(
                f"`vocabulary` must have the {width} pieces that the model was trained with. "
                f"Received: {vocabulary.size}."
            )
        self.vocabulary = vocabulary
        self.tokenizer = vocabulary.tokenizer
        # Only the variables are tracked, not the Keras model: with both, an export is twice as big.
        self.weights = [variable.value for variable in model.weights]
        self.what = model.what
        self._paths = [variable.path for variable in model.weights]
        self.longest = min(self.hyperparameters.max_positions, MAX_SOURCE_LENGTH)
        self._states = traced(model.states, IDS, IDS)
        self._attention = traced(lambda *inputs: model.body.with_attention(*inputs)[1], IDS, IDS)
        self.embed = traced(self._embed, TEXT)
        self.attend = traced(self._attend, TEXT)

    def arrays(self) -> dict[str, np.ndarray]:
        """The model's weights by their paths."""
        pairs = zip(self._paths, self.weights, strict=True)
        return {path: variable.numpy() for path, variable in pairs}

    def functions(self) -> dict[str, Callable[..., dict]]:
        """What a server may be asked, by name: functions of strings (B,)."""
        return {"serving_default": self.embed, "embed": self.embed, "attend": self.attend}

    def tokens(self, text: tf.Tensor) -> tf.Tensor:
        """Strings (B,) to ids (B, T) between their marks, padded. The end of a text that has more
        tokens than the model has positions, or than 1,024, is cut.
        """
        ids = self.vocabulary.tokenize(text)
        return read(ids, self.vocabulary.marks, self.longest)

    def _embed(self, text):
        """Strings (B,) to vectors of length 1, (B, d_model): the mean of the last layer's states
        over all tokens, the marks among them. Their product is the cosine of two texts (Reimers and
        Gurevych 2019, "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks").
        """
        tokens = self.tokens(text)
        states = tf.cast(self._states(tokens, tf.zeros_like(tokens)), tf.float32)
        real = tf.cast(tokens != PAD, tf.float32)[..., None]
        mean = tf.reduce_sum(states * real, axis=1) / tf.reduce_sum(real, axis=1)
        return {"vector": tf.math.l2_normalize(mean, axis=-1)}

    def _attend(self, text):
        """Strings (B,) to their pieces (B, T), the marks among them and "" after a shorter text,
        and what every layer's heads attend to, "encoder" (B, N, h, T, T).
        """
        tokens = self.tokens(text)
        pieces = tf.where(tokens == PAD, "", tf.gather(tf.constant(self.vocabulary.pieces), tokens))
        weights = self._attention(tokens, tf.zeros_like(tokens))
        return {"pieces": pieces, "encoder": tf.cast(weights, tf.float32)}


class MaskedTextModule(TextEncoderModule):
    """A masked language model: texts with hidden words in, the words out.

    Args:
        model: a built `MaskedLanguageModel`.
        vocabulary: what it was trained with.
    """

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
        self.fill = traced(self._fill, TEXT)
        self.fill_mask = traced(self._fill_mask, TEXT)

    def functions(self):
        own = {"serving_default": self.fill, "fill_mask": self.fill_mask}
        return {**super().functions(), **own}

    def _fill(self, text):
        """Strings (B,) to the same with the likeliest piece for each mask, each guessed by itself.
        A text without a mask stays as it is.
        """
        tokens, places, is_hidden = self._hidden(text)
        best = tf.argmax(self._possible(tokens, places), axis=-1, output_type=tf.int32)
        rows = tf.broadcast_to(tf.range(tf.shape(tokens)[0])[:, None], tf.shape(places))
        chosen = tf.stack([rows[is_hidden], places[is_hidden]], axis=-1)
        filled = tf.tensor_scatter_nd_update(tokens, chosen, best[is_hidden])
        marks = self.vocabulary.marks
        is_text = (filled != PAD) & (filled != marks.first) & (filled != marks.last)
        words = self.vocabulary.detokenize(tf.ragged.boolean_mask(filled, is_text))
        return {"filled": tf.where(tf.reduce_any(is_hidden, axis=1), words, text)}

    def _fill_mask(self, text):
        """Strings (B,) to the likeliest pieces for each mask.

        Returns:
            filled: (B,), as in `fill`.
            pieces: (B, M, K), best first; "" where a text has fewer masks than M.
            probabilities: (B, M, K), of all pieces of text; 0 there.
        """
        tokens, places, is_hidden = self._hidden(text)
        probabilities = tf.nn.softmax(self._possible(tokens, places))
        probabilities, ids = tf.math.top_k(probabilities, min(GUESSES, self.vocabulary.size))
        pieces = tf.gather(tf.constant(self.vocabulary.pieces), ids)
        return {
            **self.fill(text),
            "pieces": tf.where(is_hidden[..., None], pieces, ""),
            "probabilities": tf.where(is_hidden[..., None], probabilities, 0.0),
        }

    def _hidden(self, text):
        """Tokens (B, T), the places of masks (B, M), M at least 1, and which of these there are."""
        tokens = self.tokens(text)
        length = tf.shape(tokens)[1]
        is_mask = tokens == self.vocabulary.marks.mask
        most = tf.maximum(1, tf.reduce_max(tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=1)))
        places = tf.sort(tf.where(is_mask, tf.range(length), length), axis=1)[:, :most]
        return tokens, tf.minimum(places, length - 1), places < length

    def _possible(self, tokens, places):
        """Logits (B, M, V) without those of marks."""
        logits = self.logits(tokens, tf.zeros_like(tokens), places)
        return tf.where(self._is_ordinary, logits, tf.float32.min)


class LabelModule(TextEncoderModule):
    """A classifier: texts in, labels out.

    Args:
        model: a built `TextClassifier`.
        vocabulary: what it was trained with.
        labels: what the C logits stand for.
    """

    def __init__(
        self,
        model: TextClassifier,
        vocabulary: Vocabulary | WordPieces,
        labels: Sequence[str],
    ):
        super().__init__(model, vocabulary)
        self.labels = list(labels)
        self.pooling = model.pooling
        self._logits = traced(
            lambda tokens, segments: model((tokens, segments), training=False), IDS, IDS
        )
        self.classify = traced(self._classify, TEXT)

    def functions(self):
        own = {"serving_default": self.classify, "classify": self.classify}
        return {**super().functions(), **own}

    def _classify(self, text):
        """Strings (B,) to the likeliest label (B,), and all labels and their probabilities, each
        (B, C), in one order for all texts.
        """
        tokens = self.tokens(text)
        logits = self._logits(tokens, tf.zeros_like(tokens))
        labels = tf.constant(self.labels)
        shape = [tf.shape(tokens)[0], len(self.labels)]
        return {
            "label": tf.gather(labels, tf.argmax(logits, axis=-1)),
            "labels": tf.broadcast_to(labels, shape),
            "probabilities": tf.nn.softmax(logits),
        }
