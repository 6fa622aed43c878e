"""Word pieces for translation (Schuster & Nakajima 2012, "Japanese and Korean Voice Search"; Wu et
al. 2016, "Google's Neural Machine Translation System", section 4.1), which the paper has for
English-French (Vaswani et al. 2017, section 5.1).

TensorFlow Text learns them. A text is cut from left to right into the longest pieces that there
are, as in the authors' program. SentencePiece cuts so in a model of characters that has the pieces
as symbols of a user: whatever reads a SentencePiece model reads this one, and any text survives.
"""

import bisect
import collections
import functools
import itertools
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

# How SentencePiece begins a word.
BEGIN = "\u2581"
# Characters of the longest piece.
LONGEST = 20
# The most frequent words, which pieces are learned from: the library holds all their parts.
MOST_WORDS = 200_000
# A threshold is so many times the one below it; what is then too much is left out.
STEP = 1.05


def learned(
    lines: Iterable[str], room: int, tags: Sequence[str], hard_vocab_limit: bool = True
) -> list[str]:
    """At most `room` word pieces of a text without its tags, the characters first, then the most
    frequent. None ends as a tag begins: it would hide the tag behind it.
    """
    counts = _counts(lines)
    starts = tuple({tag[:end] for tag in tags for end in range(1, len(tag))})
    pieces = [one for one in _pieces(counts, room) if not one[1:].endswith(starts)]
    if len({BEGIN}.union(*counts)) > room or (hard_vocab_limit and len(pieces) < room):
        raise RuntimeError(f"the text does not have {room} word pieces")
    return pieces[:room]


def _counts(lines):
    """How often each word comes, or its parts of letters, of digits and of other characters, the
    first with the space before the word. What is longer than a piece is counted in parts.
    """
    words = collections.Counter(itertools.chain.from_iterable(line.split(" ") for line in lines))
    del words[""]
    if not words:
        raise RuntimeError("the text has no words")
    counts = collections.Counter()
    for word, count in words.items():
        before = BEGIN
        for kind, some in itertools.groupby(word, _kind):
            part = before + "".join(some)
            before = ""
            if kind != "C":
                for start in range(0, len(part), LONGEST):
                    counts[part[start : start + LONGEST]] += count
    return counts


@functools.cache
def _kind(character):
    """L of what words are made of, N of digits, C of what has no piece, and others."""
    category = unicodedata.category(character)
    return "L" if category in ("Mn", "Mc", "Me", "Cf") else category[0]


def _pieces(counts: Mapping[str, int], room: int) -> list[str]:
    """All of the highest threshold that gives enough; all that there are where none does."""
    if not counts:
        return [BEGIN]
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as library

    @functools.cache
    def of(threshold):
        """The pieces that come so often where no longer one does."""
        return library.learn(
            counts,
            room,
            [],
            upper_thresh=threshold,
            lower_thresh=threshold,
            max_input_tokens=MOST_WORDS,
            max_token_length=LONGEST,
            max_unique_chars=room,
            include_joiner_token=False,
        )

    least = min(counts.values())
    most = max(counts.values())
    steps = int(np.log(most / least) / np.log(STEP)) + 2
    thresholds = np.unique(np.geomspace(least, most, steps).astype(int)).tolist()
    enough = bisect.bisect_right(thresholds, -room, key=lambda one: -len(of(one)))
    return [BEGIN, *(one for one in of(thresholds[max(enough - 1, 0)]) if one != BEGIN)]
