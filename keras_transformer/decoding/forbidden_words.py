"""Words that a translation never has, however they are split into pieces: a rule on top of the
decoding of section 6.1 (Vaswani et al. 2017).

Shapes: S states; V pieces; b K rows, one for each hypothesis.
"""

import collections
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unicodedata import category

import numpy as np

MOST_CELLS = 2**24
# Memory of a state for each word that it has begun, in cells of the tables.
CELLS_OF_BEGUN = 16


class Byte(NamedTuple):
    """A byte of a text, and whether it is part of a word's character, such as a letter."""

    value: int
    is_of_word: bool


class State(NamedTuple):
    """State of the automaton after a text: the forbidden words whose beginning the text ends with,
    as pairs (number, bytes so far); and whether its last character is of a word.
    """

    begun: frozenset
    is_in_word: bool


NOTHING = State(frozenset(), False)
WORD = State(frozenset(), True)


class ForbiddenWords:
    """A rule that bars each piece with which a text would contain or end in a forbidden word.

    An automaton reads the bytes of the text. It matches whole words; a word in lower case is
    matched with a capital too. It cannot know what follows a piece: if "cat" is forbidden, "cattle"
    can be written as "catt" "le", but not as "cat" "tle".

    Args:
        words: words or phrases, none of only spaces.
        pieces: what each of the V pieces writes: a text, "" if it is a control piece, or a byte of
            a character that is spelled in bytes.

    Call arguments:
        past: the ids so far, int32 (b K, t).

    Returns:
        float32 (b K, V), -inf at pieces that are barred, else 0.
    """

    def __init__(self, words: Sequence[str], pieces: Sequence[str | bytes]):
        if empty := [word for word in words if not word.strip()]:
            raise ValueError(
                f"`forbidden` must be words or phrases, one a line. Received: {empty[0]!r} among "
                "them. Remove the empty line."
            )
        self.words = tuple(dict.fromkeys(" ".join(word.split()) for word in words))
        spellings = {text for word in self.words for text in (word, word[0].upper() + word[1:])}
        self._patterns = [list(_bytes(text)) for text in sorted(spellings)]
        self._starts = collections.defaultdict(list)
        for number, pattern in enumerate(self._patterns):
            self._starts[pattern[0].value].append((number, 0))
        self._pieces = [list(_bytes(piece)) for piece in pieces]
        self._writes = np.array([bool(piece) for piece in pieces], np.int32)
        # The piece before a word tells whether the word begins there.
        self._longest = max(map(len, self._patterns)) + 1
        self.following, self.is_barred = self._tables()

    def __call__(self, past):
        import tensorflow as tf

        rows, length = (tf.shape(past)[axis] for axis in (0, 1))
        following = tf.constant(self.following)

        def read(place, state):
            return place + 1, tf.gather_nd(following, tf.stack([state, past[:, place]], axis=1))

        # Pieces that write nothing may stand within a word, and do not count.
        count = tf.cumsum(tf.gather(self._writes, past), axis=1, reverse=True)
        place = tf.math.count_nonzero(tf.reduce_all(count > self._longest, axis=0), dtype=tf.int32)
        start = (place, tf.zeros([rows], tf.int32))
        _, state = tf.while_loop(lambda place, _: place < length, read, start)
        return tf.where(tf.gather(tf.constant(self.is_barred), state), -float("inf"), 0.0)

    def bars(self, past: np.ndarray) -> np.ndarray:
        """Return whether each piece is barred, booleans (b K, V), without TensorFlow."""
        state = np.zeros(len(past), np.int32)
        for ids in past.T:
            state = self.following[state, ids]
        return self.is_barred[state]

    def _tables(self):
        """Return the state after each state and piece, int32 (S, V), and whether each is barred."""
        pieces_of = collections.defaultdict(list)
        longer_pieces = collections.defaultdict(list)
        for number, piece in enumerate(self._pieces):
            text = bytes(byte.value for byte in piece)
            pieces_of[text].append(number)
            for end in range(1, len(text)):
                longer_pieces[text[:end]].append(number)
        texts = [bytes(byte.value for byte in pattern) for pattern in self._patterns]
        longest = max(map(len, self._pieces))
        numbers = {None: -1, NOTHING: 0, WORD: 1}
        waiting = [NOTHING, WORD]
        # Cached, because many pieces begin alike.
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
            # A state with words begun differs from NOTHING or WORD only at pieces that continue one
            # of these words, or that write nothing and leave the state as it is.
            is_new = len(rows) < 2
            row = np.zeros(len(self._pieces), np.int32) if is_new else rows[state.is_in_word].copy()
            rests = [texts[word][count : count + longest] for word, count in state.begun]
            starts = [rest[:end] for rest in rests for end in range(len(rest) + 1)]
            continuing = {piece for start in starts for piece in pieces_of.get(start, ())}
            continuing.update(*(longer_pieces.get(rest, ()) for rest in rests))
            for piece in range(len(self._pieces)) if is_new else continuing:
                after = self._after(state, self._pieces[piece], grown)
                if after not in numbers:
                    numbers[after] = len(waiting)
                    waiting.append(after)
                row[piece] = numbers[after]
            rows.append(row)
        following = np.stack(rows)
        return np.maximum(following, 0), following < 0

    def _after(self, state, piece, grown):
        """Return the state after a piece, or None if a forbidden word ends within or with it."""
        is_whole = False
        for byte in piece:
            has_ended = is_whole and not byte.is_of_word
            state, is_whole, is_barred = grown(state, byte)
            if has_ended or is_barred:
                return None
        return None if is_whole else state

    def _grown(self, state, byte):
        """Return the state after a byte; whether a forbidden word ends there if the next character
        is of no word; and whether one ends there anyway.
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
        # Characters beyond ASCII count as no letters here, so that no forbidden word escapes.
        yield from (Byte(value, value < 128 and chr(value).isalnum()) for value in text)
        return
    for character in text:
        is_of_word = character.isalnum() or character == "_" or category(character)[0] == "M"
        yield from (Byte(value, is_of_word) for value in character.encode())


def bias_of(size: int, never: Sequence[int]) -> np.ndarray:
    """Return a bias of -inf at these tokens; zeros of width 1 are enough if there are none."""
    if beyond := [number for number in never if number >= size]:
        raise ValueError(f"`barred` must be ids below {size}. Received: {beyond[0]} among them.")
    bias = np.zeros((1, size if never else 1), np.float32)
    bias[:, never] = -np.inf
    return bias
