"""Text to ids and back by word pieces, as BERT's vocabularies are (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding", section 3; Wu et al.
2016, "Google's Neural Machine Translation System", section 4.1).

We read such vocabularies but learn none, because text does not survive the round trip.
"""

import functools
import hashlib
import json
import os
from collections.abc import Sequence

import numpy as np

from pipelines.json_files import MOST_BYTES_OF_LISTS, Schema, read_object, settings
from pipelines.special_ids import PAD, Marks
from pipelines.whole_files import write_json

PADDING = "[PAD]"
UNKNOWN = "[UNK]"
FIRST = "[CLS]"
LAST = "[SEP]"
MASK = "[MASK]"
SPECIAL = (PADDING, UNKNOWN, FIRST, LAST, MASK)
# Begins a piece that continues a word.
SUFFIX = "##"
# Most characters of a word. A longer one is unknown.
LONGEST_WORD = 100
# Most bytes of a piece, without `SUFFIX`.
LONGEST_PIECE = 256
# The most bytes that UTF-8 needs for a character.
CHARACTER_BYTES = 4
ACCENTS = r"\p{Mn}"
# BERT's own tokenizer drops these characters, so we can put the first between parts of texts.
BETWEEN = "\x00"
UNREADABLE = r"[^\P{C}\t\n\r]|\x{FFFD}"


class Saved(Schema):
    """What `WordPieces.save` writes."""

    pieces: list[str]
    lower_case: bool = True
    strip_accents: bool | None = None


def fault(pieces: Sequence[str]) -> tuple[int, str] | None:
    """Return the id of the first piece that TensorFlow's tokenizer refuses, and the reason."""
    first: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        size = len(piece.removeprefix(SUFFIX).encode("utf-8", "surrogatepass"))
        if size > LONGEST_PIECE:
            return number, f"must have at most {LONGEST_PIECE} bytes. Received: {size:,}"
        if "\0" in piece:
            return number, "must not have the character NUL"
        if first.setdefault(piece, number) != number:
            return number, f"must be no other's. Received: {piece!r}, as that of id {first[piece]}"
    return None


class WordPieces:
    """A vocabulary of word pieces by id, the padding first, with the interface of
    `vocabulary.Vocabulary`. With `lower_case`, text is put into lower case before it is cut; with
    `strip_accents`, by default as `lower_case`, accents are removed.
    """

    kind = "word_pieces"
    protected = None

    def __init__(
        self, pieces: Sequence[str], lower_case: bool = True, strip_accents: bool | None = None
    ):
        self.pieces = list(pieces)
        self.lower_case = lower_case
        self.strip_accents = lower_case if strip_accents is None else strip_accents
        self.size = len(self.pieces)
        if missing := [piece for piece in SPECIAL if piece not in self.pieces]:
            raise ValueError(
                f"a vocabulary of word pieces must have {', '.join(SPECIAL)}. Received: one "
                f"without {missing[0]}. Name the vocab.txt of a BERT."
            )
        if self.pieces[PAD] != PADDING:
            raise ValueError(
                f"the first of the word pieces must be {PADDING}. Received: {self.pieces[PAD]}. "
                "Name the vocab.txt of a BERT."
            )
        if problem := fault(self.pieces):
            raise ValueError(f"the word piece of id {problem[0]} {problem[1]}.")
        # Named only if it differs from lower_case, so that older fingerprints stay the same.
        accents = [] if self.strip_accents == lower_case else [self.strip_accents]
        text = json.dumps([lower_case, *accents, self.pieces])
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def source(self) -> "WordPieces":
        """The vocabulary itself: a BERT has only one."""
        return self

    target = source

    @classmethod
    def load(cls, path: str | os.PathLike) -> "WordPieces":
        """Load what `save` wrote."""
        remedy = "Import the model again."
        saved, _ = settings(Saved, read_object(path, remedy, MOST_BYTES_OF_LISTS), path, remedy)
        try:
            return cls(saved.pieces, saved.lower_case, saved.strip_accents)
        except ValueError as error:
            raise ValueError(f"{path}: {error} {remedy}") from error

    def save(self, path: str | os.PathLike) -> None:
        """Write the pieces, whole or not at all."""
        options = {"lower_case": self.lower_case, "strip_accents": self.strip_accents}
        write_json(path, {**options, "pieces": self.pieces})

    @functools.cached_property
    def marks(self) -> Marks:
        """The marks of a text."""
        first, last, mask = (self.pieces.index(piece) for piece in (FIRST, LAST, MASK))
        special = [self.pieces.index(piece) for piece in SPECIAL]
        return Marks(first, last, mask, MASK, np.setdiff1d(np.arange(self.size), special))

    @functools.cached_property
    def tokenizer(self):
        """The vocabulary as TensorFlow operations. A module whose graph uses it must track it."""
        import tensorflow as tf
        import tensorflow_text

        return tensorflow_text.FastBertTokenizer(
            self.pieces,
            suffix_indicator=SUFFIX,
            # A longer word surely has too many characters; `_without_long_words` counts them.
            max_bytes_per_word=CHARACTER_BYTES * LONGEST_WORD,
            token_out_type=tf.int32,
            unknown_token=UNKNOWN,
            support_detokenization=True,
            # That would also write ß as ss, and ³ as 3.
            lower_case_nfd_strip_accents=False,
        )

    def tokenize(self, text):
        """Turn strings (B,) into ragged ids (B, None) that end with [SEP]; [MASK] is one piece."""
        import tensorflow as tf

        text = tf.strings.regex_replace(text, UNREADABLE, "")
        parts = tf.strings.split(tf.strings.regex_replace(text, r"\[MASK\]", BETWEEN), BETWEEN)
        ids = self._without_long_words(self.tokenizer.tokenize(self._plain(parts.values)))
        masks = tf.fill([ids.nrows(), 1], self.marks.mask)
        # A mask follows each part of a text; after the last part, the end takes its place.
        closed = parts.with_values(tf.concat([ids, masks], axis=1)).merge_dims(1, 2)
        ends = tf.fill([closed.nrows(), 1], self.marks.last)
        return tf.concat([closed[:, :-1], ends], axis=1)

    def _plain(self, text):
        """Return strings in lower case and without accents, as the vocabulary says."""
        import tensorflow as tf
        import tensorflow_text

        if self.strip_accents:
            letters = tensorflow_text.normalize_utf8(text, "NFD")
            text = tf.strings.regex_replace(letters, ACCENTS, "")
        return tf.strings.lower(text, "utf-8") if self.lower_case else text

    @functools.cached_property
    def _characters(self):
        """How many characters each piece has, int8 (V,), negative if it continues a word."""
        lengths = [
            -len(piece.removeprefix(SUFFIX)) if piece.startswith(SUFFIX) else len(piece)
            for piece in self.pieces
        ]
        return np.clip(lengths, -LONGEST_WORD - 1, LONGEST_WORD + 1).astype(np.int8)

    def _without_long_words(self, ids):
        """Return ragged ids (B, None) with one [UNK] for each word of too many characters."""
        import tensorflow as tf

        pieces = ids.flat_values
        characters = tf.cast(tf.gather(self._characters, pieces), tf.int32)
        begins = characters >= 0
        # The number of each piece's word, from 1.
        word = tf.cumsum(tf.cast(begins, tf.int32))
        lengths = tf.math.segment_sum(tf.abs(characters), word)
        is_long = tf.gather(lengths, word) > LONGEST_WORD
        replaced = tf.where(is_long, self.pieces.index(UNKNOWN), pieces)
        stays = ids.with_flat_values(begins | ~is_long)
        return tf.ragged.boolean_mask(ids.with_flat_values(replaced), stays)

    def detokenize(self, ids):
        """Turn a ragged tensor of ids (B, None) into strings (B,), words joined by spaces."""
        return self.tokenizer.detokenize(ids)
