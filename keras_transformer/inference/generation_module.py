"""A language model as one TensorFlow graph, strings in, strings out, decoded as translations are
(Vaswani et al. 2017, section 6.1), by sampling unless options ask for a search.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH
from keras_transformer.decoding.scoring import token_log_probabilities
from keras_transformer.inference.graphs import IDS, shifted, traced
from keras_transformer.models import LanguageModel
from pipelines.special_ids import BOS, EOS, PAD
from pipelines.vocabularies.vocabulary import Vocabulary

# Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration": the likeliest text is dull.
TOP_P = 0.9


class GenerationModule(tf.Module):
    """Tokenizer, language model, search and detokenizer as functions of strings.

    `generation_signatures.served` makes a server's signatures of them.

    Args:
        model: a built `LanguageModel`.
        vocabulary: what it was trained with.
        options: from `options_of`; by default text is drawn. Lengths count from the prompt's: "+50"
            is 50 pieces more.

    Raises:
        ValueError: if the vocabulary is not as wide as the model's logits.
    """

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        options: DecodingOptions | None = None,
    ):
        super().__init__(name="generation")
        width = model.hyperparameters.vocabulary_size
        if vocabulary.size != width:
            raise ValueError(
                f"`vocabulary` must have the {width} pieces that the model was trained with. "
                f"Received: {vocabulary.size}."
            )
        self.vocabulary = vocabulary
        self.tokenizer = vocabulary.tokenizer
        # Only the variables are tracked, not the Keras model: with both, an export is twice as big.
        self.weights = [variable.value for variable in model.weights]
        self.options = options or self.options_of({})
        self.what = model.what
        self._stepper = model.stepper
        # Logits (B, T, V) from what the model reads, (B, T).
        self.logits = traced(lambda ids: model(ids, training=False), IDS)
        text = tf.TensorSpec([None], tf.string, name="text")
        self.generate = traced(self._generate, text)
        self.score = traced(self._score, text)
        self._attention = traced(lambda ids: model.attention_weights(ids)["decoder"], IDS)
        self.attend = traced(self._attend, text)

    @staticmethod
    def options_of(given: Mapping[str, Any]) -> DecodingOptions:
        """Options of decoding; where they name no search, text is drawn from 0.9 of the
        probability.

        Args:
            given: arguments of `DecodingOptions`; None: the default. samples=0 asks for a search.
                That has no use for the seed.

        Raises:
            ValueError: for an option that a language model cannot have.
        """
        given = {name: value for name, value in given.items() if value is not None}
        for name in ("constrained", "coverage_penalty"):
            if value := given.get(name):
                raise ValueError(
                    f"`{name}` needs a source, which a language model has not. Received: "
                    f"{name}={value}. Leave it out."
                )
        searches = given.get("beam_size") or "length_penalty" in given or given.get("samples") == 0
        if not given.get("samples") and searches:
            return DecodingOptions(**{name: given[name] for name in given if name != "seed"})
        return DecodingOptions(**{"top_p": TOP_P, **given, "samples": given.get("samples") or 1})

    def _generate(self, text):
        """Prompts (B,) to continued prompts, strings (B,). An empty prompt begins a new text."""
        hypotheses, _ = self.search(self.options.search(), text)
        return {"generated": self.text_of(hypotheses[:, 0])}

    def _score(self, text):
        """Strings (B,) to log P(Y) in nats and |Y|, EOS included. Texts are cut after 1,024
        tokens.
        """
        ids = self.ids_of(text)
        return {
            "log_probability": tf.reduce_sum(self.log_probabilities(ids), axis=1),
            "tokens": tf.math.count_nonzero(ids != PAD, axis=1, dtype=tf.int32),
        }

    def _attend(self, text):
        """Strings (B,) to their pieces (B, T), EOS the last and "" after a shorter text, and what
        every layer's heads attend to, "decoder" (B, N, h, T, T): row t belongs to the step that
        gives piece t, column t to the piece before it, which that step reads.
        """
        ids = self.ids_of(text)
        weights = self._attention(shifted(ids))
        return {"pieces": self.pieces_of(ids), "decoder": tf.cast(weights, tf.float32)}

    def lengths(self, lines: list[str]) -> list[int]:
        """How many tokens each line has, EOS included, however many the model takes."""
        return self.tokenizer.tokenize(tf.constant(lines)).row_lengths().numpy().tolist()

    def log_probabilities(self, ids: tf.Tensor) -> tf.Tensor:
        """Log P of each token of texts (B, T), 0 at padding."""
        return token_log_probabilities(self.logits(shifted(ids)), ids)

    def search(
        self,
        search: Callable,
        text: tf.Tensor,
        limits: Callable[[tf.Tensor], tf.Tensor] | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Continue prompts (B,).

        Args:
            search: any search of `keras_transformer.decoding`.
            text: strings (B,), each cut after 1,024 tokens.
            limits: a function of the prompts' lengths (B,) that gives the most tokens of each text,
                the prompt among them; by default the options'.

        Returns:
            Texts with their prompts, ids (B, n, L), and their scores (B, n), best first.
        """
        prompts = self._prompts(text)
        # As a translation's source, a prompt counts one more than it has, as if closed by EOS.
        lengths = prompts.row_lengths() + 1
        limits = (limits or self.options.limits)(lengths)
        minima = self.options.minima(lengths)
        # The samples of a prompt depend on its words, not on its place in the batch.
        seeds = tf.strings.to_hash_bucket_fast(text, 2**62)
        prefixes = prompts.to_tensor(default_value=PAD)
        return search(self._stepper(), {}, limits, minima, prefixes, seeds)

    def next_logits(self, text: tf.Tensor, prefix: tf.Tensor) -> tf.Tensor:
        """Logits of the piece that comes next, float32 (B, V).

        Args:
            text: prompts (B,).
            prefix: the pieces that have come after them, joined by spaces, strings (B,).
        """
        pieces = tf.strings.split(prefix)
        came = pieces.with_flat_values(self.tokenizer.string_to_id(pieces.flat_values))
        prompts = tf.concat([self._prompts(text), came], axis=1)[:, : MAX_SOURCE_LENGTH - 1]
        ids = tf.pad(prompts.to_tensor(default_value=PAD), [[0, 0], [1, 0]], constant_values=BOS)
        return tf.gather(self.logits(ids), prompts.row_lengths(), batch_dims=1)

    def ids_of(self, text: tf.Tensor) -> tf.Tensor:
        """Strings (B,) to ids (B, T), each closed by EOS, cut after 1,024 tokens, padded."""
        words = self._prompts(text)
        closed = tf.concat([words, tf.fill([words.nrows(), 1], EOS)], axis=1)
        return closed.to_tensor(default_value=PAD)

    def text_of(self, ids: tf.Tensor) -> tf.Tensor:
        """Ids (B, L) to strings (B,)."""
        return self.tokenizer.detokenize(tf.ragged.boolean_mask(ids, (ids != PAD) & (ids != EOS)))

    def texts_of(self, hypotheses: tf.Tensor) -> tf.Tensor:
        """Ids (B, n, L) to strings (B, n)."""
        shape = tf.shape(hypotheses)
        rows = tf.reshape(hypotheses, [shape[0] * shape[1], shape[2]])
        return tf.reshape(self.text_of(rows), shape[:2])

    def pieces_of(self, ids: tf.Tensor) -> tf.Tensor:
        """Ids of any shape to the pieces they stand for, "" for padding."""
        return tf.where(ids == PAD, "", self.tokenizer.id_to_string(ids))

    def _prompts(self, text):
        """Strings (B,) to ragged ids (B, None), not closed."""
        return self.tokenizer.tokenize(text)[:, :-1][:, : MAX_SOURCE_LENGTH - 1]
