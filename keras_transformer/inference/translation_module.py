"""The translator as one TensorFlow graph, strings in, strings out (Vaswani et al. 2017, section 6.1
for its decoding).
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH
from keras_transformer.decoding.options import kept_in
from keras_transformer.inference.graphs import IDS, graphs_of, traced
from keras_transformer.models import EncoderDecoder, Ensemble
from pipelines.special_ids import EOS, PAD
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.vocabulary import Vocabulary


class TranslationModule(tf.Module):
    """Tokenizer, encoder, search and detokenizer as functions of strings.

    `signatures.served` makes a server's signatures of them.

    Args:
        model: a built `EncoderDecoder`, such as a `Transformer`; or an `Ensemble`.
        vocabulary: what it was trained with: a `Vocabulary` of both languages, or one for each.
        options: `DecodingOptions`; by default `default_options`.

    Attributes:
        output: what signatures call the text that comes out.
        default_options: arguments of `DecodingOptions` in place of its defaults.

    Raises:
        ValueError: if the vocabulary is not as wide as the model's logits, or for an option that
            this kind of module cannot have.
    """

    output = "translation"
    default_options: Mapping[str, Any] = {}

    def __init__(
        self,
        model: EncoderDecoder | Ensemble,
        vocabulary: Vocabulary | SeparateVocabularies,
        options: DecodingOptions | None = None,
    ):
        super().__init__(name="translation")
        width = model.hyperparameters.vocabulary_size
        if vocabulary.size != width:
            raise ValueError(
                f"`vocabulary` must have the {width} pieces that the model was trained with. "
                f"Received: {vocabulary.size}."
            )
        self.vocabulary = vocabulary
        self.source_tokenizer = vocabulary.source.tokenizer
        self.target_tokenizer = vocabulary.target.tokenizer
        # Only the variables are tracked, not the Keras model: with both, an export is twice as big.
        self.weights = [variable.value for variable in model.weights]
        self.options = options or DecodingOptions(**self.default_options)
        self.check(self.options)
        self._graphs = graphs_of(model)
        self._search_as_exported = traced(
            lambda text, prefixes: self.search(self.options.search(), text, prefixes),
            tf.TensorSpec([None], tf.string),
            IDS,
        )
        text, prefix, reference = (
            tf.TensorSpec([None], tf.string, name=name) for name in ("text", "prefix", "reference")
        )
        self.translate = traced(self._translate, text)
        self.translate_in_detail = traced(self._translate_in_detail, text, prefix)
        self.score = traced(self._score, text, reference)
        self.what = model.what
        self.gives_attention = model.gives_attention
        if self.gives_attention:
            self.attention = traced(self._attention, text, reference)
        # The numbers of tokens of strings (B,), not cut.
        self.source_lengths = traced(
            lambda text: self.source_tokenizer.tokenize(text).row_lengths(), text
        )
        self.target_lengths = traced(
            lambda reference: self.target_tokens(reference).row_lengths(), reference
        )

    @classmethod
    def defaults(cls, description: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of `DecodingOptions` for a run: as it was trained to decode, else as its task.

        Args:
            description: the run's `model.json`.

        Raises:
            ValueError: if the file is damaged there.
        """
        return {**cls.default_options, **kept_in(description)}

    @classmethod
    def check(cls, options: DecodingOptions) -> None:
        """Refuse options that this kind of module cannot have.

        Raises:
            ValueError: naming the option.
        """
        if options.constrained:
            raise ValueError(
                "`constrained` is for parsers: what a translation may be, no rule says. Received: "
                "constrained=True. Leave it out."
            )

    def _translate(self, text):
        """Strings (B,) to strings (B,). An empty or blank string stays empty; a source is cut after
        1,024 tokens.
        """
        hypotheses, _ = self._search_as_exported(text, tf.zeros([tf.size(text), 0], tf.int32))
        return {self.output: self.target_text(hypotheses[:, 0], text)}

    def _translate_in_detail(self, text, prefix):
        """Translate strings (B,) and compute how likely each translation is.

        Args:
            text: strings (B,).
            prefix: what each translation must begin with, strings (B,); "" for anything.

        Returns:
            translations: (B, n), best first.
            scores: (B, n), what they are ranked by, -inf where there are fewer than n.
            pieces: (B, n, L), the tokens as strings, EOS among them; "" is padding.
            log_probabilities: (B, n, L), the model's log P of each token; 0 at padding.
        """
        prefixes = self.target_tokenizer.tokenize(prefix)[:, :-1].to_tensor(default_value=PAD)
        hypotheses, scores = self._search_as_exported(text, prefixes)
        shape = tf.shape(hypotheses)
        source = tf.repeat(self.source_ids(text).to_tensor(default_value=PAD), shape[1], axis=0)
        rows = tf.reshape(hypotheses, [shape[0] * shape[1], shape[2]])
        return {
            "translations": self.target_texts(hypotheses, text),
            "scores": scores,
            "pieces": self.target_pieces(hypotheses),
            "log_probabilities": tf.reshape(self._graphs.log_probabilities(source, rows), shape),
        }

    def _score(self, text, reference):
        """Strings (B,) and their translations (B,) to log P(Y | X) in nats and |Y|, EOS included.
        Lines and translations are cut after 1,024 tokens.
        """
        source = self.source_ids(text).to_tensor(default_value=PAD)
        target = self.target_ids(reference).to_tensor(default_value=PAD)
        return {
            "log_probability": tf.reduce_sum(
                self._graphs.log_probabilities(source, target), axis=1
            ),
            "tokens": tf.math.count_nonzero(target != PAD, axis=1, dtype=tf.int32),
        }

    def _attention(self, text, reference):
        """Strings (B,) and their translations (B,) to what every layer's heads attend to.

        Returns:
            source_pieces, target_pieces: strings (B, S) and (B, T), EOS among them; "" is padding.
            encoder, decoder, cross: (B, N, h, S, S), (B, N, h, T, T) and (B, N, h, T, S); row t is
                of the step that gives target piece t.
        """
        source = self.source_ids(text).to_tensor(default_value=PAD)
        target = self.target_ids(reference).to_tensor(default_value=PAD)
        return {
            "source_pieces": _pieces(self.source_tokenizer, source),
            "target_pieces": self.target_pieces(target),
            **self._graphs.attention(source, target),
        }

    def search(
        self,
        search: Callable,
        text: tf.Tensor,
        prefixes: tf.Tensor | None = None,
        limits: Callable[[tf.Tensor], tf.Tensor] | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Search for translations of strings (B,).

        Args:
            search: any search of `keras_transformer.decoding`.
            text: strings (B,).
            prefixes: ids to begin with, (B, P), padded.
            limits: a function of the sources' lengths (B,) that gives the most tokens of each
                translation; by default the options'.

        Returns:
            Hypotheses, ids (B, n, L), and their scores (B, n), best first.
        """
        ids = self.source_ids(text)
        options = self.options
        source = ids.to_tensor(default_value=PAD)
        lengths = ids.row_lengths()
        limits = (limits or options.limits)(lengths)
        minima = options.minima(lengths)
        # The samples of a sentence depend on its words, not on its place in the batch.
        seeds = tf.strings.to_hash_bucket_fast(text, 2**62)
        stepper = self._graphs.model.stepper()
        return search(stepper, self._graphs.encode(source), limits, minima, prefixes, seeds)

    def next_logits(self, text: tf.Tensor, prefix: tf.Tensor) -> tf.Tensor:
        """Logits of the piece that comes next, float32 (B, V).

        Args:
            text: strings (B,).
            prefix: the pieces of the translation that have come, joined by spaces, strings (B,).
        """
        pieces = tf.strings.split(prefix)[:, :MAX_SOURCE_LENGTH]
        ids = pieces.with_flat_values(self.target_tokenizer.string_to_id(pieces.flat_values))
        source = self.source_ids(text).to_tensor(default_value=PAD)
        return self._graphs.next_logits(source, ids.to_tensor(default_value=PAD))

    def source_ids(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Strings (B,) to ragged ids (B, None), each row closed by EOS and no longer than 1,024."""
        return _cut(self.source_tokenizer.tokenize(text))

    def target_ids(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Translations (B,) to ragged ids, likewise."""
        return _cut(self.target_tokens(text))

    def target_tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Translations (B,) to ragged ids, each row closed by EOS."""
        return self.target_tokenizer.tokenize(text)

    def target_pieces(self, ids: tf.Tensor) -> tf.Tensor:
        """Ids of any shape to the pieces they stand for, "" for padding."""
        return _pieces(self.target_tokenizer, ids)

    def target_text(self, ids: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Ids (B, L) to strings (B,), empty where `text` is blank."""
        words = tf.ragged.boolean_mask(ids, (ids != PAD) & (ids != EOS))
        return tf.where(tf.strings.strip(text) == "", "", self.target_tokenizer.detokenize(words))

    def target_texts(self, hypotheses: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Ids (B, n, L) to strings (B, n), empty where `text` is blank."""
        shape = tf.shape(hypotheses)
        rows = tf.reshape(hypotheses, [shape[0] * shape[1], shape[2]])
        return tf.reshape(self.target_text(rows, tf.repeat(text, shape[1])), shape[:2])


def _cut(tokens):
    """Ragged ids (B, None), closed by EOS, cut to 1,024."""
    words = tokens[:, :-1][:, : MAX_SOURCE_LENGTH - 1]
    return tf.concat([words, tf.fill([words.nrows(), 1], EOS)], axis=1)


def _pieces(tokenizer, ids):
    """Ids of any shape to the strings they stand for, "" for padding."""
    return tf.where(ids == PAD, "", tokenizer.id_to_string(ids))
