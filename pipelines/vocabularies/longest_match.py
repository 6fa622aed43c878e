"""Word pieces for translation (Schuster & Nakajima 2012, "Japanese and Korean Voice Search"; Wu et
al. 2016, "Google's Neural Machine Translation System", section 4.1), which the paper uses for
English-French (Vaswani et al. 2017, section 5.1).

TensorFlow Text learns them. As in the authors' program, a text is cut from left to right into the
longest pieces that match. SentencePiece cuts so too if the pieces are user-defined symbols of a
character model: whatever reads SentencePiece models reads this one, and any text survives.
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
# Most characters of a piece.
LONGEST = 20
# Pieces are learned from the most frequent words alone: the library holds all parts of them.
MOST_WORDS = 200_000
# Ratio of a threshold to the one below it. Pieces beyond the room are dropped.
STEP = 1.05


def learned(
    lines: Iterable[str], room: int, tags: Sequence[str], hard_vocab_limit: bool = True
) -> list[str]:
    """Return at most `room` word pieces of a text without its tags: the characters, then the most
    frequent pieces. No piece ends with the beginning of a tag, or it would hide the tag after it.
    """
    counts = _counts(lines)
    starts = tuple({tag[:end] for tag in tags for end in range(1, len(tag))})
    pieces = [piece for piece in _pieces(counts, room) if not piece[1:].endswith(starts)]
    if len({BEGIN}.union(*counts)) > room or (hard_vocab_limit and len(pieces) < room):
        raise RuntimeError(f"the text does not have {room} word pieces")
    return pieces[:room]


def _counts(lines):
    """Count the parts of words: runs of letters, of digits and of other characters, the first run
    with the space before the word. What is longer than a piece is counted in several parts.
    """
    words = collections.Counter(itertools.chain.from_iterable(line.split(" ") for line in lines))
    del words[""]
    if not words:
        raise RuntimeError("the text has no words")
    counts = collections.Counter()
    for word, count in words.items():
        before = BEGIN
        for kind, characters in itertools.groupby(word, _kind):
            part = before + "".join(characters)
            before = ""
            if kind != "C":
                for start in range(0, len(part), LONGEST):
                    counts[part[start : start + LONGEST]] += count
    return counts


@functools.cache
def _kind(character):
    """Return "L" for letters and accents, "N" for digits, "C" for what has no piece, or another."""
    category = unicodedata.category(character)
    return "L" if category in ("Mn", "Mc", "Me", "Cf") else category[0]


def _pieces(counts: Mapping[str, int], room: int) -> list[str]:
    """Return the pieces of the highest threshold that yields enough, or else all pieces."""
    if not counts:
        return [BEGIN]
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as library

    @functools.cache
    def learn(threshold):
        """Learn the pieces that occur so often outside of longer pieces."""
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
    enough = bisect.bisect_right(thresholds, -room, key=lambda threshold: -len(learn(threshold)))
    pieces = learn(thresholds[max(enough - 1, 0)])
    return [BEGIN, *(piece for piece in pieces if piece != BEGIN)]
