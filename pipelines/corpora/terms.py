"""Write translations behind terms of training sources, so that a translator learns to use the
translations of a glossary (Dinu, Mathur, Federico and Al-Onaizan 2019, "Training Neural Machine
Translation To Apply Terminology Constraints").

    Open the⟪ dashboard⟹ Übersichtsseite⟫.

The authors mark these words by factors; we use three pieces of the vocabulary. Two words of a pair
are linked if each is the other's best by Dice's coefficient, 2 c(s, t) / (c(s) + c(t)), where c
counts the pairs that have them (Melamed 2000, "Models of Translational Equivalence among Words"). A
translation is written in its most frequent form, so that the model learns to inflect it.
"""

import collections
import itertools
import operator
import random
import re
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

from pipelines.corpora.parallel_text import ParallelText
from pipelines.random_numbers import nth_draw
from pipelines.vocabularies.casing import accents
from pipelines.vocabularies.protected_spans import with_translation
from pipelines.vocabularies.segmentation import OtherVersion, Variation, sequences_at
from pipelines.vocabularies.token_ids import TokenIds, as_tensor

MOST_WORDS = 3
MOST_TERMS = 3
# Fewest letters of a term and of the common stem of two forms; most letters of their endings.
SHORTEST = 4
STEM = 4
ENDING = 3
# Subtracted from Dice's coefficient of two words at opposite ends of their sentences.
APART = 0.1
# At most this many pairs, spread over the whole text, are counted.
MOST_PAIRS = 100_000
# Most pairs of words with counts, 0.4 GB, and about how many are added at a time.
MOST_COUNTED = 2**25
AT_ONCE = 2**23
# The number of this random draw; `augmentation` has others.
TERMS = 6


class Terms:
    """Writes translations behind terms, by counts of a text's words. `never` are texts, such as
    tags, that are no words.
    """

    def __init__(self, text: ParallelText, never: Iterable[str] = ()):
        letters = rf"(?:[^\W\d_]{accents()}*)+"
        word = rf"(?P<word>{letters}(?:['’]{letters})*)"
        self._expression = re.compile("|".join([*map(re.escape, never), word]))
        self._sources: dict[str, int] = {}
        self._targets: dict[str, int] = {}
        rows = np.linspace(0, len(text) - 1, min(len(text), MOST_PAIRS)).astype(int)
        pairs = [self._numbers(text.sources[row], text.targets[row]) for row in rows]
        self._of_source, self._of_target = (
            np.bincount(np.concatenate(side)) for side in zip(*pairs, strict=True)
        )
        self._codes, self._counts = _cooccurrences(pairs)
        self._by_stem = collections.defaultdict(list)
        for word in self._targets:
            self._by_stem[word[:STEM]].append(word)

    def written(self, source: str, target: str, draw: random.Random) -> str:
        """Return a source with translations behind up to three of its terms. A term is one to three
        adjacent words that are linked only to one to three adjacent words. The words beside it must
        be linked too: one without a link may belong to the term, as a part of a compound does.
        """
        words = self._words(source)
        targets = self._words(target)
        links = self._links(
            [self._sources.get(word[0].lower(), -1) for word in words],
            [self._targets.get(word[0], -1) for word in targets],
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
            if translation := self._translation(words, targets, links, first, last):
                chosen[first, last] = translation
        for (first, last), translation in sorted(chosen.items(), reverse=True):
            place = words[first].start(), words[last].end()
            source = with_translation(source, *place, translation)
        return source

    def _words(self, text):
        return [match for match in self._expression.finditer(text) if match["word"]]

    def _numbers(self, source, target):
        """Return the numbers of the distinct words of each side of a pair; number new words."""
        return tuple(
            np.unique([numbers.setdefault(word, len(numbers)) for word in words]).astype(int)
            for numbers, words in (
                (self._sources, [match[0].lower() for match in self._words(source)]),
                (self._targets, [match[0] for match in self._words(target)]),
            )
        )

    def _count(self, sources, targets):
        """Return how many pairs have both words, (S, T), for numbers of S sources and T targets."""
        codes = _code(sources, targets)
        places = np.searchsorted(self._codes, codes)
        return np.where(self._codes[places] == codes, self._counts[places], 0)

    def _links(self, sources, targets):
        """Return the linked words of a pair: source place -> target place. Arguments are the
        numbers of its words, -1 for unknown words.
        """
        if not sources or not targets:
            return {}
        shared = self._count(np.array(sources), np.array(targets))
        dice = 2 * shared / (self._of_source[sources][:, None] + self._of_target[targets])
        places = [np.arange(len(side)) / len(side) for side in (sources, targets)]
        dice -= APART * np.abs(places[0][:, None] - places[1])
        best = dice.argmax(axis=1)
        is_best = dice.argmax(axis=0)[best] == np.arange(len(sources))
        come_together = shared[np.arange(len(sources)), best] > 0
        return {int(row): int(best[row]) for row in np.flatnonzero(is_best & come_together)}

    def _translation(self, words, targets, links, first, last):
        """Return the translation of the words from `first` to `last`; None if they are no term."""
        linked = [links[word] for word in range(first, last + 1) if word in links]
        if not linked or max(linked) - min(linked) >= MOST_WORDS:
            return None
        inside = range(min(linked), max(linked) + 1)
        back = {target: source for source, target in links.items() if target in inside}
        if not first <= min(back.values()) <= max(back.values()) <= last:
            return None
        term = words[first : last + 1]
        translation = [targets[place] for place in inside]
        rows = (itertools.pairwise(row) for row in (term, translation))
        if not all(_are_adjacent(*pair) for pair in itertools.chain(*rows)):
            return None
        is_whole = _has_linked_neighbours(targets, links.values(), inside)
        if not (is_whole or len(linked) == len(term)):
            return None
        if not _has_linked_neighbours(words, links, range(first, last + 1)):
            return None
        if term[-1].end() - term[0].start() < SHORTEST:
            return None
        forms = [match[0] for match in translation]
        for place, source in back.items():
            form = forms[place - inside[0]]
            forms[place - inside[0]] = self._form(words[source][0].lower(), form)
        gaps = [_between(*pair) for pair in itertools.pairwise(translation)]
        return "".join(itertools.chain.from_iterable(zip(forms, [*gaps, ""], strict=True)))

    def _form(self, source, target):
        """Return the form of a target word that translates a source word most often."""
        forms = [form for form in self._by_stem[target[:STEM]] if _are_forms(form, target)]
        numbers = np.array([self._targets[form] for form in forms])
        [counts] = self._count(np.array([self._sources[source]]), numbers)
        return forms[counts.argmax()]


def _code(sources, targets):
    return sources[:, None] << 32 | targets


def _cooccurrences(pairs):
    """Return the increasing codes of the pairs of words that occur together, and their counts; the
    last is a sentinel. If there are too many, the rarest are forgotten.
    """
    codes = np.array([np.iinfo(np.int64).max])
    counts = np.array([MOST_PAIRS + 1], np.int32)
    cells = np.cumsum([len(sources) * len(targets) for sources, targets in pairs])
    numbered = zip(cells // AT_ONCE, pairs, strict=True)
    for _, chunk in itertools.groupby(numbered, operator.itemgetter(0)):
        codes = np.concatenate([codes, *(_code(*pair).ravel() for _, pair in chunk)])
        counts = np.concatenate([counts, np.ones(len(codes) - len(counts), np.int32)])
        order = codes.argsort(kind="stable")
        codes = codes[order]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        codes = codes[first]
        counts = np.add.reduceat(counts[order], first, dtype=np.int32)
        while len(codes) > MOST_COUNTED:
            is_frequent = counts > counts.min()
            codes = codes[is_frequent]
            counts = counts[is_frequent]
    return codes, counts


def _between(left, right):
    return left.string[left.end() : right.start()]


def _are_adjacent(left, right):
    """Return whether there is only a space or a hyphen between two words."""
    return _between(left, right) in (" ", "-")


def _has_linked_neighbours(words, linked, inside):
    """Return whether the adjacent words before and behind those inside are linked."""
    before = inside[0] - 1
    behind = inside[-1] + 1
    pairs = {before: (before, before + 1), behind: (behind - 1, behind)}
    return not any(
        0 <= place < len(words) and place not in linked and _are_adjacent(words[left], words[right])
        for place, (left, right) in pairs.items()
    )


def _are_forms(left, right):
    """Return whether two words are forms of one: whether they differ in a short ending only."""
    stem = max(STEM, len(left) - ENDING, len(right) - ENDING)
    return left[:stem] == right[:stem]


def with_terms(text: ParallelText, seed: int, never: Iterable[str] = ()) -> Iterator[str]:
    """Yield the sources of pairs, with translations behind up to three terms of each."""
    terms = Terms(text, never)
    draw = random.Random(seed)
    for source, target in zip(text.sources, text.targets, strict=True):
        yield terms.written(source, target, draw)


class GivenTerms(OtherVersion):
    """Replaces a share of the sentences by their versions with terms."""

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
        is_given = nth_draw(keys, TERMS) < self._threshold
        return sequences_at(self._flat, self._starts, rows), is_given
