"""How the training text would write a text that is all in capitals or all in lower case: each word
in its most frequent form within sentences, the first word of a sentence with a capital (Lita,
Ittycheriah, Roukos and Kambhatla 2003, "tRuEcasIng"). In graphs `span_marks` does the same.
"""

import collections
import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from unicodedata import category

# Excludes digits, punctuation and marks. Python, RE2 and browsers match the same words.
WORD = "[^\\x00-@\\[-`{-¿\u2000-\u2bff\u3000-\u303f]+"
# What stands before the first word of a sentence.
OPENING = r"[\s\S]*[.!?] [^ ]*"
# Put before a text, so that its first word begins a sentence.
START = ". "
LEAST_LETTERS = 5
# Begins the tag of a mixture. A text with it stays as it is, because a tag is one piece.
TAG = "<"
MOST_WORDS = 10_000


class Cased(NamedTuple):
    """A text as the training text would write it, and whether it was all in capitals."""

    text: str
    is_capital: bool


def cased_words(lines: Iterable[str]) -> tuple[str, ...]:
    """Return words mostly written with capitals within sentences, the most frequent first."""
    forms = collections.defaultdict(collections.Counter)
    for line in lines:
        gaps, words = _parts(line)
        for gap, word in zip(gaps, words, strict=False):
            if not re.fullmatch(OPENING, gap):
                forms[word.lower()][word] += 1
    likeliest = {word: counts.most_common(1)[0] for word, counts in forms.items()}
    cased = [form for word, form in likeliest.items() if form[0] != word]
    cased.sort(key=lambda form: -form[1])
    return tuple(form for form, _ in cased[:MOST_WORDS])


class TextCasing:
    """Rewrites texts that are all in capitals or all in lower case as the training text would, by
    the `cased_words` of that text; other texts stay as they are.
    """

    def __init__(self, words: Sequence[str]):
        self._forms = {word.lower(): word for word in words}

    def __call__(self, text: str) -> Cased:
        lower = text.lower()
        upper = text.upper()
        if text not in (lower, upper) or lower == upper or TAG in text:
            return Cased(text, False)
        gaps, words = _parts(lower)
        if sum(map(len, words)) < LEAST_LETTERS:
            return Cased(text, False)
        written = gaps[0]
        for before, word, behind in zip(gaps, words, gaps[1:], strict=False):
            form = self._forms.get(word, word)
            begins = re.fullmatch(OPENING, before)
            written += (form[:1].upper() + form[1:] if begins else form) + behind
        return Cased(written.removeprefix(START), text == upper)


@functools.cache
def accents() -> str:
    """Return a pattern of accents and vowel signs: part of the letter before, but no letters for
    Python.
    """
    marks = [mark for mark in map(chr, range(0x300, 0x1F000)) if category(mark)[0] == "M"]
    low = "".join(mark for mark in marks if mark <= "\uffff")
    high = "".join(mark for mark in marks if mark > "\uffff")
    # A set compares any character with each that is beyond U+FFFF.
    return rf"(?:[{low}]|(?=[\U00010000-\U0001ffff])[{high}])"


def settings(words: Sequence[str]) -> dict[str, Any]:
    """Return what the browser page needs to do the same."""
    rules = {"word": WORD, "opening": OPENING, "start": START, "least": LEAST_LETTERS, "tag": TAG}
    return {**rules, "words": words}


def _parts(text):
    """Return the gaps around the words of a text, and the words."""
    parts = re.split(f"({WORD})", START + text)
    return parts[::2], parts[1::2]
