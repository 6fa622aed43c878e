"""Replace spans that must not be translated by marks, and put them back, with TensorFlow operations
in training and in served graphs alike.

The first span of a sentence is "⟦1⟧". The 33rd is "⟦1⟧" again: where a mark comes twice, its order
decides which span it stands for. Shapes: B texts; N spans of a text.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from pipelines.vocabularies.casing import LEAST_LETTERS, OPENING, START, TAG, WORD, Cased
from pipelines.vocabularies.protected_spans import MARK, MARKS, MOST, TERM, ProtectedSpans
from pipelines.vocabularies.token_ids import slices

# No byte of UTF-8.
BORDER = b"\xff"
UTF8 = "utf-8"
LONGEST = 2**30
SYNTAX = "Write it as RE2 does: https://github.com/google/re2/wiki/Syntax."

# A graph holds such a function once, however often it calls it.
_as_one_operation = tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)


class Marked(NamedTuple):
    """Texts (B,) in which marks stand for spans; the spans in order, ragged strings (B, N); and
    whether the texts were all in capitals, booleans (B,), or None where nobody asks.
    """

    text: tf.Tensor
    spans: tf.RaggedTensor
    is_capital: tf.Tensor | None = None


class SpanMarks:
    """Replaces the spans that are `protected` by marks, and puts them back."""

    def __init__(self, protected: ProtectedSpans):
        self._expression = protected.expression
        if protected.protect_pattern:
            _check(protected.protect_pattern)

    @_as_one_operation
    def marked(self, text: tf.Tensor) -> Marked:
        """Replace the spans of texts, strings (B,), by marks."""
        parts, is_span, numbers = self._parts(text)
        marks = tf.gather(tf.constant(MARKS), numbers.flat_values % MOST)
        written = tf.where(is_span.flat_values, marks, parts.flat_values)
        joined = tf.strings.reduce_join(parts.with_values(written), axis=-1)
        return Marked(joined, tf.ragged.boolean_mask(parts, is_span))

    def marked_as(self, text: tf.Tensor, marked: Marked) -> tuple[tf.Tensor, tf.Tensor]:
        """Replace the spans of translations, strings (B,), by the marks that they have in their
        sources. Spans that the source does not have stay text.

        Returns:
            strings (B,), and whether source and translation have equal spans, booleans (B,).
        """
        spans = marked.spans
        parts, is_span, _ = self._parts(text)
        own = tf.ragged.boolean_mask(parts, is_span)
        numbers = own.with_values(_places_of_equals(own, spans))
        indices = tf.cast(tf.where(is_span.flat_values), tf.int32)
        number_of_part = tf.tensor_scatter_nd_update(
            tf.fill(tf.shape(parts.flat_values), -1), indices, numbers.flat_values
        )
        marks = tf.gather(tf.constant(MARKS), tf.maximum(number_of_part, 0) % MOST)
        written = parts.with_values(tf.where(number_of_part >= 0, marks, parts.flat_values))
        has_all = own.row_lengths() == spans.row_lengths()
        agree = has_all & tf.reduce_all(numbers >= 0, axis=-1)
        return tf.strings.reduce_join(written, axis=-1), agree

    def put_back(self, text: tf.Tensor, marked: Marked) -> tf.Tensor:
        """Replace the marks of translations (B,) by the spans of their sources."""
        parts = tf.strings.split(bordered(text, MARK, b"\\1"), BORDER)
        is_mark = alternate(parts)
        digits = tf.where(is_mark.flat_values, parts.flat_values, "0")
        numbers = tf.strings.to_number(digits, tf.int32) - 1
        rows = tf.cast(parts.value_rowids(), tf.int32)
        places = numbers + MOST * _equals_before((MOST + 1) * rows + numbers)
        # An empty last column, for marks without a span.
        spans = tf.pad(marked.spans.to_tensor(""), [[0, 0], [0, 1]], constant_values="")
        # A user wrote ⟦ and ⟧ to protect what stands between them.
        spans = tf.strings.regex_replace(spans, "^⟦([^⟧]*)⟧$", "\\1")
        columns = tf.clip_by_value(places, 0, tf.shape(spans)[1] - 1)
        span_of_part = tf.gather_nd(spans, tf.stack([rows, columns], axis=1))
        written = tf.where(is_mark.flat_values, span_of_part, parts.flat_values)
        return tf.strings.reduce_join(parts.with_values(written), axis=-1)

    def openings(self, spans: tf.RaggedTensor) -> tf.Tensor:
        """Return for each mark the number of the mark whose tag it closes, int32 (B, M); -1 if
        none, as for all marks of a text that has more spans than there are marks.
        """
        is_full = spans.row_lengths() > MOST
        spans = spans[:, :MOST].to_tensor("", shape=[None, MOST])
        name = tf.strings.regex_replace(spans, r"^</?([A-Za-z][\w:.-]*)(?:[^>]*)>$", r"\1")
        opens = tf.strings.regex_full_match(spans, "<[A-Za-z](?:[^<>]*[^<>/])?>")
        closes = tf.strings.regex_full_match(spans, "</[A-Za-z][^<>]*>")
        steps = tf.cast(opens, tf.int32) - tf.cast(closes, tf.int32)
        places = tf.range(tf.shape(spans)[1])
        earlier = places[:, None] > places
        alike = name[:, :, None] == name[:, None]
        until = (earlier | (places[:, None] == places)) & alike
        depth = tf.reduce_sum(tf.where(until, steps[:, None], 0), axis=-1)
        pairs = alike & earlier & opens[:, None] & closes[:, :, None]
        pairs &= depth[:, None] == depth[:, :, None] + 1
        numbers = tf.reduce_max(tf.where(pairs, places, -1), axis=-1)
        return tf.where(is_full[:, None], -1, numbers)

    def marked_pairs(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> Iterator[tuple[str, str, bool]]:
        """Yield for each pair of lines source and target with marks, and whether spans agree."""
        for source_lines, target_lines in zip(slices(sources), slices(targets), strict=True):
            source = self.marked(tf.constant(source_lines, tf.string))
            target, agree = self.marked_as(tf.constant(target_lines, tf.string), source)
            texts = (map(bytes.decode, side.numpy().tolist()) for side in (source.text, target))
            yield from zip(*texts, agree.numpy().tolist(), strict=True)

    def _parts(self, text):
        """Cut texts (B,) at spans: ragged parts, which are spans, how many spans stand before."""
        parts = tf.strings.split(bordered(text, self._expression), BORDER)
        return parts, alternate(parts), parts.with_values(_numbers_in_rows(parts) // 2)


class CasedMarks(SpanMarks):
    """Replaces spans by marks, and writes the rest in the case of the training text."""

    def __init__(self, protected: ProtectedSpans):
        super().__init__(protected)
        self._cased = GraphCasing(protected.cased_words)

    @_as_one_operation
    def marked(self, text):
        marked = super().marked(text)
        return marked._replace(**self._cased(marked.text)._asdict())

    def marked_as(self, text, marked):
        written, agree = super().marked_as(text, marked)
        return tf.where(marked.is_capital, self._cased(written).text, written), agree

    def put_back(self, text, marked):
        upper = tf.strings.upper(text, UTF8)
        return super().put_back(tf.where(marked.is_capital, upper, text), marked)


def marks_of(protected: ProtectedSpans | None) -> SpanMarks | None:
    """Return what puts marks into requests; None if nothing is protected."""
    if protected is None:
        return None
    return CasedMarks(protected) if protected.truecase else SpanMarks(protected)


def given_terms(text: tf.Tensor) -> tf.RaggedTensor:
    """Return the translations after the terms of texts (B,), ragged strings (B, N)."""
    parts = tf.strings.split(bordered(text, TERM, b"\\2"), BORDER)
    return tf.ragged.boolean_mask(parts, alternate(parts))


def terms_within(terms: tf.RaggedTensor, written: tf.Tensor) -> tf.Tensor:
    """Count the terms of each text in each of its translations, (B, K): int32 (B, K)."""
    rows = tf.cast(terms.value_rowids(), tf.int32)

    def is_within(term_and_row):
        term, row = term_and_row
        parts = tf.strings.split(written[row], term)
        return tf.ensure_shape(parts.row_lengths() > 1, written.shape[1:])

    is_there = tf.map_fn(is_within, (terms.flat_values, rows), fn_output_signature=tf.bool)
    is_there = tf.reshape(tf.cast(is_there, tf.int32), [tf.size(rows), tf.shape(written)[1]])
    return tf.math.unsorted_segment_sum(is_there, rows, tf.shape(written)[0])


def _check(pattern):
    try:
        matches_nothing = bool(tf.strings.regex_full_match("", pattern))
    except tf.errors.InvalidArgumentError as error:
        reason = error.message.rpartition("error: ")[2].partition(" [Op:")[0]
        raise ValueError(
            f"`protect_pattern` must be a regular expression. Received: {pattern} ({reason}). "
            f"{SYNTAX}"
        ) from error
    if matches_nothing:
        raise ValueError(
            f"`protect_pattern` must not match an empty text. Received: {pattern}. {SYNTAX}"
        )


def bordered(text: tf.Tensor, expression: str, rewrite: bytes = b"\\0") -> tf.Tensor:
    """Replace what an expression matches in texts by a rewrite between two borders."""
    valid = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
    return tf.strings.regex_replace(valid, expression, BORDER + rewrite + BORDER)


def _numbers_in_rows(parts):
    """Return the number of each part within its row, from 0."""
    starts = tf.gather(parts.row_starts(), parts.value_rowids())
    return tf.range(tf.size(parts.flat_values)) - tf.cast(starts, tf.int32)


def alternate(parts: tf.RaggedTensor) -> tf.RaggedTensor:
    """Return whether each part between borders is a match: every second one is."""
    return parts.with_values(_numbers_in_rows(parts) % 2 == 1)


def _places_of_equals(own, reference):
    """Return for each span of `own`, ragged strings (B, M), its place among those of `reference`,
    (B, N): the k-th of several equals has that of the k-th there. Int32, flat; -1 if there is none.
    """
    sides = (reference, own)
    rows = [tf.strings.as_string(side.value_rowids()) for side in sides]
    keys = [row + BORDER + side.flat_values for row, side in zip(rows, sides, strict=True)]
    _, kinds = tf.unique(tf.concat(keys, axis=0), tf.int64)
    count = tf.size(keys[0])
    times = [tf.cast(_equals_before(part), tf.int64) for part in (kinds[:count], kinds[count:])]
    # Those of the reference come first and differ from each other, so each has its own number.
    _, numbers = tf.unique(kinds + 2**32 * tf.concat(times, axis=0))
    begins = tf.cast(tf.gather(reference.row_starts(), own.value_rowids()), tf.int32)
    return tf.where(numbers[count:] < count, numbers[count:] - begins, -1)


def _equals_before(numbers):
    """Count the equals before each of some numbers, int32 (N,)."""
    order = tf.argsort(numbers, stable=True)
    ordered = tf.gather(numbers, order)
    times = tf.range(tf.size(numbers)) - tf.searchsorted(ordered, ordered)
    return tf.scatter_nd(order[:, None], times, tf.shape(numbers))


class GraphCasing:
    """What `casing.TextCasing` does for one text, for strings (B,)."""

    def __init__(self, words: Sequence[str]):
        forms = np.array(["", *words])
        hashes = _hash(tf.strings.lower(forms, UTF8)).numpy()
        order = hashes.argsort()
        self._forms = forms[order]
        self._hashes = hashes[order]

    def __call__(self, text: tf.Tensor) -> Cased:
        lower = tf.strings.lower(text, UTF8)
        upper = tf.strings.upper(text, UTF8)
        parts = tf.strings.split(bordered(START + lower, WORD), BORDER)
        is_word = alternate(parts)
        lengths = tf.strings.length(parts.flat_values, "UTF8_CHAR")
        letters = tf.where(is_word.flat_values, lengths, 0)
        is_long = tf.reduce_sum(parts.with_values(letters), axis=1) >= LEAST_LETTERS
        form = self._form(parts.flat_values)
        opens = tf.strings.regex_full_match(parts.flat_values, OPENING)
        begins = tf.concat([[False], opens[:-1]], axis=0) & is_word.flat_values
        written = parts.with_values(tf.where(begins, _with_capital(form), form))
        cased = tf.strings.substr(tf.strings.reduce_join(written, axis=1), len(START), LONGEST)
        is_cased = ((text == lower) | (text == upper)) & (lower != upper) & is_long
        is_cased &= tf.strings.regex_full_match(text, f"[^{TAG}]*")
        return Cased(tf.where(is_cased, cased, text), is_cased & (text == upper))

    def _form(self, word):
        """Return the form of each word, or the word itself if it has none."""
        places = tf.searchsorted(self._hashes, _hash(word))
        form = tf.gather(self._forms, tf.minimum(places, len(self._forms) - 1))
        return tf.where(tf.strings.lower(form, UTF8) == word, form, word)


def _hash(text):
    return tf.strings.to_hash_bucket_fast(text, 2**62)


def _with_capital(text):
    first = tf.strings.regex_replace(text, r"^([\s\S])[\s\S]*$", r"\1")
    return tf.strings.upper(first, UTF8) + tf.strings.regex_replace(text, r"^[\s\S]", "")
