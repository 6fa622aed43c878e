"""Text with spans of words cut out, which a model learns to restore (Raffel et al. 2020, "Exploring
the Limits of Transfer Learning with a Unified Text-to-Text Transformer", section 3.1.4).

    Thank you <x0> me to your party <x1> week.      ->      <x0> for inviting <x1> last <x2>

The files are those of the corpus `lines`.
"""

from typing import Any

import numpy as np

from pipelines.corpora.options import Seeded
from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.corpora.text_files import Lines
from pipelines.dropped import Dropped
from pipelines.random_numbers import GOLDEN, key, mix

# `tf.Tensor`: TensorFlow is imported only where it is needed.
Tensor = Any

# The name of the target language.
LANGUAGE = "spans"
# 15 % of the words are cut out, in spans of 3 on average (section 3.3.4).
SHARE = 0.15
SPAN = 3
MOST_SPANS = 31
# Words that are cut at a time, with those that pad shorter lines.
MOST_WORDS = 2**18
SENTINELS = tuple(f"<x{number}>" for number in range(MOST_SPANS + 1))


class Spans(Lines, Seeded, name="spans"):
    """Text with spans cut out.

    Lines of one word, or with a sentinel such as `<x0>`, are dropped and counted. The seed decides
    which spans are cut; training cuts others each time that a line comes (`spans_anew`). The
    corpus' tags are the sentinels.
    """

    @classmethod
    def languages(cls, source, target):
        return source, LANGUAGE

    def load(self):
        text = super().load()
        texts = (text.train, text.valid, text.test)
        dropped = Dropped(text.dropped, self.strict)
        splits = [
            _cut_all(split, (self.seed, number), prefix, dropped)
            for number, (split, prefix) in enumerate(zip(texts, self.prefixes, strict=True))
        ]
        languages = (self.source_language, LANGUAGE)
        return Corpus("spans", *languages, *splits, dropped=dropped, tags=SENTINELS)


def _cut_all(text, seed, prefix, dropped):
    if prefix is None:
        return text
    keep = []
    for index, line in enumerate(text.sources):
        words = line.split()
        keep.append(len(words) > 1 and not any(word in SENTINELS for word in words))
        if not keep[-1]:
            dropped.leave_out("without a span", text.place(index, prefix))
    usable = text.where(keep)
    if not len(usable):
        raise ValueError(
            f"the file {prefix} holds no line of two words or more, so there is no span to cut. "
            "Name another prefix."
        )
    sources = []
    targets = []
    lines = [" ".join(line.split()) for line in usable.sources]
    for begin, end in _parts(lines):
        keys = key(*seed, np.arange(begin, end))
        for side, texts in zip((sources, targets), cut(lines[begin:end], keys), strict=True):
            side.extend(text.decode() for text in texts.numpy())
    return ParallelText(sources, targets, usable.origins)


def _parts(lines):
    """Yield the begin and the end of lines that have at most `MOST_WORDS`, or of a longer one."""
    begin = longest = 0
    for number, line in enumerate(lines):
        words = line.count(" ") + 1
        longest = max(longest, words)
        if number > begin and (number - begin + 1) * longest > MOST_WORDS:
            yield begin, number
            begin = number
            longest = words
    yield begin, len(lines)


def cut(texts: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Cut spans out of texts (B,) of two or more words between spaces, at random by keys, uint64
    (B,). Return the texts with a sentinel for each span; and the spans, each after its sentinel,
    with one more sentinel at the end.
    """
    import tensorflow as tf

    def at_least_1(numbers):
        return tf.maximum(tf.cast(tf.round(numbers), tf.int64), 1)

    words = tf.strings.split(texts)
    lengths = words.row_lengths()
    missing = tf.minimum(at_least_1(SHARE * tf.cast(lengths, tf.float64)), lengths - 1)
    remaining = lengths - missing
    counts = at_least_1(tf.cast(missing, tf.float64) / SPAN)
    counts = tf.minimum(tf.minimum(counts, remaining), MOST_SPANS)
    # Words that stay and spans alternate. A text may begin or end with a span: so a word is added
    # at each end while the spans are placed. A word's part is 2 n before span n, and 2 n + 1 in it.
    most = words.bounding_shape(1)
    parts_of_remaining = 2 * _segments(remaining + 2, counts + 1, most + 2, keys)[:, 1:-1]
    parts_of_missing = 2 * _segments(missing, counts, most, mix(keys + GOLDEN)) + 1
    places = tf.range(most)
    in_order = tf.sort(
        tf.concat(
            [
                tf.where(places < remaining[:, None], parts_of_remaining, 2 * most),
                tf.where(places < missing[:, None], parts_of_missing, 2 * most),
            ],
            axis=1,
        )
    )
    parts = tf.RaggedTensor.from_tensor(in_order, lengths).flat_values
    before = tf.pad(in_order[:, :-1], [[0, 0], [1, 0]])
    begins = parts != tf.RaggedTensor.from_tensor(before, lengths).flat_values
    is_missing = parts % 2 == 1
    sentinels = tf.gather(SENTINELS, tf.minimum(parts // 2, MOST_SPANS))
    text = words.flat_values
    sources = tf.where(is_missing, tf.where(begins, sentinels, ""), text)
    targets = tf.where(begins, sentinels + " " + text, text)
    return (
        _joined(words.with_values(sources), words.with_values(sources != "")),
        _joined(words.with_values(targets), words.with_values(is_missing))
        + " "
        + tf.gather(SENTINELS, counts),
    )


def restored(source: str, target: str) -> str:
    """Put spans back into a source, from the target that `cut` or a model wrote."""
    spans = spans_of(target)
    return " ".join(
        piece
        for word in source.split()
        for piece in (spans.get(word, []) if word in SENTINELS else [word])
    )


def spans_of(target: str) -> dict[str, list[str]]:
    """Return the words of each span in a target, by its sentinel."""
    spans = {}
    name = None
    for word in target.split():
        if word in SENTINELS:
            name = word
            spans[name] = []
        elif name:
            spans[name].append(word)
    return spans


def _segments(lengths, counts, most, keys):
    """Cut the places 0 .. length - 1 of each row into `counts` non-empty segments, all ways equally
    likely. Return the number of the segment of each place, int64 (B, most).
    """
    import tensorflow as tf

    places = tf.range(most)
    draws = mix(keys[:, None] + GOLDEN * tf.cast(places + 1, tf.uint64))
    may_begin = (places > 0) & (places < lengths[:, None])
    # Segments begin at the places with the least random numbers.
    scores = tf.where(may_begin, tf.cast(draws // 2, tf.int64), tf.int64.max)
    ranks = tf.argsort(tf.argsort(scores, stable=True))
    return tf.cumsum(tf.cast(tf.cast(ranks, tf.int64) < counts[:, None] - 1, tf.int64), axis=1)


def _joined(words, keep):
    """Join the words of each row whose boolean in `keep` is true."""
    import tensorflow as tf

    return tf.strings.reduce_join(tf.ragged.boolean_mask(words, keep), axis=-1, separator=" ")
