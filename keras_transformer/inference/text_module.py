"""The base of modules that write text: translators, parsers and language models, which are
translators without a source (Vaswani et al. 2017, section 6.1 for decoding).

The options of a request are inputs with a default, (1,) for all texts or (B,). A server may join
several requests in one batch. Out-of-range options are clamped, so that one request cannot fail the
others in its batch.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import DecodingOptions, Sampling
from keras_transformer.decoding.candidates import next_tokens
from keras_transformer.decoding.constraints import Preference, SpanConstraints, under
from keras_transformer.decoding.forbidden_words import ForbiddenWords
from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH, MOST_TOKENS, most_read
from keras_transformer.decoding.options import NEXT_PIECES, TEMPERATURES
from keras_transformer.decoding.other_beams import BEAMS
from keras_transformer.decoding.remembered_options import check_heads
from keras_transformer.inference.model_graphs import laid_out_tables, traced
from keras_transformer.saved_models.served_module import ServedText
from pipelines.batches import labelled_texts
from pipelines.special_ids import EOS, PAD
from pipelines.vocabularies.protected_spans import AS_SPAN, MARKS, TERM
from pipelines.vocabularies.span_marks import given_terms, marks_of, terms_within

TEXT = tf.TensorSpec([None], tf.string, name="text")


def with_options(function: Callable, **defaults: tf.Tensor):
    """Return a graph of a function of `text` and of options, which a request may leave out."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    options = [inspect.Parameter(name, kind, default=value) for name, value in defaults.items()]
    signature = inspect.Signature([inspect.Parameter("text", kind), *options])

    def called(*inputs, **named):
        values = signature.bind(*inputs, **named)
        values.apply_defaults()
        return function(**values.arguments)

    # TensorFlow reads the names and the defaults of inputs from it.
    called.__signature__ = signature
    specifications = [tf.TensorSpec([None], value.dtype, name) for name, value in defaults.items()]
    return traced(called, TEXT, *specifications)


class TextModule(ServedText):
    """Tokenizers, model, search and detokenizer as functions of strings.

    All its functions take `text`, strings (B,), and return outputs of B rows:

    serving_default  -> the output text (B,), by the exported search
    nbest            -> texts and scores (B, n), all that the exported search keeps
    sample           options temperature and seed -> a sampled text (B,)
    score            -> log_probability and tokens (B,)
    next_pieces      options prefix (the pieces so far, joined by spaces), temperature, top_k
                     (0: all) and top_p -> the 20 likeliest next pieces, their probabilities when
                     sampled with these options, and those of the model, each (B, 20)

    Attributes:
        output, outputs: the name of the output text, and of several of them.
        default_options: arguments of `DecodingOptions` in place of its defaults.
        stepper, has_blocks: makes a `Stepper` with the current weights; whether it decodes blocks.
        tables: the `LaidOutTable`s that a step multiplies by.
        encode: a graph that encodes sources (B, S) for the steps; None without a source.
        positions: the most tokens of a text.
    """

    output: str
    outputs: str
    default_options: Mapping[str, Any] = {}
    score: Callable[..., dict]
    encode: Callable | None = None
    positions: int = MOST_TOKENS

    def __init__(self, model, vocabulary, options: DecodingOptions, name: str):
        super().__init__(model, vocabulary, name)
        self.source_tokenizer = vocabulary.source.tokenizer
        self.target_tokenizer = vocabulary.target.tokenizer
        self.options = options
        self.marks = marks_of(vocabulary.protected)
        protected = vocabulary.protected
        self._learned_terms = bool(protected and protected.glossary_rate)
        self._puts_terms_in = bool(protected and protected.puts_terms_in and options.protect_all)
        words = options.forbidden_words
        self.forbidden = ForbiddenWords(words, vocabulary.target.spelled) if words else None
        self.stepper = model.stepper
        self.tables = laid_out_tables(model)
        self.has_blocks = hasattr(model, "proposal_heads")
        check_heads(options, self.has_blocks)

    def functions(self):
        return {
            "nbest": traced(self._nbest, TEXT),
            "sample": with_options(self.sampled, **self.sampling_defaults()),
            "score": self.score,
            "next_pieces": self._next_pieces(),
        }

    def facts(self):
        options = dataclasses.asdict(self.options)
        return {
            **super().facts(),
            "decoding": {name: value for name, value in options.items() if value is not None},
        }

    def begin(self, source: tf.RaggedTensor, prefixes: tf.Tensor | None) -> tuple:
        """Return the memory of the steps, and padded ids (B, P) to start from, or None."""
        raise NotImplementedError

    def next_logits(self, text: tf.Tensor, prefix: tf.Tensor) -> tf.Tensor:
        """Return float32 logits (B, V) of the piece after those in `prefix`, strings (B,)."""
        raise NotImplementedError

    def search(
        self,
        search: Callable,
        text: tf.Tensor,
        prefixes: tf.Tensor | None = None,
        limits: Callable[[tf.Tensor], tf.Tensor] | None = None,
        source: tf.RaggedTensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return hypotheses for strings (B,), ids (B, n, L), and their scores (B, n), best first.
        `limits` maps the sources' lengths (B,), EOS included, to the most tokens of each text.
        """
        source = self.source_ids(text) if source is None else source
        lengths = source.row_lengths()
        search = self._keeping_spans(search, text, source)
        if self.forbidden:
            rules = dataclasses.replace(search.constraints, forbidden=self.forbidden)
            search = under(search, rules)
        if self._learned_terms and type(search) in BEAMS.values():
            search = self._preferring_terms(search, text)
        memory, prefixes = self.begin(source, prefixes)
        limits = tf.minimum((limits or self.options.limits)(lengths), self.positions)
        # A text's samples depend on its words, not on its place in the batch.
        seeds = tf.strings.to_hash_bucket_fast(text, 2**62)
        stepper = self.stepper(*(table.read() for table in self.tables))
        return search(stepper, memory, limits, self.options.minima(lengths), prefixes, seeds)

    def search_for_terms(
        self, search: Callable, text: tf.Tensor, prefixes: tf.Tensor | None = None, **more
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return the results of `search`, and the texts as translated, (B,). Where the best
        hypothesis lacks a given term, and there is no prefix, the text is translated again with all
        its terms as protected spans.
        """
        if not self._puts_terms_in or isinstance(search, Sampling):
            return *self.search(search, text, prefixes, **more), text
        limits = more.pop("limits", self.options.limits)

        def translate(text, is_translated):
            def limits_of(lengths):
                return tf.where(is_translated, limits(lengths), 1)

            return self.search(search, text, prefixes, limits_of, **more)

        # A graph of its own, so that the two calls share one copy.
        translate = traced(translate, TEXT, tf.TensorSpec([None], tf.bool))
        ids, scores = translate(text, tf.fill(tf.shape(text), True))
        terms = given_terms(text)
        count = terms_within(terms, self.target_text(ids[:, 0], text)[:, None])[:, 0]
        lacks = count < tf.cast(terms.row_lengths(), tf.int32)
        if prefixes is not None:
            lacks &= tf.reduce_all(prefixes == PAD, axis=1)

        def again():
            spans = tf.strings.regex_replace(text, TERM, AS_SPAN)
            new_ids, new_scores = translate(tf.where(lacks, spans, ""), lacks)
            both = [tf.RaggedTensor.from_tensor(rows, ragged_rank=2) for rows in (new_ids, ids)]
            both = tf.unstack(tf.ragged.stack(both).to_tensor(PAD), 2)
            return (
                tf.where(lacks[:, None, None], *both),
                tf.where(lacks[:, None], new_scores, scores),
                tf.where(lacks, spans, text),
            )

        return tf.cond(tf.reduce_any(lacks), again, lambda: (ids, scores, text))

    def hypotheses(self, ids, scores, text) -> dict[str, tf.Tensor]:
        """Return the results of `search_for_terms` as strings (B, n) with their scores."""
        # A missing hypothesis has the lowest float32 as its score: JSON has no infinity.
        return {
            self.outputs: self.target_texts(ids, text),
            "scores": tf.maximum(scores, tf.float32.min),
        }

    def sampled(self, text, temperature, seed, limits=None) -> dict[str, tf.Tensor]:
        """Sample each text, with the options of a request."""
        sampling = self.options.sampling(temperature=_clipped(temperature), seed=seed)
        ids, _ = self.search(sampling, text, limits=limits)
        return {self.output: self.target_text(ids[:, 0], text)}

    def sampling_defaults(self) -> dict[str, tf.Tensor]:
        """Return the exported values of the options of `sampled`."""
        exported = self.options.sampling()
        return {
            "temperature": tf.constant([exported.temperature], tf.float32),
            "seed": tf.constant([exported.seed], tf.int64),
        }

    def _nbest(self, text):
        return self.hypotheses(*self.search_for_terms(self.options.search_for_all(), text))

    def _next_pieces(self):
        def next_pieces(text, prefix, temperature, top_k, top_p):
            texts = tf.shape(text)
            # For NaN the comparison is false.
            top_p = tf.where(top_p > 0, tf.minimum(top_p, 1.0), 1.0)
            options = (prefix, _clipped(temperature), top_k, top_p)
            prefix, *drawing = (tf.broadcast_to(option, texts) for option in options)
            likeliest = next_tokens(self.next_logits(text, prefix), *drawing, NEXT_PIECES)
            return {
                "pieces": self.target_pieces(likeliest.ids),
                "probabilities": likeliest.shares,
                "model_probabilities": likeliest.probabilities,
            }

        defaults = {"prefix": "", "temperature": 1.0, "top_k": 0, "top_p": 1.0}
        defaults = {name: tf.constant([value]) for name, value in defaults.items()}
        return with_options(next_pieces, **defaults)

    def source_ids(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return ragged ids (B, None) of strings (B,), each row closed by EOS and cut to 1,024."""
        return cut(self.source_tokens(text), most_read(self.positions))

    def source_tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of `source_ids` before they are cut."""
        return self.source_tokenizer.tokenize(self.marks.marked(text).text if self.marks else text)

    def target_pieces(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the pieces of ids of any shape, "" for padding."""
        return pieces_of(self.target_tokenizer, ids)

    def target_text(self, ids: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Return strings (B,) from the ids (B, L) of hypotheses for `text`, strings (B,)."""
        words = tf.ragged.boolean_mask(ids, (ids != PAD) & (ids != EOS))
        output = self.target_tokenizer.detokenize(words)
        return self.marks.put_back(output, self.marks.marked(text)) if self.marks else output

    def target_texts(self, hypotheses: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Return strings (B, n) from ids (B, n, L): see `target_text`."""
        shape = tf.shape(hypotheses)
        rows = tf.reshape(hypotheses, [shape[0] * shape[1], shape[2]])
        return tf.reshape(self.target_text(rows, tf.repeat(text, shape[1])), shape[:2])

    def _keeping_spans(self, search, text, source):
        """Return a search that keeps the protected spans of texts, if the options ask for it.
        `source` is cut, and the spans behind its end are lost.
        """
        if not self.marks or not self.options.protect_all:
            return search
        source_marks, target_marks = (
            np.array([side.pieces.index(mark) for mark in MARKS], np.int32)
            for side in (self.vocabulary.source, self.vocabulary.target)
        )
        is_mark = source.to_tensor(PAD)[:, :, None] == source_marks
        rules = self.options.constraints(
            SpanConstraints,
            marks=target_marks,
            count=tf.math.count_nonzero(is_mark, axis=1, dtype=tf.int32),
            opened_by=self.marks.openings(self.marks.marked(text).spans),
        )
        return under(search, rules)

    def _preferring_terms(self, search, text):
        """Return a search whose best translation has the most of the texts' given terms."""
        terms = given_terms(text)
        preference = Preference(
            terms.row_lengths() > 0, lambda ids: terms_within(terms, self.target_texts(ids, text))
        )
        return under(search, dataclasses.replace(search.constraints, preference=preference))


def cut(tokens: tf.RaggedTensor, most: int = MAX_SOURCE_LENGTH) -> tf.RaggedTensor:
    """Cut ragged ids (B, None), closed by EOS, to `most`."""
    return labelled_texts.cut(tokens, most, EOS)


def pieces_of(tokenizer, ids: tf.Tensor) -> tf.Tensor:
    """Return the pieces of ids of any shape, "" for padding."""
    return tf.where(ids == PAD, "", tokenizer.id_to_string(ids))


def _clipped(temperature):
    """Clip to `TEMPERATURES`; NaN, 0 and less become 1."""
    return tf.where(temperature > 0, tf.clip_by_value(temperature, *TEMPERATURES), 1.0)
