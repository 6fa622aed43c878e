"""An encoder-only model as one TensorFlow graph (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding"): strings in, vectors out. Shapes: B
texts; T tokens.
"""

from collections.abc import Mapping

import tensorflow as tf

from keras_transformer.decoding.lengths import most_read
from keras_transformer.inference.model_graphs import IDS, traced
from keras_transformer.inference.text_module import TEXT
from keras_transformer.models import BareTextEncoder, MaskedLanguageModel, TextClassifier
from keras_transformer.runs.folder import RunFolder
from keras_transformer.saved_models.served_module import ServedText
from pipelines import vocabularies
from pipelines.batches.labelled_texts import read
from pipelines.special_ids import PAD
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.vocabularies.word_pieces import WordPieces


class TextEncoderModule(ServedText):
    """Tokenizer and encoder as functions of `text`, strings (B,):

    serving_default, embed  -> vector (B, d_model), of length 1
    attend                  -> pieces (B, T), encoder (B, N, h, T, T)
    """

    does = "texts in, vectors of length 1 out"
    heading = "A text encoder"

    def __init__(
        self,
        model: BareTextEncoder | MaskedLanguageModel | TextClassifier,
        vocabulary: Vocabulary | WordPieces,
    ):
        super().__init__(model, vocabulary, "text_encoder")
        self.tokenizer = vocabulary.tokenizer
        self.longest = most_read(self.hyperparameters.max_positions)
        self._states = traced(model.states, IDS, IDS)
        self._attention = traced(
            lambda *inputs: model.attention_weights(*inputs)["encoder"], IDS, IDS
        )
        self.embed = traced(self._embed, TEXT)
        self.attend = traced(self._attend, TEXT)

    @classmethod
    def of_model(cls, model, folder: RunFolder, values: Mapping) -> "TextEncoderModule":
        """The module of a run's model. Nothing is decoded: the values of flags do not matter."""
        return cls(model, vocabularies.load(folder.path).source)

    def functions(self):
        return {"serving_default": self.embed, "embed": self.embed, "attend": self.attend}

    def tokens(self, text: tf.Tensor) -> tf.Tensor:
        """Return the padded ids (B, T) of strings (B,), with BOS and EOS or their like. A text is
        cut to the model's positions, and to 1,024 tokens.
        """
        return read(self.vocabulary.tokenize(text), self.vocabulary.marks, self.longest)

    def _embed(self, text):
        """Return the mean of the last layer's states over all tokens of strings (B,), special ones
        included, at length 1: (B, d_model). The product of two is their cosine (Reimers and
        Gurevych 2019, "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks").
        """
        tokens = self.tokens(text)
        states = tf.cast(self._states(tokens, tf.zeros_like(tokens)), tf.float32)
        real = tf.cast(tokens != PAD, tf.float32)[..., None]
        mean = tf.reduce_sum(states * real, axis=1) / tf.reduce_sum(real, axis=1)
        return {"vector": tf.math.l2_normalize(mean, axis=-1)}

    def _attend(self, text):
        """Return the pieces (B, T) of strings (B,), special ones included and "" for padding, and
        every layer's attention, "encoder" (B, N, h, T, T).
        """
        tokens = self.tokens(text)
        pieces = tf.where(tokens == PAD, "", tf.gather(tf.constant(self.vocabulary.pieces), tokens))
        weights = self._attention(tokens, tf.zeros_like(tokens))
        return {"pieces": pieces, "encoder": tf.cast(weights, tf.float32)}
