"""What modules share that write text: translators, parsers and language models, which are
translators without a source (Vaswani et al. 2017, section 6.1 for decoding).

Options of a request are inputs with a default, (1,) for all texts or (B,). A server may join
several requests in one batch. Out-of-range options are clamped, so that one request cannot fail the
others in its batch.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import DecodingOptions, GreedySearch
from keras_transformer.decoding.candidates import next_tokens
from keras_transformer.decoding.constraints import Preference, under
from keras_transformer.decoding.forbidden_words import ForbiddenWords
from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH, MOST_TOKENS, most_read
from keras_transformer.decoding.options import NEXT_PIECES, TEMPERATURES
from keras_transformer.decoding.other_beams import BEAMS
from keras_transformer.decoding.remembered_options import check_heads
from keras_transformer.decoding.span_constraints import SpanConstraints
from keras_transformer.inference.model_graphs import laid_out_tables, traced
from keras_transformer.saved_models.served_module import ServedText
from pipelines.batches import labelled_texts
from pipelines.special_ids import EOS, PAD
from pipelines.vocabularies.protected_spans import AS_SPAN, MARKS, TERM
from pipelines.vocabularies.span_marks import given_terms, marks_of, terms_within

TEXT = tf.TensorSpec([None], tf.string, name="text")


def with_options(function: Callable, **defaults: tf.Tensor):
    """A graph of a function of `text` and options by name, which a request may leave out."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    options = [inspect.Parameter(name, kind, default=one) for name, one in defaults.items()]
    signature = inspect.Signature([inspect.Parameter("text", kind), *options])

    def called(*given, **named):
        values = signature.bind(*given, **named)
        values.apply_defaults()
        return function(**values.arguments)

    # TensorFlow reads the names and the defaults of inputs from it.
    called.__signature__ = signature
    specifications = [tf.TensorSpec([None], one.dtype, name) for name, one in defaults.items()]
    return traced(called, TEXT, *specifications)


class TextModule(ServedText):
    """Tokenizers, model, search and detokenizer as functions of strings.

    All its functions take `text`, strings (B,), and give outputs of B rows:

    serving_default  -> the text that comes out (B,), as exported
    nbest            -> texts and scores (B, n), all that the exported search keeps
    sample           options temperature and seed -> a text that is drawn (B,)
    score            -> log_probability and tokens (B,)
    next_pieces      options prefix (the pieces that have come, joined by spaces), temperature,
                     top_k (0: all) and top_p -> the 20 likeliest next pieces, their probabilities
                     as drawn with these options, and those of the model, each (B, 20)

    Attributes:
        output, outputs: what functions call the text that comes out, and several of them.
        default_options: arguments of `DecodingOptions` in place of its defaults.
        stepper, has_blocks: makes a `Stepper` with the weights as they are; whether of blocks.
        tables: what a step multiplies by, see `LaidOutTable`.
        encode: a graph of what its steps need of sources (B, S); None where there is no source.
        positions: the most tokens of a text without a source.
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
            "sample": with_options(self.drawn, **self.options_to_draw()),
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
        """What a search begins with: the memory of the steps, and padded ids (B, P), or None."""
        raise NotImplementedError

    def next_logits(self, text: tf.Tensor, prefix: tf.Tensor) -> tf.Tensor:
        """Logits of the piece after those in `prefix`, strings (B,), float32 (B, V)."""
        raise NotImplementedError

    def search(
        self,
        search: Callable,
        text: tf.Tensor,
        prefixes: tf.Tensor | None = None,
        limits: Callable[[tf.Tensor], tf.Tensor] | None = None,
        source: tf.RaggedTensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Hypotheses for strings (B,), ids (B, n, L), and their scores (B, n), best first. `limits`
        gives of the sources' lengths (B,), EOS included, the most tokens of each text.
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
        # The samples of a text depend on its words, not on its place in the batch.
        seeds = tf.strings.to_hash_bucket_fast(text, 2**62)
        stepper = self.stepper(*(one.read() for one in self.tables))
        return search(stepper, memory, limits, self.options.minima(lengths), prefixes, seeds)

    def search_for_terms(
        self, search: Callable, text: tf.Tensor, prefixes: tf.Tensor | None = None, **more
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """As `search`, and the texts that were translated, (B,): where the best hypothesis lacks a
        given term, and no prefix is wanted, the text is translated again with all its terms as
        protected spans.
        """
        if not self._puts_terms_in or type(search) not in (*BEAMS.values(), GreedySearch):
            return *self.search(search, text, prefixes, **more), text
        limits = more.pop("limits", self.options.limits)

        def once(text, is_asked):
            return self.search(
                search, text, prefixes, lambda of: tf.where(is_asked, limits(of), 1), **more
            )

        # The graph holds it once.
        once = traced(once, TEXT, tf.TensorSpec([None], tf.bool))
        ids, scores = once(text, tf.fill(tf.shape(text), True))
        terms = given_terms(text)
        came = terms_within(terms, self.target_text(ids[:, 0], text)[:, None])[:, 0]
        lacks = came < tf.cast(terms.row_lengths(), tf.int32)
        if prefixes is not None:
            lacks &= tf.reduce_all(prefixes == PAD, axis=1)

        def again():
            spans = tf.strings.regex_replace(text, TERM, AS_SPAN)
            others, of_others = once(tf.where(lacks, spans, ""), lacks)
            both = [tf.RaggedTensor.from_tensor(one, ragged_rank=2) for one in (others, ids)]
            both = tf.unstack(tf.ragged.stack(both).to_tensor(PAD), 2)
            return (
                tf.where(lacks[:, None, None], *both),
                tf.where(lacks[:, None], of_others, scores),
                tf.where(lacks, spans, text),
            )

        return tf.cond(tf.reduce_any(lacks), again, lambda: (ids, scores, text))

    def hypotheses(self, ids, scores, text) -> dict[str, tf.Tensor]:
        """What `search_for_terms` gave, as strings (B, n) with their scores."""
        # JSON has no infinity: where a hypothesis is missing, the score is the lowest float32.
        return {
            self.outputs: self.target_texts(ids, text),
            "scores": tf.maximum(scores, tf.float32.min),
        }

    def drawn(self, text, temperature, seed, limits=None) -> dict[str, tf.Tensor]:
        """A sample for each text, by the options of a request."""
        drawing = self.options.sampling(temperature=_possible(temperature), seed=seed)
        ids, _ = self.search(drawing, text, limits=limits)
        return {self.output: self.target_text(ids[:, 0], text)}

    def options_to_draw(self) -> dict[str, tf.Tensor]:
        """The options that `drawn` takes, as exported."""
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
            likeliest = next_tokens(
                self.next_logits(text, tf.broadcast_to(prefix, texts)),
                tf.broadcast_to(_possible(temperature), texts),
                tf.broadcast_to(top_k, texts),
                # The comparison is false for NaN.
                tf.broadcast_to(tf.where(top_p > 0, tf.minimum(top_p, 1.0), 1.0), texts),
                NEXT_PIECES,
            )
            return {
                "pieces": self.target_pieces(likeliest.ids),
                "probabilities": likeliest.drawn,
                "model_probabilities": likeliest.probabilities,
            }

        return with_options(
            next_pieces,
            prefix=tf.constant([""]),
            temperature=tf.constant([1.0]),
            top_k=tf.constant([0]),
            top_p=tf.constant([1.0]),
        )

    def source_ids(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Strings (B,) to ragged ids (B, None), each row closed by EOS and no longer than 1,024."""
        return cut(self.source_tokens(text), most_read(self.positions))

    def source_tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Likewise, not cut."""
        return self.source_tokenizer.tokenize(self.marks.marked(text).text if self.marks else text)

    def target_pieces(self, ids: tf.Tensor) -> tf.Tensor:
        """Ids of any shape to the pieces they stand for, "" for padding."""
        return pieces_of(self.target_tokenizer, ids)

    def target_text(self, ids: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Ids (B, L) that came of `text`, strings (B,), to strings (B,)."""
        words = tf.ragged.boolean_mask(ids, (ids != PAD) & (ids != EOS))
        written = self.target_tokenizer.detokenize(words)
        return self.marks.put_back(written, self.marks.marked(text)) if self.marks else written

    def target_texts(self, hypotheses: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Ids (B, n, L) to strings (B, n), as `target_text`."""
        shape = tf.shape(hypotheses)
        rows = tf.reshape(hypotheses, [shape[0] * shape[1], shape[2]])
        return tf.reshape(self.target_text(rows, tf.repeat(text, shape[1])), shape[:2])

    def _keeping_spans(self, search, text, source):
        """The search that keeps the spans of texts, if the options say so. Those that were cut off
        with the end of a source are lost with it.
        """
        if not self.marks or not self.options.protect_all:
            return search
        of_source, of_target = (
            np.array([side.pieces.index(mark) for mark in MARKS], np.int32)
            for side in (self.vocabulary.source, self.vocabulary.target)
        )
        came = source.to_tensor(PAD)[:, :, None] == of_source
        rules = self.options.constraints(
            SpanConstraints,
            marks=of_target,
            count=tf.math.count_nonzero(came, axis=1, dtype=tf.int32),
            opened_by=self.marks.openings(self.marks.marked(text).spans),
        )
        return under(search, rules)

    def _preferring_terms(self, search, text):
        """The search whose best translation has the most of the terms that are given for texts."""
        terms = given_terms(text)
        preference = Preference(
            terms.row_lengths() > 0, lambda ids: terms_within(terms, self.target_texts(ids, text))
        )
        return under(search, dataclasses.replace(search.constraints, preference=preference))


def cut(tokens: tf.RaggedTensor, most: int = MAX_SOURCE_LENGTH) -> tf.RaggedTensor:
    """Ragged ids (B, None), closed by EOS, cut to `most`."""
    return labelled_texts.cut(tokens, most, EOS)


def pieces_of(tokenizer, ids: tf.Tensor) -> tf.Tensor:
    """Ids of any shape to the strings they stand for, "" for padding."""
    return tf.where(ids == PAD, "", tokenizer.id_to_string(ids))


def _possible(temperature):
    """Within `TEMPERATURES`; 1 for what is no temperature."""
    return tf.where(temperature > 0, tf.clip_by_value(temperature, *TEMPERATURES), 1.0)
