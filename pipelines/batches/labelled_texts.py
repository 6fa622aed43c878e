"""Texts between marks, with a label each or a tag for each word: what an encoder-only model learns
from (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", sections 3, 4.1 and 5.3).

Words stand between white space. A word's tag is that of its first piece; other pieces have none.
Shapes: B texts; W words of a text; L tokens of the longest with the mark after it; T = L + 1.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from pipelines.batches.examples import Examples
from pipelines.dropped import Dropped
from pipelines.special_ids import PAD, Marks
from pipelines.vocabularies.token_ids import TokenIds, packed, slices
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.vocabularies.word_pieces import WordPieces

# The place of a word that has no piece, such as a space without width.
NOWHERE = -1


def read(ids: tf.RaggedTensor, marks: Marks, longest: int) -> tf.Tensor:
    """What a model reads of ragged ids (B, None), each text closed by the mark of the end: int32
    (B, T), each between its marks, at most `longest` tokens of it, padded with PAD.
    """
    return opened(closed(ids, marks, longest - 1).to_tensor(default_value=PAD), marks)


def closed(ids: tf.RaggedTensor, marks: Marks, longest: int) -> tf.RaggedTensor:
    """Texts of at most `longest` tokens, the end among them, closed up: ragged int32 (B, None)."""
    ids = tf.cast(ids, tf.int32)
    # The last id of a text is its mark, so where it matters the next id is of the same text.
    following = tf.concat([ids.values[1:], [marks.last]], axis=0)
    needless = (ids.values == marks.space) & (following == marks.mask)
    return cut(tf.ragged.boolean_mask(ids, ids.with_values(~needless)), longest, marks.last)


def cut(ids: tf.RaggedTensor, longest: int, end: int) -> tf.RaggedTensor:
    """Texts (B, None) of at most `longest` numbers, with this end in the place of the last."""
    ends = tf.fill([ids.nrows(), 1], end)
    return tf.concat([ids[:, :-1][:, : longest - 1], ends], axis=1)


def opened(ids: tf.Tensor, marks: Marks) -> tf.Tensor:
    """Padded texts (B, L) after the mark of the beginning, (B, T)."""
    return tf.pad(ids, [[0, 0], [1, 0]], constant_values=marks.first)


def tokenized(lines: Sequence[str], vocabulary: Vocabulary, max_length: int) -> TokenIds:
    """Texts as ids, each closed by the mark of the end, at most `max_length` tokens with it."""
    parts = (vocabulary.tokenize(tf.constant(part)) for part in slices(lines))
    return packed((closed(part, vocabulary.marks, max_length) for part in parts), vocabulary.size)


def examples(texts: TokenIds, labels: np.ndarray, vocabulary: Vocabulary) -> Examples:
    """Texts as `Examples` of classification.

    A batch is `((tokens, segments), labels, weights)`: int32 (B, T) twice, int32 (B,), and float32
    (B,), all 1.0; segments are 0.
    """

    def to_batch(columns):
        tokens = opened(columns["text"], vocabulary.marks)
        labels = tf.cast(columns["label"], tf.int32)
        return (tokens, tf.zeros_like(tokens)), labels, tf.ones(tf.shape(labels))

    return Examples({"text": texts}, {"label": np.asarray(labels, np.int32)}, to_batch)


def numbers_of(
    labels: Sequence[str], names: Sequence[str], place: Callable[[int], str]
) -> np.ndarray:
    """The numbers of labels among their names, int32 (examples,). `place` is for the error."""
    known = {label: number for number, label in enumerate(names)}
    if unseen := [label for label in dict.fromkeys(labels) if label not in known]:
        more = f" and {len(unseen) - 1} more" if unseen[1:] else ""
        raise ValueError(
            f"every label must be seen in training, where {len(known)} are. Received: "
            f"{place(labels.index(unseen[0]))} has {unseen[0]!r}{more}. Add such texts to the "
            "training side, or leave them out."
        )
    return np.array([known[label] for label in labels], np.int32)


class Words(NamedTuple):
    """Texts in pieces, word by word: the words, strings, ragged (B, W); the ids, each text closed
    by the mark of the end, ragged int32 (B, T); and the number of each word's first piece among
    them, or `NOWHERE`, ragged int32 (B, W).
    """

    words: tf.RaggedTensor
    ids: tf.RaggedTensor
    places: tf.RaggedTensor


def in_words(text: tf.Tensor, vocabulary: Vocabulary | WordPieces) -> Words:
    """Cut texts, strings (B,), into words, and these into pieces, as operations of TensorFlow."""
    words = tf.strings.split(text)
    # Each word is closed by the mark of the end, which is taken off again.
    pieces = tf.cast(vocabulary.tokenize(words.values), tf.int32)[:, :-1]
    counts = tf.cast(pieces.row_lengths(), tf.int32)
    ids = words.with_values(pieces).merge_dims(1, 2)
    ends = tf.fill([ids.nrows(), 1], vocabulary.marks.last)
    begins = tf.cumsum(counts, exclusive=True)
    texts = tf.cast(tf.gather(ids.row_starts(), words.value_rowids()), tf.int32)
    places = words.with_values(tf.where(counts > 0, begins - texts, NOWHERE))
    return Words(words, tf.concat([ids, ends], axis=1), places)


def tagged_examples(
    lines: Sequence[str],
    tags: Sequence[str],
    known: Sequence[str],
    vocabulary: Vocabulary,
    max_length: int,
    place: Callable[[int], str],
) -> Examples:
    """Texts with tagged words as `Examples` of tagging.

    A batch is `((tokens, segments), tags, weights)`: int32 (B, T) twice, int32 (B, T), and float32
    (B, T), 1.0 at the first piece of a word; segments are 0.

    Each text has a tag for each word, with spaces between them, of those that are known. The end of
    one of more than `max_length` tokens, the mark of the end among them, is cut. `place` says where
    the text of an index stands, for errors.
    """
    check_tags(lines, tags, known, place)
    ids = []
    numbers = []
    for some_lines, some_tags in zip(slices(lines), slices(tags), strict=True):
        words = in_words(tf.constant(some_lines), vocabulary)
        tags_of_words = " ".join(some_tags).split()
        tagged = _at_places(words, numbers_of(tags_of_words, known, place) + 1)
        ids.append(cut(words.ids, max_length, vocabulary.marks.last))
        numbers.append(cut(tagged, max_length, 0))
    columns = {"text": packed(ids, vocabulary.size), "tags": packed(numbers, len(known) + 1)}

    def to_batch(columns):
        tokens = opened(columns["text"], vocabulary.marks)
        shifted = tf.pad(columns["tags"], [[0, 0], [1, 0]])
        is_tagged = shifted != 0
        wanted = tf.where(is_tagged, shifted - 1, 0)
        return (tokens, tf.zeros_like(tokens)), wanted, tf.cast(is_tagged, tf.float32)

    return Examples(columns, {}, to_batch)


def check_tags(
    lines: Sequence[str], tags: Sequence[str], known: Sequence[str], place: Callable[[int], str]
) -> None:
    """Refuse tags that are not one a word, or not known, as `tagged_examples` takes them."""
    for index, (line, row) in enumerate(zip(lines, tags, strict=True)):
        if not _is_one_a_word(line, row):
            raise ValueError(_unequal(line, row, place(index)))
    texts = [index for index, row in enumerate(tags) for _ in row.split()]
    numbers_of(" ".join(tags).split(), known, lambda number: place(texts[number]))


def without_unequal(corpus, strict: bool = False):
    """A `Corpus`, of texts and as targets their tags, without the texts that have not a tag for
    each word, which are counted. If no text of a split is left, or if `strict`, the first is
    refused.
    """
    dropped = Dropped(corpus.dropped, strict)
    splits = {}
    for split, side in (("train", "training"), ("valid", "validation"), ("test", "test")):
        text = getattr(corpus, split)
        rows = [*zip(text.sources, text.targets, strict=True)]
        keep = [_is_one_a_word(*row) for row in rows]
        for index in [index for index, is_kept in enumerate(keep) if not is_kept]:
            place = text.place(index, f"the {side} side")
            error = _unequal(*rows[index], place)
            if not any(keep):
                raise ValueError(error)
            dropped.leave_out("with unequal words and tags", place, error)
        splits[split] = text if all(keep) else text.where(keep)
    return dataclasses.replace(corpus, **splits, dropped=dropped)


def _is_one_a_word(line, row):
    # Of bytes, so at the same white space as `in_words`: no-break spaces part no words.
    return len(line.encode().split()) == len(row.split())


def _unequal(line, row, place):
    return (
        f"every word must have a tag. Received: {place} has {len(line.encode().split())} words, "
        f"{line!r}, and {len(row.split())} tags, {row!r}. Give a word that is in no span the tag O."
    )


def _at_places(words, numbers):
    """The number of each word at its first piece, and 0 elsewhere, ragged (B, T)."""
    begins = tf.cast(tf.gather(words.ids.row_starts(), words.places.value_rowids()), tf.int32)
    is_seen = words.places.values != NOWHERE
    places = tf.boolean_mask(begins + words.places.values, is_seen)
    shown = tf.boolean_mask(tf.constant(numbers), is_seen)
    return words.ids.with_values(tf.scatter_nd(places[:, None], shown, tf.shape(words.ids.values)))
