"""Words that never come, in whichever pieces they are spelled: a rule on top of section 6.1's
decoding (Vaswani et al. 2017).

Shapes: S states; V pieces; b K rows, one a hypothesis.
"""

import collections
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unicodedata import category

import numpy as np

MOST_CELLS = 2**24
# What a state takes of memory for each word that it has begun.
CELLS_OF_BEGUN = 16


class Byte(NamedTuple):
    """A byte of a text, and whether it belongs to a letter or digit."""

    value: int
    is_of_word: bool


class State(NamedTuple):
    """What is known of a text: the forbidden words that it ends with a beginning of, each with how
    many of its bytes have come; and whether its last character is of a word.
    """

    begun: frozenset
    is_in_word: bool


NOTHING = State(frozenset(), False)
WORD = State(frozenset(), True)


class ForbiddenWords:
    """Bars each piece after which a text ends in a forbidden word, or holds one.

    An automaton reads the bytes of the text. A word is found as a whole word, and one that is given
    in lower case with a capital too. What follows a piece is not known: if "cat" is forbidden,
    "cattle" can come as "catt" "le", and not as "cat" "tle".

    Args:
        words: words or phrases, each with a character that is no space.
        pieces: what each of the V pieces writes: a text, or a byte of a character that is spelled
            in bytes; "" of a special one.

    Call arguments:
        came: the ids that have come, int32 (b K, t).

    Returns:
        float32 (b K, V), -inf at what is barred, else 0.
    """

    def __init__(self, words: Sequence[str], pieces: Sequence[str | bytes]):
        if empty := [word for word in words if not word.strip()]:
            raise ValueError(
                f"`forbidden` must be words or phrases, one a line. Received: {empty[0]!r} among "
                "them. Remove the empty line."
            )
        self.words = tuple(dict.fromkeys(" ".join(word.split()) for word in words))
        both = {spelled for word in self.words for spelled in (word, word[0].upper() + word[1:])}
        self._patterns = [list(_bytes(word)) for word in sorted(both)]
        self._starts = collections.defaultdict(list)
        for number, pattern in enumerate(self._patterns):
            self._starts[pattern[0].value].append((number, 0))
        # A piece has a byte at least; the one before the word says whether it begins there.
        self._longest = max(map(len, self._patterns)) + 1
        self._pieces = [list(_bytes(piece)) for piece in pieces]
        self.following, self.is_barred = self._tables()

    def __call__(self, came):
        import tensorflow as tf

        rows, length = (tf.shape(came)[axis] for axis in (0, 1))
        following = tf.constant(self.following)

        def read(place, state):
            return place + 1, tf.gather_nd(following, tf.stack([state, came[:, place]], axis=1))

        start = (tf.maximum(length - self._longest, 0), tf.zeros([rows], tf.int32))
        _, state = tf.while_loop(lambda place, _: place < length, read, start)
        return tf.where(tf.gather(tf.constant(self.is_barred), state), -float("inf"), 0.0)

    def bars(self, came: np.ndarray) -> np.ndarray:
        """The same without TensorFlow: whether each piece is barred, booleans (b K, V)."""
        state = np.zeros(len(came), np.int32)
        for ids in came[:, -self._longest :].T:
            state = self.following[state, ids]
        return self.is_barred[state]

    def _tables(self):
        """The state after each state and piece, int32 (S, V), and whether that piece is barred."""
        spelled = collections.defaultdict(list)
        begin_with = collections.defaultdict(list)
        for number, piece in enumerate(self._pieces):
            text = bytes(byte.value for byte in piece)
            spelled[text].append(number)
            for end in range(1, len(text)):
                begin_with[text[:end]].append(number)
        texts = [bytes(byte.value for byte in pattern) for pattern in self._patterns]
        longest = max(map(len, self._pieces))
        numbers = {None: -1, NOTHING: 0, WORD: 1}
        waiting = [NOTHING, WORD]
        # Many pieces begin alike.
        grown = functools.cache(self._grown)
        rows: list[np.ndarray] = []
        begun = 0
        for state in waiting:
            begun += len(state.begun)
            if max(len(waiting) * len(self._pieces), CELLS_OF_BEGUN * begun) > MOST_CELLS:
                raise ValueError(
                    f"`forbidden` has too many words for a vocabulary of {len(self._pieces):,} "
                    f"pieces, or too long a phrase: its tables may have {MOST_CELLS:,} cells. "
                    f"Received: {sum(map(len, self.words)):,} letters in {len(self.words):,} "
                    "words or phrases. Name fewer or shorter ones."
                )
            # Of a text that has begun a word only pieces that go on with all of it lead elsewhere.
            is_new = len(rows) < 2
            row = np.zeros(len(self._pieces), np.int32) if is_new else rows[state.is_in_word].copy()
            rests = [texts[word][count : count + longest] for word, count in state.begun]
            within = [rest[:end] for rest in rests for end in range(1, len(rest) + 1)]
            changed = {one for text in within for one in spelled.get(text, ())}
            changed.update(*(begin_with.get(rest, ()) for rest in rests))
            for number in range(len(self._pieces)) if is_new else changed:
                found = self._after(state, self._pieces[number], grown)
                if found not in numbers:
                    numbers[found] = len(waiting)
                    waiting.append(found)
                row[number] = numbers[found]
            rows.append(row)
        following = np.stack(rows)
        return np.maximum(following, 0), following < 0

    def _after(self, state, piece, grown):
        """The state after a piece; None if a word ends within it or with it."""
        is_whole = False
        for byte in piece:
            has_ended = is_whole and not byte.is_of_word
            state, is_whole, is_barred = grown(state, byte)
            if has_ended or is_barred:
                return None
        return None if is_whole else state

    def _grown(self, state, byte):
        """The state after a byte; whether a word ends there if what comes next is of no word, and
        whether one ends anyway.
        """
        begun = set()
        ends = set()
        for number, count in (*state.begun, *self._starts[byte.value]):
            pattern = self._patterns[number]
            is_inside = not count and state.is_in_word and pattern[0].is_of_word
            if is_inside or pattern[count].value != byte.value:
                continue
            if count + 1 < len(pattern):
                begun.add((number, count + 1))
            else:
                ends.add(pattern[-1].is_of_word)
        return State(frozenset(begun), byte.is_of_word), True in ends, False in ends


def _bytes(text: str | bytes) -> Iterator[Byte]:
    if isinstance(text, bytes):
        # Whether a character that is spelled in bytes is a letter is not known: as if it was none,
        # so that no word escapes.
        yield from (Byte(value, value < 128 and chr(value).isalnum()) for value in text)
        return
    for character in text:
        is_of_word = character.isalnum() or character == "_" or category(character)[0] == "M"
        yield from (Byte(value, is_of_word) for value in character.encode())
