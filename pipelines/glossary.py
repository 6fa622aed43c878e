"""Terms with the translations that they must get: these stand behind them in their source, for a
model that learned it (see `pipelines.corpora.terms`); else each becomes a protected span whose text
is the given translation (see `pipelines.vocabularies.span_marks`).
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from unicodedata import normalize

from pipelines import line_files
from pipelines.vocabularies.casing import accents
from pipelines.vocabularies.protected_spans import OF_TERMS, ProtectedSpans, with_translation

# Letters that are written without spaces between words: Thai, Lao, Burmese, Khmer, hiragana, Han.
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u309f\u3400-\u9fff\U00020000-\U0003ffff"
MARKS = re.compile(f"[⟦⟧{''.join(OF_TERMS)}]")
# Where a term may begin and end: if it does so with a letter, no other stands beside it.
OF_WORD = rf"[\w{accents()}]"
APART = rf"(?![{accents()}])(?:(?<=[{UNSPACED}])|(?=[{UNSPACED}]))"
BEGIN = re.compile(rf"(?!\w)|(?<!{OF_WORD})|{APART}")
END = re.compile(rf"(?!{OF_WORD})|(?<!{OF_WORD})|{APART}")


class Glossary:
    """Marks the terms of texts that a model with protected spans is to translate.

    The longest term comes first, and a term is whole words, if its language has spaces between
    them. One that is given in lower case is found with a capital too, which its translation gets
    then; in a text all in capitals each is found in capitals, as its translation is then. What is
    protected anyway stays as it is, such as a term in the name of a placeholder. `terms` are
    translations by term, the same text for what is not translated; none is empty or has a mark such
    as ⟦ or ⟫. They come before those of `others`, a glossary of the same model.
    """

    def __init__(self, terms: Mapping[str, str], protected: ProtectedSpans | None, others=None):
        if protected is None:
            raise ValueError(
                "a glossary needs a model that was trained with --protect or --glossary_rate. "
                "Received: one without protected spans. Leave it out."
            )
        for term, translation in terms.items():
            _refuse("a glossary", term, translation)
        forms = [(normalize(form, term), terms[term]) for form in ("NFD", "NFC") for term in terms]
        given = dict(forms) | dict(terms)
        lower = {_capital(term): _capital(one) for term, one in given.items() if term[0].islower()}
        upper = {term.upper(): one.upper() for term, one in given.items()}
        self._in_sentences = (others._in_sentences if others else {}) | lower | given
        self._in_capitals = (others._in_capitals if others else {}) | upper | given
        self._lengths = sorted({*map(len, [*self._in_sentences, *self._in_capitals])}, reverse=True)
        self._write = with_translation if protected.glossary_rate else _in_place
        self._spans = protected.in_python
        self.protected = protected

    def applied(self, text: str) -> str:
        """A text whose terms are marked with their translations."""
        words = self._spans.sub("", text)
        terms = self._in_capitals if words == words.upper() else self._in_sentences
        found = []
        place = 0
        while place < len(text):
            if term := self._term_at(place, text, terms):
                found.append((place, place + len(term), terms[term]))
                place += len(term)
            else:
                span = self._spans.match(text, place)
                place = max(place + 1, span.end() if span else 0)
        for begin, end, translation in reversed(found):
            text = self._write(text, begin, end, translation)
        return text

    def _term_at(self, begin, text, terms):
        """The longest term that stands at a place; None if there is none."""
        for length in self._lengths if BEGIN.match(text, begin) else ():
            piece = text[begin : begin + length]
            if piece in terms and END.match(text, begin + len(piece)):
                return piece
        return None


def _in_place(text, begin, end, translation):
    return f"{text[:begin]}⟦{translation}⟧{text[end:]}"


def marking(path: str | None, description: Mapping[str, Any]) -> Callable[[str], str]:
    """What marks the terms of a file in a text for a model of a description; None: no terms."""
    if not path:
        return str
    return Glossary(read_terms(path), ProtectedSpans.in_description(description)).applied


def read_terms(path: str | os.PathLike) -> dict[str, str]:
    """The terms of a file: a term, a tab and its translation a line. Empty lines are left out."""
    terms: dict[str, str] = {}
    for number, line in enumerate(line_files.read_lines(path), start=1):
        if not line:
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 2:
            raise ValueError(
                f"{path}, line {number}: a glossary has a term, a tab and its translation in each "
                f"line. Received: {line!r}."
            )
        term, translation = cells
        _refuse(f"{path}, line {number}", term, translation)
        if terms.setdefault(term, translation) != translation:
            raise ValueError(
                f"{path}, line {number}: {term!r} has another translation before. Name one."
            )
    return terms


def _refuse(place, term, translation):
    what = f"Received: {term!r}: {translation!r}."
    if not term.strip() or not translation.strip():
        raise ValueError(f"{place}: a term or its translation is empty. {what} Leave the term out.")
    if mark := MARKS.search(term + translation):
        raise ValueError(f"{place}: a term has no mark {mark[0]}. {what} Leave the mark out.")


def _capital(text):
    return text[0].upper() + text[1:]
