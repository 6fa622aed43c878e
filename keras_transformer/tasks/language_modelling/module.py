"""A language model as one TensorFlow graph, strings in, strings out, decoded like translations
(Vaswani et al. 2017, section 6.1), by sampling unless an option is of a search.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.candidates import token_log_probabilities
from keras_transformer.decoding.lengths import LONGEST, most_read
from keras_transformer.decoding.remembered_options import OF_BEAM, decoding_flags
from keras_transformer.inference.model_graphs import IDS, shifted, traced
from keras_transformer.inference.text_module import TEXT, TextModule, with_options
from keras_transformer.models import LanguageModel
from pipelines import vocabularies
from pipelines.special_ids import BOS, PAD
from pipelines.vocabularies.vocabulary import Vocabulary

# Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration": the likeliest text is dull.
TOP_P = 0.9


class GenerationModule(TextModule):
    """A `TextModule` that continues prompts. An empty prompt begins a new text.

    `sample` also has the option max_length, in pieces after the prompt (0: as exported). And

    attend           -> pieces (B, T), and decoder (B, N, h, T, T), the attention of all heads
    """

    output = outputs = "generated"
    does = "the beginning of a text in, the text out"
    heading = "A language model"
    model_class = LanguageModel

    def __init__(
        self, model: LanguageModel, vocabulary: Vocabulary, options: DecodingOptions | None = None
    ):
        super().__init__(model, vocabulary, options or self.options_of({}), "generation")
        if self.hyperparameters.positions == "learned":
            self.positions = self.hyperparameters.max_positions
        # Logits (B, T, V) from what the model reads, (B, T).
        self.logits = traced(lambda ids: model(ids, training=False), IDS)
        self._attention = traced(lambda ids: model.attention_weights(ids)["decoder"], IDS)
        self.generate = traced(self._generate, TEXT)
        self.score = traced(self._score, TEXT)
        self.attend = traced(self._attend, TEXT)

    def functions(self):
        own = {"serving_default": self.generate, "attend": self.attend, "sample": self._sample()}
        return {**super().functions(), **own}

    def score_rows(self, scores):
        if not scores:
            return super().score_rows(scores)
        return {
            "test set": f"perplexity {scores['perplexity']} a piece, "
            f"{scores['perplexity_of_words']} a word ({scores['weights']})"
        }

    @staticmethod
    def options_of(values: Mapping[str, Any]) -> DecodingOptions:
        """Make options of decoding from arguments of `DecodingOptions`, None for a default. Without
        an option of a search, text is sampled from 0.9 of the probability. samples=0 means a
        search, which ignores the seed.
        """
        values = {name: value for name, value in values.items() if value is not None}
        for name in ("constrained", "coverage_penalty"):
            if value := values.get(name):
                raise ValueError(
                    f"`{name}` needs a source, which a language model has not. Received: "
                    f"{name}={value}. Leave it out."
                )
        samples = values.get("samples")
        searches = samples == 0 or not values.keys().isdisjoint(OF_BEAM)
        if not samples and searches:
            return DecodingOptions(**{name: values[name] for name in values if name != "seed"})
        return DecodingOptions(**{"top_p": TOP_P, **values, "samples": samples or 1})

    @classmethod
    def options_of_flags(cls, values: Mapping[str, Any]) -> DecodingOptions:
        """`options_of` the values of flags. --samples=0 is the default, and means no search."""
        flags = decoding_flags(values)
        return cls.options_of(
            {name: value for name, value in flags.items() if name != "samples" or value}
        )

    @classmethod
    def of_model(cls, model, folder, values):
        """Make the module of a run's model, which decodes by the values of flags."""
        return cls(model, vocabularies.load(folder.path), cls.options_of_flags(values))

    def _generate(self, text):
        ids, _ = self.search(self.options.search(), text)
        return {"generated": self.target_text(ids[:, 0], text)}

    def _score(self, text):
        """Return log P(Y) in nats and |Y|, EOS included, of strings (B,), cut to 1,024 tokens."""
        ids = self.ids_of(text)
        return {
            "log_probability": tf.reduce_sum(self.log_probabilities(ids), axis=1),
            "tokens": tf.math.count_nonzero(ids != PAD, axis=1, dtype=tf.int32),
        }

    def _attend(self, text):
        """Return the pieces of strings (B,), (B, T), EOS the last and "" after it, and the
        attention weights of all layers, "decoder" (B, N, h, T, T). Row t belongs to the step that
        predicts piece t, column t to the piece before it, which that step reads.
        """
        ids = self.ids_of(text)
        weights = self._attention(shifted(ids))
        return {"pieces": self.target_pieces(ids), "decoder": tf.cast(weights, tf.float32)}

    def _sample(self):
        def sample(text, temperature, seed, max_length):
            def limits(lengths):
                longest = tf.cast(lengths, tf.int32) + tf.minimum(max_length, LONGEST)
                return tf.where(max_length > 0, longest, self.options.limits(lengths))

            return self.sampled(text, temperature, seed, limits)

        return with_options(sample, **self.sampling_defaults(), max_length=tf.constant([0]))

    def log_probabilities(self, ids: tf.Tensor) -> tf.Tensor:
        """Return log P of each token of texts (B, T), 0 at padding."""
        return token_log_probabilities(self.logits(shifted(ids)), ids)

    def begin(self, source, prefixes):
        """Return prompts as prefixes, without the EOS that counts in their length."""
        return {}, source[:, :-1].to_tensor(default_value=PAD)

    def next_logits(self, text, prefix):
        pieces = tf.strings.split(prefix)
        ids = pieces.with_flat_values(self.target_tokenizer.string_to_id(pieces.flat_values))
        prompts = tf.concat([self.source_ids(text)[:, :-1], ids], axis=1)
        prompts = prompts[:, : most_read(self.positions) - 1]
        ids = tf.pad(prompts.to_tensor(default_value=PAD), [[0, 0], [1, 0]], constant_values=BOS)
        return tf.gather(self.logits(ids), prompts.row_lengths(), batch_dims=1)

    def ids_of(self, text: tf.Tensor) -> tf.Tensor:
        """Return padded ids (B, T) of strings (B,), which end in EOS or are cut to 1,024 tokens."""
        return self.source_ids(text).to_tensor(default_value=PAD)
