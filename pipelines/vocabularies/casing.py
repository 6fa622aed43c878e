"""How the training text would write what is all in capitals or all in lower case: each word as it
stands most often within sentences, the first one of a sentence with a capital (Lita, Ittycheriah,
Roukos and Kambhatla 2003, "tRuEcasIng"). In graphs `span_marks` does the same.
"""

import collections
import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from unicodedata import category

# Without digits, punctuation and marks; Python's, RE2's and browsers' expressions agree in it.
WORD = "[^\\x00-@\\[-`{-¿\u2000-\u2bff\u3000-\u303f]+"
# What stands before the first word of a sentence.
OPENING = r"[\s\S]*[.!?] [^ ]*"
# So that the first word of a text is that of a sentence.
START = ". "
LEAST_LETTERS = 5
# A tag of a mixture is one piece, as it stands.
TAG = "<"
MOST_WORDS = 10_000


class Cased(NamedTuple):
    """A text as the training text would write it, and whether it was all in capitals."""

    text: str
    is_capital: bool


def cased_words(lines: Iterable[str]) -> tuple[str, ...]:
    """The words with capitals in most places where no sentence begins, the most frequent first."""
    forms = collections.defaultdict(collections.Counter)
    for line in lines:
        gaps, words = _parts(line)
        for gap, word in zip(gaps, words, strict=False):
            if not re.fullmatch(OPENING, gap):
                forms[word.lower()][word] += 1
    likeliest = {word: counts.most_common(1)[0] for word, counts in forms.items()}
    found = [one for word, one in likeliest.items() if one[0] != word]
    found.sort(key=lambda one: -one[1])
    return tuple(form for form, _ in found[:MOST_WORDS])


class TextCasing:
    """Writes texts without one of both cases as the training text would, whose words `cased_words`
    found; others as they are.
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
    """Accents and vowel signs: they belong to the letter before, and to Python are none."""
    return "".join(one for one in map(chr, range(0x300, 0x1F000)) if category(one)[0] == "M")


def settings(words: Sequence[str]) -> dict[str, Any]:
    """What the page in a browser reads of it."""
    said = {"word": WORD, "opening": OPENING, "start": START, "least": LEAST_LETTERS, "tag": TAG}
    return {**said, "words": words}


def _parts(text):
    """What stands around the words of a text, and these."""
    parts = re.split(f"({WORD})", START + text)
    return parts[::2], parts[1::2]
