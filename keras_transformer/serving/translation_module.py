"""The translator as one TensorFlow graph, strings in, strings out (Vaswani et al. 2017, section 6.1 for its decoding)."""

import tensorflow as tf

from keras_transformer.decoding.scoring import token_log_probabilities
from pipelines.vocabulary import BOS, EOS, PAD

EXTRA_LENGTH = 50
MAX_SOURCE_LENGTH = 1024


class TranslationModule(tf.Module):
    """Tokenizer, encoder, search and detokenizer behind one signature.

    A translation has at most 50 tokens more than its source ("maximum output length during inference to input length + 50").

    Args:
        model: a built `Transformer`.
        vocabulary: the `Vocabulary` it was trained with.
        search: a `BeamSearch` or `GreedySearch`.

    Raises:
        ValueError: if the vocabulary is not as wide as the model's logits.
    """

    def __init__(self, model, vocabulary, search):
        super().__init__(name="translation")
        width = model.hyperparameters.vocabulary_size
        if vocabulary.size != width:
            raise ValueError(f"`vocabulary` must have the {width} pieces that the model was trained with. Received: {vocabulary.size}.")
        self.vocabulary = vocabulary
        self.tokenizer = vocabulary.tokenizer
        # The variables are tracked and not the Keras model: tracking both doubles the artefact.
        self.weights = [variable.value for variable in model.weights]

        def translate(text):
            """Strings (B,) to strings (B,). An empty or blank string stays empty; a source is cut after 1,024 tokens."""
            ids = self.source_ids(text)
            source = ids.to_tensor(default_value=PAD)
            past = model.decoder.empty_past(tf.shape(source)[0] * search.beam_size)
            limits = tf.cast(ids.row_lengths(), tf.int32) + EXTRA_LENGTH
            hypotheses, _ = search(model.step, past, model.encode(source), limits)
            best = hypotheses[:, 0]
            words = tf.ragged.boolean_mask(best, (best != PAD) & (best != EOS))
            return {"translation": tf.where(tf.strings.strip(text) == "", "", self.tokenizer.detokenize(words))}

        def score(text, reference):
            """Strings (B,) and their translations (B,) to log P(Y | X) in nats and |Y|, EOS included. Both are cut after 1,024 tokens."""
            source, target = (self.source_ids(side).to_tensor(default_value=PAD) for side in (text, reference))
            shifted = tf.concat([tf.fill([tf.shape(target)[0], 1], BOS), target[:, :-1]], axis=1)
            log_probabilities = token_log_probabilities(model((source, shifted), training=False), target)
            return {
                "log_probability": tf.reduce_sum(log_probabilities, axis=1),
                "tokens": tf.math.count_nonzero(target != PAD, axis=1, dtype=tf.int32),
            }

        text = [tf.TensorSpec([None], tf.string, name="text")]
        self.translate = tf.function(translate, input_signature=text)
        self.score = tf.function(score, input_signature=[*text, tf.TensorSpec([None], tf.string, name="reference")])
        self.source_lengths = tf.function(lambda text: self.tokenizer.tokenize(text).row_lengths(), input_signature=text)

    def source_ids(self, text):
        """Strings (B,) to ragged ids (B, None), each row closed by EOS and no longer than 1,024."""
        words = self.tokenizer.tokenize(text)[:, :-1][:, : MAX_SOURCE_LENGTH - 1]
        return tf.concat([words, tf.fill([words.nrows(), 1], EOS)], axis=1)
