"""Text with spans of words cut out, which a model learns to restore (Raffel et al. 2020, "Exploring
the Limits of Transfer Learning with a Unified Text-to-Text Transformer", section 3.1.4).

    Thank you <x0> me to your party <x1> week.      ->      <x0> for inviting <x1> last <x2>

The files are those of the corpus `lines`.
"""

import dataclasses
import random
from collections.abc import Sequence

from pipelines.corpora.options import Seeded
from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.corpora.text_files import Lines
from pipelines.dropped import Dropped

# What the restored text is called as a language.
LANGUAGE = "spans"
# 15 % of the words are cut out, in spans of 3 on average (section 3.3.4).
SHARE = 0.15
SPAN = 3
MOST_SPANS = 31
SENTINELS = tuple(f"<x{number}>" for number in range(MOST_SPANS + 1))


@dataclasses.dataclass(frozen=True)
class Spans(Lines, Seeded, name="spans"):
    """Text with spans cut out.

    A line of one word, or that holds a sentinel such as `<x0>`, is dropped and counted. The same
    seed cuts the same spans, in every epoch. The corpus' tags are the sentinels.
    """

    @classmethod
    def languages(cls, source, target):
        return source, LANGUAGE

    def load(self):
        text = super().load()
        texts = (text.train, text.valid, text.test)
        draw = random.Random(self.seed)
        dropped = Dropped(text.dropped, self.strict)
        splits = [
            _cut_all(split, draw, prefix, dropped)
            for split, prefix in zip(texts, self.prefixes, strict=True)
        ]
        return Corpus(
            "spans", self.source_language, LANGUAGE, *splits, dropped=dropped, tags=SENTINELS
        )


def _cut_all(text, draw, prefix, dropped):
    if prefix is None:
        return text
    keep = []
    for index, line in enumerate(text.sources):
        words = line.split()
        keep.append(len(words) > 1 and not any(word in SENTINELS for word in words))
        if not keep[-1]:
            dropped.leave_out("without a span", text.place(index, prefix))
    kept = text.where(keep)
    if not len(kept):
        raise ValueError(
            f"the file {prefix} holds no line of two words or more, of which a span could be cut "
            "out. Name another prefix."
        )
    sources, targets = zip(*(cut(line.split(), draw) for line in kept.sources), strict=True)
    return ParallelText([*sources], [*targets], kept.origins)


def cut(words: Sequence[str], draw: random.Random) -> tuple[str, str]:
    """Cut spans out of two words or more: the text with a sentinel for each span; and the spans,
    each after its sentinel, with one sentinel more at the end.
    """
    cut_out = min(max(1, round(SHARE * len(words))), len(words) - 1)
    count = min(max(1, round(cut_out / SPAN)), len(words) - cut_out, MOST_SPANS)
    # A text may begin and end with a span; between two spans a word stands.
    kept = _segments(len(words) - cut_out + 2, count + 1, draw)
    kept[0] -= 1
    kept[-1] -= 1
    missing = _segments(cut_out, count, draw)
    source = []
    target = []
    place = 0
    for number in range(count):
        source += [*words[place : place + kept[number]], SENTINELS[number]]
        place += kept[number]
        target += [SENTINELS[number], *words[place : place + missing[number]]]
        place += missing[number]
    source += words[place:]
    return " ".join(source), " ".join([*target, SENTINELS[count]])


def restored(source: str, target: str) -> str:
    """Put spans back into a text: what `cut` took apart, or what a model wrote. A sentinel whose
    span is missing is left out.
    """
    spans = spans_of(target)
    return " ".join(
        piece
        for word in source.split()
        for piece in (spans.get(word, []) if word in SENTINELS else [word])
    )


def spans_of(target: str) -> dict[str, list[str]]:
    """The words of each span that a target lists, by its sentinel."""
    spans = {}
    name = None
    for word in target.split():
        if word in SENTINELS:
            name = word
            spans[name] = []
        elif name:
            spans[name].append(word)
    return spans


def _segments(length, count, draw):
    """`count` lengths of at least 1 that add up to `length`, all ways equally likely."""
    ends = sorted(draw.sample(range(1, length), count - 1))
    return [end - start for start, end in zip([0, *ends], [*ends, length], strict=True)]
