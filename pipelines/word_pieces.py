"""Text to ids and back by word pieces, as BERT's vocabularies are (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding", section 3; Wu et al.
2016, "Google's Neural Machine Translation System", section 4.1).

We read such a vocabulary and learn none: text does not survive the round trip.
"""

import functools
import hashlib
import json
import os
import pathlib
from collections.abc import Sequence

import numpy as np

from pipelines.marks import Marks
from pipelines.special_ids import PAD
from pipelines.whole_files import write_json

PADDING = "[PAD]"
UNKNOWN = "[UNK]"
FIRST = "[CLS]"
LAST = "[SEP]"
MASK = "[MASK]"
SPECIAL = (PADDING, UNKNOWN, FIRST, LAST, MASK)
# Further characters of a word that has begun.
SUFFIX = "##"
LONGEST_WORD = 100
ACCENTS = r"\p{Mn}"
# What BERT's own tokenizer leaves out; we part texts by the first of them.
BETWEEN = "\x00"
UNREADABLE = r"[^\P{C}\t\n\r]|\x{FFFD}"


class WordPieces:
    """A vocabulary of word pieces, with the interface of `vocabulary.Vocabulary`.

    Args:
        pieces: by id, the padding first.
        lower_case: whether text is put into lower case, without accents, before it is cut.

    Attributes:
        size: V, the number of pieces.
        fingerprint: 16 hexadecimal digits; equal for equal vocabularies.

    Raises:
        ValueError: if a special piece is missing, or the padding is not the first.
    """

    kind = "word_pieces"

    def __init__(self, pieces: Sequence[str], lower_case: bool = True):
        self.pieces = list(pieces)
        self.lower_case = lower_case
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
        text = json.dumps([lower_case, self.pieces])
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def source(self) -> "WordPieces":
        """Itself: a BERT has one vocabulary."""
        return self

    @property
    def target(self) -> "WordPieces":
        """Itself."""
        return self

    @classmethod
    def load(cls, path: str | os.PathLike) -> "WordPieces":
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if the file is damaged.
        """
        try:
            return cls(**json.loads(pathlib.Path(path).read_text(encoding="utf-8")))
        except (TypeError, json.JSONDecodeError) as error:
            raise ValueError(
                f"{path} is no vocabulary of word pieces ({error}). Import the model again."
            ) from error

    def save(self, path: str | os.PathLike) -> None:
        """Write the pieces, whole or not at all."""
        write_json(path, {"lower_case": self.lower_case, "pieces": self.pieces})

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
            max_bytes_per_word=LONGEST_WORD,
            token_out_type=tf.int32,
            unknown_token=UNKNOWN,
            support_detokenization=True,
            # Which would also write ß as ss, and ³ as 3.
            lower_case_nfd_strip_accents=False,
        )

    def tokenize(self, text):
        """Strings (B,) to a ragged tensor of ids (B, None), each row closed by [SEP]. A [MASK] in
        the text is one piece.
        """
        import tensorflow as tf

        text = tf.strings.regex_replace(text, UNREADABLE, "")
        parts = tf.strings.split(tf.strings.regex_replace(text, r"\[MASK\]", BETWEEN), BETWEEN)
        ids = self.tokenizer.tokenize(self._plain(parts.values))
        masks = tf.fill([ids.nrows(), 1], self.marks.mask)
        # A mask stands behind each part of a text, the last of which is none but the end.
        closed = parts.with_values(tf.concat([ids, masks], axis=1)).merge_dims(1, 2)
        ends = tf.fill([closed.nrows(), 1], self.marks.last)
        return tf.concat([closed[:, :-1], ends], axis=1)

    def _plain(self, text):
        """Strings in lower case without accents, if the vocabulary has no others."""
        import tensorflow as tf
        import tensorflow_text

        if not self.lower_case:
            return text
        letters = tensorflow_text.normalize_utf8(text, "NFD")
        return tf.strings.lower(tf.strings.regex_replace(letters, ACCENTS, ""), "utf-8")

    def detokenize(self, ids):
        """A ragged tensor of ids (B, None) to strings (B,), its words between spaces."""
        return self.tokenizer.detokenize(ids)
