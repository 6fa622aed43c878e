"""Texts with a tag for each word: what a model that finds spans learns from (Devlin et al. 2019,
"BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", section 5.3).

Words stand between white space. A word's tag is that of its first piece; other pieces have none.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from pipelines.batches.examples import Examples
from pipelines.batches.labelled_texts import numbers_of
from pipelines.batches.marked_texts import opened
from pipelines.dropped import Dropped
from pipelines.vocabularies.token_ids import packed, slices
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.vocabularies.word_pieces import WordPieces

# The place of a word that has no piece, such as a space without width.
NOWHERE = -1


class Words(NamedTuple):
    """Texts in pieces, word by word. Shapes: B texts; W words of a text; T its tokens.

    Attributes:
        words: strings, ragged (B, W).
        ids: each text closed by the mark of the end, ragged int32 (B, T).
        places: the number of each word's first piece among them, or `NOWHERE`, ragged int32 (B, W).
    """

    words: tf.RaggedTensor
    ids: tf.RaggedTensor
    places: tf.RaggedTensor


def in_words(text: tf.Tensor, vocabulary: Vocabulary | WordPieces) -> Words:
    """Cut texts into words, and these into pieces, as operations of TensorFlow.

    Args:
        text: strings (B,).
        vocabulary: with `marks`.
    """
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


def examples(
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

    Args:
        lines: the texts.
        tags: of each text, a tag for each word, with spaces between them.
        known: all tags.
        vocabulary: with `marks`.
        max_length: tokens, the mark of the end among them. The end of a longer text is cut.
        place: where the text of an index stands, for errors: `ParallelText.place`.

    Raises:
        ValueError: naming a text that has not as many tags as words, or a tag that is not known.
    """
    check(lines, tags, known, place)
    longest = max_length - 1
    ids = []
    numbers = []
    for some_lines, some_tags in zip(slices(lines), slices(tags), strict=True):
        found = in_words(tf.constant(some_lines), vocabulary)
        given = " ".join(some_tags).split()
        tagged = _at_places(found, numbers_of(given, known, place) + 1)
        ends = tf.fill([tagged.nrows(), 1], vocabulary.marks.last)
        ids.append(tf.concat([found.ids[:, :-1][:, :longest], ends], axis=1))
        numbers.append(tf.concat([tagged[:, :-1][:, :longest], tf.zeros_like(ends)], axis=1))
    columns = {
        "text": packed(ids, vocabulary.size),
        "tags": packed(numbers, len(known) + 1),
    }

    def to_batch(columns):
        tokens = opened(columns["text"], vocabulary.marks)
        shifted = tf.pad(columns["tags"], [[0, 0], [1, 0]])
        is_tagged = shifted != 0
        wanted = tf.where(is_tagged, shifted - 1, 0)
        return (tokens, tf.zeros_like(tokens)), wanted, tf.cast(is_tagged, tf.float32)

    return Examples(columns, {}, to_batch)


def check(
    lines: Sequence[str], tags: Sequence[str], known: Sequence[str], place: Callable[[int], str]
) -> None:
    """Refuse tags that are not one a word, or not known.

    Args:
        lines, tags, known, place: as in `examples`.

    Raises:
        ValueError: naming the place.
    """
    for index, (line, row) in enumerate(zip(lines, tags, strict=True)):
        if not _is_one_a_word(line, row):
            raise ValueError(_unequal(line, row, place(index)))
    texts = [index for index, row in enumerate(tags) for _ in row.split()]
    numbers_of(" ".join(tags).split(), known, lambda number: place(texts[number]))


def without_unequal(corpus, strict: bool = False):
    """A corpus without the texts that have not a tag for each word, which are counted.

    Args:
        corpus: a `Corpus`: texts, and as targets their tags.
        strict: whether the first is refused.

    Raises:
        ValueError: naming the place, if there is no text of a split left, or `strict`.
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


def _at_places(found, numbers):
    """The number of each word at its first piece, and 0 elsewhere, ragged (B, T)."""
    begins = tf.cast(tf.gather(found.ids.row_starts(), found.places.value_rowids()), tf.int32)
    is_seen = found.places.values != NOWHERE
    places = tf.boolean_mask(begins + found.places.values, is_seen)
    given = tf.boolean_mask(tf.constant(numbers), is_seen)
    return found.ids.with_values(tf.scatter_nd(places[:, None], given, tf.shape(found.ids.values)))
