"""Texts between marks, with a label each or a tag for each word: what an encoder-only model learns
from (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", sections 3, 4.1 and 5.3).

White space separates words. A word's first piece has its tag; its other pieces have none.
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

# The place of a word that has no piece, such as a zero-width space.
NOWHERE = -1
# The splits, and their names in errors.
SIDES = {"train": "training", "valid": "validation", "test": "test"}


def read(ids: tf.RaggedTensor, marks: Marks, longest: int) -> tf.Tensor:
    """Return a model's input from ragged ids (B, None), each text closed by the mark of the end:
    int32 (B, T), each text between its marks, cut to `longest` tokens, padded with PAD.
    """
    return opened(closed(ids, marks, longest - 1).to_tensor(default_value=PAD), marks)


def closed(ids: tf.RaggedTensor, marks: Marks, longest: int) -> tf.RaggedTensor:
    """Cut texts to `longest` tokens with the end, and drop spaces before masks: ragged int32."""
    ids = tf.cast(ids, tf.int32)
    # The last id of a text is its mark, so the id after a space is of the same text.
    following = tf.concat([ids.values[1:], [marks.last]], axis=0)
    needless = (ids.values == marks.space) & (following == marks.mask)
    return cut(tf.ragged.boolean_mask(ids, ids.with_values(~needless)), longest, marks.last)


def cut(ids: tf.RaggedTensor, longest: int, end: int) -> tf.RaggedTensor:
    """Cut texts (B, None) to `longest` numbers, the last of which becomes `end`."""
    ends = tf.fill([ids.nrows(), 1], end)
    return tf.concat([ids[:, :-1][:, : longest - 1], ends], axis=1)


def opened(ids: tf.Tensor, marks: Marks) -> tf.Tensor:
    """Put the mark of the beginning before padded texts (B, L): (B, T)."""
    return tf.pad(ids, [[0, 0], [1, 0]], constant_values=marks.first)


def tokenized(lines: Sequence[str], vocabulary: Vocabulary, max_length: int) -> TokenIds:
    """Return texts as ids, closed by the mark of the end, cut to `max_length` tokens with it."""
    parts = (vocabulary.tokenize(tf.constant(part)) for part in slices(lines))
    return packed((closed(part, vocabulary.marks, max_length) for part in parts), vocabulary.size)


def examples(texts: TokenIds, labels: np.ndarray, vocabulary: Vocabulary) -> Examples:
    """Return texts as `Examples` of classification.

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
    """Return the number of each label in `names`, int32 (examples,). `place` is for the error."""
    number_of = {label: number for number, label in enumerate(names)}
    if unseen := [label for label in dict.fromkeys(labels) if label not in number_of]:
        more = f" and {len(unseen) - 1} more" if unseen[1:] else ""
        raise ValueError(
            f"every label must be seen in training, where {len(number_of)} are. Received: "
            f"{place(labels.index(unseen[0]))} has {unseen[0]!r}{more}. Add such texts to the "
            "training side, or leave them out."
        )
    return np.array([number_of[label] for label in labels], np.int32)


class Words(NamedTuple):
    """Texts in pieces, word by word: the words, ragged strings (B, W); the ids, each text closed by
    the mark of the end, ragged int32 (B, T); and the place of each word's first piece among them,
    or `NOWHERE`, ragged int32 (B, W).
    """

    words: tf.RaggedTensor
    ids: tf.RaggedTensor
    places: tf.RaggedTensor


def in_words(text: tf.Tensor, vocabulary: Vocabulary | WordPieces) -> Words:
    """Cut texts, strings (B,), into words, and these into pieces, by TensorFlow operations."""
    words = tf.strings.split(text)
    # The tokenizer closes each word by the mark of the end, which is removed here.
    pieces = tf.cast(vocabulary.tokenize(words.values), tf.int32)[:, :-1]
    counts = tf.cast(pieces.row_lengths(), tf.int32)
    ids = words.with_values(pieces).merge_dims(1, 2)
    ends = tf.fill([ids.nrows(), 1], vocabulary.marks.last)
    begins = tf.cumsum(counts, exclusive=True)
    starts = tf.cast(tf.gather(ids.row_starts(), words.value_rowids()), tf.int32)
    places = words.with_values(tf.where(counts > 0, begins - starts, NOWHERE))
    return Words(words, tf.concat([ids, ends], axis=1), places)


def tagged_examples(
    lines: Sequence[str],
    tags: Sequence[str],
    names: Sequence[str],
    vocabulary: Vocabulary,
    max_length: int,
    place: Callable[[int], str],
) -> Examples:
    """Return texts with tagged words as `Examples` of tagging.

    A batch is `((tokens, segments), tags, weights)`: int32 (B, T) twice, int32 (B, T), and float32
    (B, T), 1.0 at the first piece of a word; segments are 0.

    Each text has a tag for each word, joined by spaces; all tags must be in `names`. A text is cut
    to `max_length` tokens, including the mark of the end. `place` says where the text of an index
    stands, for errors.
    """
    check_tags(lines, tags, names, place)
    ids = []
    numbers = []
    for some_lines, some_tags in zip(slices(lines), slices(tags), strict=True):
        words = in_words(tf.constant(some_lines), vocabulary)
        tags_of_words = " ".join(some_tags).split()
        tagged = _at_places(words, numbers_of(tags_of_words, names, place) + 1)
        ids.append(cut(words.ids, max_length, vocabulary.marks.last))
        numbers.append(cut(tagged, max_length, 0))
    columns = {"text": packed(ids, vocabulary.size), "tags": packed(numbers, len(names) + 1)}

    def to_batch(columns):
        tokens = opened(columns["text"], vocabulary.marks)
        shifted = tf.pad(columns["tags"], [[0, 0], [1, 0]])
        is_tagged = shifted != 0
        labels = tf.where(is_tagged, shifted - 1, 0)
        return (tokens, tf.zeros_like(tokens)), labels, tf.cast(is_tagged, tf.float32)

    return Examples(columns, {}, to_batch)


def check_tags(
    lines: Sequence[str], tags: Sequence[str], names: Sequence[str], place: Callable[[int], str]
) -> None:
    """Raise if a line has not one tag for each word, or has a tag that is not in `names`."""
    for index, (line, row) in enumerate(zip(lines, tags, strict=True)):
        if not _has_tag_per_word(line, row):
            raise ValueError(_mismatch(line, row, place(index)))
    texts = [index for index, row in enumerate(tags) for _ in row.split()]
    numbers_of(" ".join(tags).split(), names, lambda number: place(texts[number]))


def without_unequal(corpus, strict: bool = False):
    """Return a `Corpus` of texts, with their tags as targets, without the texts that do not have
    one tag for each word, which are counted. The first of them raises an error if `strict`, or if
    no text of a split is left.
    """
    dropped = Dropped(corpus.dropped, strict)
    splits = {}
    for split, side in SIDES.items():
        text = getattr(corpus, split)
        rows = [*zip(text.sources, text.targets, strict=True)]
        keep = [_has_tag_per_word(*row) for row in rows]
        for index in [index for index, is_kept in enumerate(keep) if not is_kept]:
            place = text.place(index, f"the {side} side")
            error = _mismatch(*rows[index], place)
            if not any(keep):
                raise ValueError(error)
            dropped.leave_out("with unequal words and tags", place, error)
        splits[split] = text if all(keep) else text.where(keep)
    return dataclasses.replace(corpus, **splits, dropped=dropped)


def _has_tag_per_word(line, row):
    # Bytes are split at the same white space as in `in_words`: not at no-break spaces.
    return len(line.encode().split()) == len(row.split())


def _mismatch(line, row, place):
    return (
        f"every word must have a tag. Received: {place} has {len(line.encode().split())} words, "
        f"{line!r}, and {len(row.split())} tags, {row!r}. Give a word that is in no span the tag O."
    )


def _at_places(words, numbers):
    """Return the number of each word at its first piece, and 0 elsewhere, ragged (B, T)."""
    begins = tf.cast(tf.gather(words.ids.row_starts(), words.places.value_rowids()), tf.int32)
    has_piece = words.places.values != NOWHERE
    places = tf.boolean_mask(begins + words.places.values, has_piece)
    tags = tf.boolean_mask(tf.constant(numbers), has_piece)
    return words.ids.with_values(tf.scatter_nd(places[:, None], tags, tf.shape(words.ids.values)))
