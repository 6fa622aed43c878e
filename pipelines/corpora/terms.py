"""Terms of sentence pairs with their translations written behind them, so that a translator learns
to use the translations that it is given (Dinu, Mathur, Federico and Al-Onaizan 2019, "Training
Neural Machine Translation To Apply Terminology Constraints").

    Open the⟪ dashboard⟹ Übersichtsseite⟫.

They tell these words apart by factors, here three pieces of the vocabulary do. Which words
translate each other is counted: two words of a pair are linked if each is the other's best by
Dice's coefficient, 2 c(s, t) / (c(s) + c(t)), where c counts the pairs that have them (Melamed
2000, "Models of Translational Equivalence among Words"). A translation is written in the form that
comes most often, so that the model learns to inflect it.
"""

import collections
import itertools
import random
import re
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

from pipelines.corpora.parallel_text import ParallelText
from pipelines.random_numbers import drawn
from pipelines.vocabularies.casing import accents
from pipelines.vocabularies.protected_spans import with_translation
from pipelines.vocabularies.segmentation import OtherVersion, Variation, sequences_at
from pipelines.vocabularies.token_ids import TokenIds, as_tensor

MOST_WORDS = 3
MOST_TERMS = 3
# Letters of a term; of what two forms of a word share, and of the rest of each.
SHORTEST = 4
STEM = 4
ENDING = 3
# What two words lose of Dice's coefficient that stand at opposite ends of their sentences.
APART = 0.1
# As many pairs are counted, from all parts of the text.
MOST_PAIRS = 100_000
# Pairs of words whose counts are kept, 0.4 GB, and about how many are added at a time.
MOST_COUNTED = 2**25
AT_ONCE = 2**23
# The number of this draw; `augmentation` has others.
GIVEN = 6


class Terms:
    """Writes translations behind terms, by what is counted of all pairs. What is `never` a word,
    such as a tag, has none.
    """

    def __init__(self, text: ParallelText, never: Iterable[str] = ()):
        letters = rf"(?:[^\W\d_][{accents()}]*)+"
        word = rf"(?P<word>{letters}(?:['’]{letters})*)"
        self._expression = re.compile("|".join([*map(re.escape, never), word]))
        self._sources: dict[str, int] = {}
        self._targets: dict[str, int] = {}
        rows = np.linspace(0, len(text) - 1, min(len(text), MOST_PAIRS)).astype(int)
        pairs = [self._counted(text.sources[row], text.targets[row]) for row in rows]
        self._of_source, self._of_target = (
            np.bincount(np.concatenate(side)) for side in zip(*pairs, strict=True)
        )
        self._codes, self._counts = _together(pairs)
        self._by_stem = collections.defaultdict(list)
        for word in self._targets:
            self._by_stem[word[:STEM]].append(word)

    def written(self, source: str, target: str, draw: random.Random) -> str:
        """A source with the translations of one to three terms behind them, if it has any. A term
        is one to three words in a row that are linked to such words alone. The words beside it are
        linked too: what is not may belong to it, as a part of a compound does.
        """
        words = self._words(source)
        others = self._words(target)
        links = self._links(
            [self._sources.get(word[0].lower(), -1) for word in words],
            [self._targets.get(word[0], -1) for word in others],
        )
        spans = [
            (first, last)
            for first in range(len(words))
            for last in range(first, min(first + MOST_WORDS, len(words)))
        ]
        draw.shuffle(spans)
        most = draw.randint(1, MOST_TERMS)
        chosen = {}
        for first, last in spans:
            if len(chosen) == most:
                break
            if any(first <= end and last >= begin for begin, end in chosen):
                continue
            if translation := self._translation(words, others, links, first, last):
                chosen[first, last] = translation
        for (first, last), translation in sorted(chosen.items(), reverse=True):
            place = words[first].start(), words[last].end()
            source = with_translation(source, *place, translation)
        return source

    def _words(self, text):
        return [match for match in self._expression.finditer(text) if match["word"]]

    def _counted(self, source, target):
        """The different words of a pair, as numbers."""
        return tuple(
            np.unique([known.setdefault(word, len(known)) for word in words]).astype(int)
            for known, words in (
                (self._sources, [match[0].lower() for match in self._words(source)]),
                (self._targets, [match[0] for match in self._words(target)]),
            )
        )

    def _count(self, sources, targets):
        """How many pairs have words of both sides, (S, T)."""
        codes = _code(sources, targets)
        places = np.searchsorted(self._codes, codes)
        return np.where(self._codes[places] == codes, self._counts[places], 0)

    def _links(self, sources, targets):
        """The place of the other word by that of each word that is linked; numbers of words, -1 if
        nothing is known of one.
        """
        if not sources or not targets:
            return {}
        shared = self._count(np.array(sources), np.array(targets))
        dice = 2 * shared / (self._of_source[sources][:, None] + self._of_target[targets])
        places = [np.arange(len(side)) / len(side) for side in (sources, targets)]
        dice -= APART * np.abs(places[0][:, None] - places[1])
        best = dice.argmax(axis=1)
        is_best = dice.argmax(axis=0)[best] == np.arange(len(sources))
        known = shared[np.arange(len(sources)), best] > 0
        return {int(one): int(best[one]) for one in np.flatnonzero(is_best & known)}

    def _translation(self, words, others, links, first, last):
        """What is given for the words from `first` to `last`; None if they are no term."""
        linked = [links[word] for word in range(first, last + 1) if word in links]
        if not linked or max(linked) - min(linked) >= MOST_WORDS:
            return None
        inside = range(min(linked), max(linked) + 1)
        back = {other: word for word, other in links.items() if other in inside}
        if not first <= min(back.values()) <= max(back.values()) <= last:
            return None
        term = words[first : last + 1]
        given = [others[other] for other in inside]
        if not all(_are_beside(*two) for row in (term, given) for two in itertools.pairwise(row)):
            return None
        is_whole = len(linked) == len(term) or _is_apart(others, links.values(), inside)
        if not is_whole or not _is_apart(words, links, range(first, last + 1)):
            return None
        if term[-1].end() - term[0].start() < SHORTEST:
            return None
        forms = [
            self._form(words[back[other]][0].lower(), others[other][0])
            if other in back
            else others[other][0]
            for other in inside
        ]
        gaps = [one.string[one.end() : other.start()] for one, other in itertools.pairwise(given)]
        return "".join(itertools.chain.from_iterable(zip(forms, [*gaps, ""], strict=True)))

    def _form(self, source, target):
        """The form of a word that translates another most often."""
        forms = [form for form in self._by_stem[target[:STEM]] if _are_forms(form, target)]
        numbers = np.array([self._targets[form] for form in forms])
        [counts] = self._count(np.array([self._sources[source]]), numbers)
        return forms[counts.argmax()]


def _code(sources, targets):
    return sources[:, None] << 32 | targets


def _together(pairs):
    """The codes of words that come together, increasing, and how often they do; the last is none.
    Where they are too many, those that came together least are forgotten.
    """
    codes = np.array([np.iinfo(np.int64).max])
    counts = np.array([MOST_PAIRS + 1], np.int32)
    cells = np.cumsum([len(sources) * len(targets) for sources, targets in pairs])
    for _, some in itertools.groupby(zip(cells // AT_ONCE, pairs, strict=True), lambda one: one[0]):
        codes = np.concatenate([codes, *(_code(*pair).ravel() for _, pair in some)])
        counts = np.concatenate([counts, np.ones(len(codes) - len(counts), np.int32)])
        order = codes.argsort(kind="stable")
        codes = codes[order]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        codes = codes[first]
        counts = np.add.reduceat(counts[order], first, dtype=np.int32)
        while len(codes) > MOST_COUNTED:
            is_kept = counts > counts.min()
            codes = codes[is_kept]
            counts = counts[is_kept]
    return codes, counts


def _are_beside(one, other):
    """Whether nothing but a space or a hyphen is between two words."""
    return one.string[one.end() : other.start()] in (" ", "-")


def _is_apart(words, linked, inside):
    """Whether each word beside those inside is linked."""
    before = inside[0] - 1
    behind = inside[-1] + 1
    pairs = {before: (before, before + 1), behind: (behind - 1, behind)}
    return not any(
        0 <= place < len(words) and place not in linked and _are_beside(words[one], words[other])
        for place, (one, other) in pairs.items()
    )


def _are_forms(one, other):
    stem = max(STEM, len(one) - ENDING, len(other) - ENDING)
    return one[:stem] == other[:stem]


def with_terms(text: ParallelText, seed: int, never: Iterable[str] = ()) -> Iterator[str]:
    """The sources of pairs, each with one to three of its terms' translations behind them, if it
    has any.
    """
    terms = Terms(text, never)
    draw = random.Random(seed)
    for source, target in zip(text.sources, text.targets, strict=True):
        yield terms.written(source, target, draw)


class GivenTerms(OtherVersion):
    """Give a share of the sentences in their other version, with terms."""

    def __init__(
        self,
        rate: float,
        seed: int,
        sentences: TokenIds,
        longest: int,
        variation: Variation | None = None,
    ):
        super().__init__(seed, longest, variation)
        self._threshold = tf.constant(min(int(rate * 2**64), 2**64 - 1), tf.uint64)
        self._flat = as_tensor(sentences.flat)
        self._starts = as_tensor(sentences.starts)

    def alternatives(self, plain, rows, keys):
        is_given = drawn(keys, GIVEN) < self._threshold
        return sequences_at(self._flat, self._starts, rows), is_given
