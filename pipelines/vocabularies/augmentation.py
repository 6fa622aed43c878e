"""Text as people type it: wrong case, typing errors, missing or doubled punctuation. A translator
that also learns from such sentences translates them better (not part of Vaswani et al. 2017).

It uses TensorFlow operations alone. Random numbers follow from the seed and the place in the stream
by counting, as in `segmentation`. Shapes: B sentences; N characters of all sentences in a row.
"""

import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from pipelines.random_numbers import GOLDEN, mix, nth_draw
from pipelines.vocabularies.model_proto import whole_pieces
from pipelines.vocabularies.protected_spans import TRANSLATION
from pipelines.vocabularies.segmentation import OtherVersion, Segmentation
from pipelines.vocabularies.span_marks import BORDER, MARK, alternate, bordered
from pipelines.vocabularies.vocabulary import Vocabulary

KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = 6
PUNCTUATION = r"[.,;:!?]"
# One number for each purpose of a draw, so that no draw depends on another.
CASE, TYPO, SLIP, KEY, MARKS = range(1, 6)
SHARE = 7  # `terms` uses 6.


class Typed(NamedTuple):
    """The characters of sentences, each field (N,): strings, Unicode code points, the numbers of
    their sentences, random numbers (uint64); and whether each is a letter that may change (never in
    a mark or a tag), follows such a letter, or is punctuation that may change.
    """

    texts: tf.Tensor
    codes: tf.Tensor
    sentences: tf.Tensor
    draws: tf.Tensor
    is_letter: tf.Tensor
    goes_on: tf.Tensor
    is_point: tf.Tensor


class AugmentedText(OtherVersion):
    """Rewrites some sentences as people type them.

    - case: a sentence is written in upper case, in lower case, or with a capital for each word. In
      upper case its translation is too; otherwise the translation stays as it is.
    - typos: a letter that follows another is missed, doubled, swapped with the next one, or
      replaced by a neighbouring key.
    - punctuation: a punctuation mark after a letter is left out or doubled.

    Protected spans and tags are never changed.

    Args:
        vocabulary: of this side.
        rates: "case": share of sentences; "typos": share of letters; "punctuation": share of
            punctuation marks; 0 or missing: none. For translations pass "case" alone.
        seed, longest, segmentation: as in `OtherVersion`; translations need their sources' seed.
        is_source: whether this side is what people type, and not its translation.
        share: of the sentences that may change; the others stay as they are.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        rates: Mapping[str, float],
        seed: int,
        longest: int,
        is_source: bool = True,
        segmentation: Segmentation | None = None,
        share: float = 1.0,
    ):
        super().__init__(seed, longest, segmentation)
        self.rates = {**rates, "share": share}
        self.is_source = is_source
        self._vocabulary = vocabulary
        self._never = "|".join([MARK, TRANSLATION, *map(re.escape, whole_pieces(vocabulary.model))])

    def alternatives(self, plain, rows, keys):
        text = self._vocabulary.detokenize(plain)
        changed = self.changed(text, keys)
        is_new = tf.ensure_shape((changed != text) & self._is_drawn(SHARE, keys, "share"), [None])
        return self._vocabulary.tokenize(changed), is_new

    def changed(self, text: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        """Return texts as they are typed, strings (B,), by their random keys, uint64 (B,)."""
        parts = tf.strings.split(bordered(text, self._never), BORDER)
        characters = tf.strings.unicode_split(parts.flat_values, "UTF-8")
        typed = self._typed(parts, characters, keys)
        written = typed.texts
        if self.is_source:
            written = self._with_other_punctuation(typed, self._with_slips(typed))
        written = self._in_other_case(typed, written, keys)
        joined = tf.strings.reduce_join(characters.with_values(written), axis=-1)
        return tf.strings.reduce_join(parts.with_values(joined), axis=-1)

    def _typed(self, parts, characters, keys):
        part_of = characters.value_rowids()
        sentences = tf.gather(parts.value_rowids(), part_of)
        may_change = ~tf.gather(alternate(parts).flat_values, part_of)
        texts = characters.flat_values
        counts = tf.math.bincount(tf.cast(sentences, tf.int32), minlength=tf.size(keys))
        places = tf.ragged.range(tf.cast(counts, tf.int64)).flat_values
        is_letter = tf.strings.regex_full_match(texts, r"\p{L}") & may_change
        after_letter = tf.concat([[False], is_letter[:-1]], axis=0)[: tf.size(texts)]
        goes_on = after_letter & (places > 0)
        return Typed(
            texts,
            tf.strings.unicode_decode(parts.flat_values, "UTF-8").flat_values,
            sentences,
            mix(tf.gather(keys, sentences) + GOLDEN * tf.cast(places + 1, tf.uint64)),
            is_letter,
            goes_on,
            tf.strings.regex_full_match(texts, PUNCTUATION) & may_change & goes_on,
        )

    def _is_drawn(self, purpose, draws, name):
        threshold = min(int(self.rates.get(name, 0) * 2**64), 2**64 - 1)
        return nth_draw(draws, purpose) < tf.constant(threshold, tf.uint64)

    def _with_slips(self, typed):
        """Return the characters with typing errors; each becomes none, one or two."""
        may_slip = typed.is_letter & typed.goes_on
        slips = may_slip & self._is_drawn(TYPO, typed.draws, "typos")
        # The letter after a slip is typed correctly, because it may have been swapped.
        slips &= ~_shifted(slips, False)
        kind = tf.cast(nth_draw(typed.draws, SLIP) % 4, tf.int32)
        following = tf.concat([typed.texts[1:], [""]], axis=0)[: tf.size(typed.texts)]
        may_swap = tf.concat([may_slip[1:], [False]], axis=0)
        swaps = slips & (kind == 0) & may_swap[: tf.size(slips)]
        key = tf.cast(nth_draw(typed.draws, KEY) % NEIGHBOURS, tf.int32)
        keys = keys_beside()
        is_ascii = typed.codes < len(keys)
        indices = tf.stack([tf.where(is_ascii, typed.codes, 0), key], axis=1)
        beside = tf.where(is_ascii, tf.gather_nd(tf.constant(keys), indices), typed.texts)
        written = tf.where(slips & (kind == 1), typed.texts + typed.texts, typed.texts)
        written = tf.where(slips & (kind == 2), "", written)
        written = tf.where(slips & (kind == 3), beside, written)
        written = tf.where(swaps, following, written)
        return tf.where(_shifted(swaps, False), _shifted(typed.texts, ""), written)

    def _with_other_punctuation(self, typed, written):
        changes = typed.is_point & self._is_drawn(MARKS, typed.draws, "punctuation")
        is_missing = nth_draw(typed.draws, SLIP) % 2 == 0
        return tf.where(changes, tf.where(is_missing, "", typed.texts + typed.texts), written)

    def _in_other_case(self, typed, written, keys):
        changes = typed.is_letter & tf.gather(self._is_drawn(CASE, keys, "case"), typed.sentences)
        kind = tf.gather(nth_draw(keys, SLIP) % 3, typed.sentences)
        upper = tf.strings.upper(written, "utf-8")
        written = tf.where(changes & (kind == 0), upper, written)
        if not self.is_source:
            return written
        written = tf.where(changes & (kind == 1), tf.strings.lower(written, "utf-8"), written)
        return tf.where(changes & (kind == 2) & ~typed.goes_on, upper, written)


def _shifted(values, first):
    """Return the value before each, `first` before the first."""
    return tf.concat([[first], values], axis=0)[:-1]


@functools.cache
def keys_beside() -> np.ndarray:
    """Return for each ASCII character the keys beside its own, strings (128, NEIGHBOURS); for one
    that is no letter, the character itself.
    """
    neighbours = [[chr(code) if code else ""] * NEIGHBOURS for code in range(128)]
    places = {
        letter: (row, place + row / 2)
        for row, letters in enumerate(KEYBOARD)
        for place, letter in enumerate(letters)
    }
    for letter, (row, place) in places.items():
        near = [
            key
            for key, (its_row, its_place) in places.items()
            if key != letter and abs(its_row - row) <= 1 and abs(its_place - place) <= 1
        ]
        for case in (str.lower, str.upper):
            keys = [case(near[number % len(near)]) for number in range(NEIGHBOURS)]
            neighbours[ord(case(letter))] = keys
    return np.array(neighbours)
