"""The translator as one TensorFlow graph, strings in, strings out (Vaswani et al. 2017, section 6.1 for its decoding)."""

import tensorflow as tf

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.coverage import covering, no_coverage
from keras_transformer.decoding.sampling import Sampling
from keras_transformer.decoding.scoring import token_log_probabilities
from pipelines.vocabulary import BOS, EOS, PAD

MAX_SOURCE_LENGTH = 1024


class TranslationModule(tf.Module):
    """Tokenizer, encoder, search and detokenizer behind functions of strings. `translate` is the one that is served by default.

    Args:
        model: a built `Transformer`, or an `Ensemble`.
        vocabulary: the `Vocabulary` it was trained with.
        options: `DecodingOptions`; the paper's by default.

    Raises:
        ValueError: if the vocabulary is not as wide as the model's logits.
    """

    def __init__(self, model, vocabulary, options=None):
        super().__init__(name="translation")
        width = model.hyperparameters.vocabulary_size
        if vocabulary.size != width:
            raise ValueError(f"`vocabulary` must have the {width} pieces that the model was trained with. Received: {vocabulary.size}.")
        self.vocabulary = vocabulary
        self.tokenizer = vocabulary.tokenizer
        # The variables are tracked and not the Keras model: tracking both doubles the artefact.
        self.weights = [variable.value for variable in model.weights]
        options = options or DecodingOptions()

        def translate(text):
            """Strings (B,) to strings (B,). An empty or blank string stays empty; a source is cut after 1,024 tokens."""
            hypotheses, _ = _decode(model, options, self.source_ids(text), text)
            return {"translation": self.target_text(hypotheses[:, 0], text)}

        def translate_in_detail(text, prefix):
            """Strings (B,), and what each translation shall begin with, strings (B,) that may be empty.

            Returns:
                translations: (B, n), best first.
                scores: (B, n), what they are ranked by, -inf where there are fewer than n.
                pieces: (B, n, L), the tokens as strings, EOS among them; "" is padding.
                log_probabilities: (B, n, L), log P of each token, as the model has it; 0 at padding.
            """
            prefixes = self.tokenizer.tokenize(prefix)[:, :-1].to_tensor(default_value=PAD)
            ids = self.source_ids(text)
            hypotheses, scores = _decode(model, options, ids, text, prefixes)
            shape = tf.shape(hypotheses)
            source, each = (tf.repeat(side, shape[1], axis=0) for side in (ids.to_tensor(default_value=PAD), text))
            rows = tf.reshape(hypotheses, [shape[0] * shape[1], shape[2]])
            return {
                "translations": tf.reshape(self.target_text(rows, each), shape[:2]),
                "scores": scores,
                "pieces": self.pieces(hypotheses),
                "log_probabilities": tf.reshape(_log_probabilities(model, source, rows), shape),
            }

        def score(text, reference):
            """Strings (B,) and their translations (B,) to log P(Y | X) in nats and |Y|, EOS included. Both are cut after 1,024 tokens."""
            source, target = (self.source_ids(side).to_tensor(default_value=PAD) for side in (text, reference))
            return {
                "log_probability": tf.reduce_sum(_log_probabilities(model, source, target), axis=1),
                "tokens": tf.math.count_nonzero(target != PAD, axis=1, dtype=tf.int32),
            }

        def attention(text, reference):
            """Strings (B,) and their translations (B,) to what every layer's heads attend to.

            Returns:
                source_pieces, target_pieces: strings (B, S) and (B, T), EOS among them; "" is padding.
                encoder, decoder, cross: (B, N, h, S, S), (B, N, h, T, T) and (B, N, h, T, S); row t is of the step that
                    gives target piece t.
            """
            source, target = (self.source_ids(side).to_tensor(default_value=PAD) for side in (text, reference))
            weights = model.attention_weights(source, _shifted(target))
            return {"source_pieces": self.pieces(source), "target_pieces": self.pieces(target), **weights}

        text, prefix, reference = (tf.TensorSpec([None], tf.string, name=name) for name in ("text", "prefix", "reference"))
        self.translate = tf.function(translate, input_signature=[text])
        self.translate_in_detail = tf.function(translate_in_detail, input_signature=[text, prefix])
        self.score = tf.function(score, input_signature=[text, reference])
        if hasattr(model, "attention_weights"):
            self.attention = tf.function(attention, input_signature=[text, reference])
        self.source_lengths = tf.function(lambda text: self.tokenizer.tokenize(text).row_lengths(), input_signature=[text])

    def source_ids(self, text):
        """Strings (B,) to ragged ids (B, None), each row closed by EOS and no longer than 1,024."""
        words = self.tokenizer.tokenize(text)[:, :-1][:, : MAX_SOURCE_LENGTH - 1]
        return tf.concat([words, tf.fill([words.nrows(), 1], EOS)], axis=1)

    def target_text(self, ids, text):
        """Ids (B, L) to strings (B,), empty where `text` is blank."""
        words = tf.ragged.boolean_mask(ids, (ids != PAD) & (ids != EOS))
        return tf.where(tf.strings.strip(text) == "", "", self.tokenizer.detokenize(words))

    def pieces(self, ids):
        """Ids of any shape to the strings they stand for, "" for padding."""
        return tf.where(ids == PAD, "", self.tokenizer.id_to_string(ids))


def _decode(model, options, ids, text, prefixes=None):
    """Ragged source ids (B, None) to a search's hypotheses (B, n, L) and scores (B, n)."""
    search, source, lengths = options.search(), ids.to_tensor(default_value=PAD), ids.row_lengths()
    stepper, past = model.stepper(), model.empty_past(tf.shape(source)[0] * search.beam_size)
    step = stepper.step
    if options.coverage_penalty:
        step, past = covering(stepper.attentive_step), no_coverage(past, source != PAD, search.beam_size)
    # What is drawn for a sentence depends on its words, not on its place.
    own = {"seeds": tf.strings.to_hash_bucket_fast(text, 2**62)} if isinstance(search, Sampling) else {}
    return search(step, past, model.encode(source), options.limits(lengths), options.minima(lengths), prefixes, **own)


def _shifted(target):
    return tf.concat([tf.fill([tf.shape(target)[0], 1], BOS), target[:, :-1]], axis=1)


def _log_probabilities(model, source, target):
    return token_log_probabilities(model((source, _shifted(target)), training=False), target)
