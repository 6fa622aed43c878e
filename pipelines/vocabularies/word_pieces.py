"""Text to ids and back by word pieces, as BERT's vocabularies are (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding", section 3; Wu et al.
2016, "Google's Neural Machine Translation System", section 4.1).

We read such a vocabulary and learn none: text does not survive the round trip.
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
# Further characters of a word that has begun.
SUFFIX = "##"
# Of a word, in characters. A longer one is unknown.
LONGEST_WORD = 100
# Of a piece, in bytes without the suffix's mark.
LONGEST_PIECE = 256
# The most bytes that UTF-8 needs for a character.
CHARACTER_BYTES = 4
ACCENTS = r"\p{Mn}"
# What BERT's own tokenizer leaves out; we part texts by the first of them.
BETWEEN = "\x00"
UNREADABLE = r"[^\P{C}\t\n\r]|\x{FFFD}"


class Saved(Schema):
    """What `WordPieces.save` writes."""

    pieces: list[str]
    lower_case: bool = True
    strip_accents: bool | None = None


def fault(pieces: Sequence[str]) -> tuple[int, str] | None:
    """The first piece that TensorFlow's tokenizer cannot look up: its id, and what is wrong."""
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
    `vocabulary.Vocabulary`. Text is put into lower case before it is cut, if asked for, and accents
    are removed, by default as `lower_case`.
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
        if found := fault(self.pieces):
            raise ValueError(f"the word piece of id {found[0]} {found[1]}.")
        # Most vocabularies strip accents if they put text into lower case, as all once did.
        told = [] if self.strip_accents == lower_case else [self.strip_accents]
        text = json.dumps([lower_case, *told, self.pieces])
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def source(self) -> "WordPieces":
        """Itself: a BERT has one vocabulary."""
        return self

    target = source

    @classmethod
    def load(cls, path: str | os.PathLike) -> "WordPieces":
        """Read what `save` wrote."""
        remedy = "Import the model again."
        found, _ = settings(Saved, read_object(path, remedy, MOST_BYTES_OF_LISTS), path, remedy)
        try:
            return cls(found.pieces, found.lower_case, found.strip_accents)
        except ValueError as error:
            raise ValueError(f"{path}: {error} {remedy}") from error

    def save(self, path: str | os.PathLike) -> None:
        """Write the pieces, whole or not at all."""
        settings = {"lower_case": self.lower_case, "strip_accents": self.strip_accents}
        write_json(path, {**settings, "pieces": self.pieces})

    @functools.cached_property
    def marks(self) -> Marks:
        """The marks of a text."""
        first, last, mask = (self.pieces.index(piece) for piece in (FIRST, LAST, MASK))
        special = [self.pieces.index(piece) for piece in SPECIAL]
        return Marks(first, last, mask, MASK, np.setdiff1d(np.arange(self.size), special))

    @functools.cached_property
    def tokenizer(self):
        """The same as operations of TensorFlow. A module whose graph uses it must track it."""
        import tensorflow as tf
        import tensorflow_text

        return tensorflow_text.FastBertTokenizer(
            self.pieces,
            suffix_indicator=SUFFIX,
            # A longer word has too many characters for sure; `_without_long_words` counts them.
            max_bytes_per_word=CHARACTER_BYTES * LONGEST_WORD,
            token_out_type=tf.int32,
            unknown_token=UNKNOWN,
            support_detokenization=True,
            # Which would also write ß as ss, and ³ as 3.
            lower_case_nfd_strip_accents=False,
        )

    def tokenize(self, text):
        """Strings (B,) to ragged ids (B, None), each row closed by [SEP]; [MASK] is one piece."""
        import tensorflow as tf

        text = tf.strings.regex_replace(text, UNREADABLE, "")
        parts = tf.strings.split(tf.strings.regex_replace(text, r"\[MASK\]", BETWEEN), BETWEEN)
        ids = self._without_long_words(self.tokenizer.tokenize(self._plain(parts.values)))
        masks = tf.fill([ids.nrows(), 1], self.marks.mask)
        # A mask comes after each part of a text, the last of which is none but the end.
        closed = parts.with_values(tf.concat([ids, masks], axis=1)).merge_dims(1, 2)
        ends = tf.fill([closed.nrows(), 1], self.marks.last)
        return tf.concat([closed[:, :-1], ends], axis=1)

    def _plain(self, text):
        """Strings in lower case and without accents, where the vocabulary asks for it."""
        import tensorflow as tf
        import tensorflow_text

        if self.strip_accents:
            letters = tensorflow_text.normalize_utf8(text, "NFD")
            text = tf.strings.regex_replace(letters, ACCENTS, "")
        return tf.strings.lower(text, "utf-8") if self.lower_case else text

    @functools.cached_property
    def _characters(self):
        """The characters of each piece, int8 (V,), negative where it continues a word."""
        lengths = [
            -len(piece.removeprefix(SUFFIX)) if piece.startswith(SUFFIX) else len(piece)
            for piece in self.pieces
        ]
        return np.clip(lengths, -LONGEST_WORD - 1, LONGEST_WORD + 1).astype(np.int8)

    def _without_long_words(self, ids):
        """Ragged ids (B, None) with one [UNK] for each word that has too many characters."""
        import tensorflow as tf

        pieces = ids.flat_values
        characters = tf.cast(tf.gather(self._characters, pieces), tf.int32)
        begins = characters >= 0
        # The number of the word that each piece is of, from 1.
        word = tf.cumsum(tf.cast(begins, tf.int32))
        lengths = tf.math.segment_sum(tf.abs(characters), word)
        is_long = tf.gather(lengths, word) > LONGEST_WORD
        known = tf.where(is_long, self.pieces.index(UNKNOWN), pieces)
        kept = ids.with_flat_values(begins | ~is_long)
        return tf.ragged.boolean_mask(ids.with_flat_values(known), kept)

    def detokenize(self, ids):
        """A ragged tensor of ids (B, None) to strings (B,), its words between spaces."""
        return self.tokenizer.detokenize(ids)
