"""Glossaries: terms and the translations that they must get. A model trained with --glossary_rate
reads each translation behind its term (`pipelines.corpora.terms`). For other models a term becomes
a protected span whose text is the translation (`pipelines.vocabularies.span_marks`).
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
# Where a term may begin and end: not between two letters of a word.
OF_WORD = rf"[\w{accents()}]"
APART = rf"(?![{accents()}])(?:(?<=[{UNSPACED}])|(?=[{UNSPACED}]))"
BEGIN = re.compile(rf"(?!\w)|(?<!{OF_WORD})|{APART}")
END = re.compile(rf"(?!{OF_WORD})|(?<!{OF_WORD})|{APART}")


class Glossary:
    """Marks the terms of texts for a model with protected spans. The longest term wins.

    A term matches whole words only, unless its language is written without
    spaces. A term in lower case also matches with a capital letter, which its translation then
    gets; in a text all in capitals, terms match in capitals and so are their translations. Terms
    inside protected spans, such as the name of a placeholder, stay. `terms` maps each term to its
    translation, or to itself to keep it; neither may be empty or hold a mark such as ⟦ or ⟫.
    `terms` take precedence over those of `base`, a glossary of the same model.
    """

    def __init__(self, terms: Mapping[str, str], protected: ProtectedSpans | None, base=None):
        if protected is None:
            raise ValueError(
                "a glossary needs a model that was trained with --protect or --glossary_rate. "
                "Received: one without protected spans. Leave it out."
            )
        for term, translation in terms.items():
            _refuse("a glossary", term, translation)
        forms = [(normalize(form, term), terms[term]) for form in ("NFD", "NFC") for term in terms]
        exact = dict(forms) | dict(terms)
        small = [term for term in exact if term[0].islower()]
        lower = {_capital(term): _capital(exact[term]) for term in small}
        upper = {term.upper(): translation.upper() for term, translation in exact.items()}
        self._in_sentences = (base._in_sentences if base else {}) | lower | exact
        self._in_capitals = (base._in_capitals if base else {}) | upper | exact
        self._lengths = sorted({*map(len, [*self._in_sentences, *self._in_capitals])}, reverse=True)
        self._write = with_translation if protected.glossary_rate else _in_place
        self._spans = protected.in_python
        self.protected = protected

    def applied(self, text: str) -> str:
        """Return a text with its terms marked with their translations."""
        words = self._spans.sub("", text)
        terms = self._in_capitals if words == words.upper() else self._in_sentences
        matches = []
        place = 0
        while place < len(text):
            if term := self._term_at(place, text, terms):
                matches.append((place, place + len(term), terms[term]))
                place += len(term)
            else:
                span = self._spans.match(text, place)
                place = max(place + 1, span.end() if span else 0)
        for begin, end, translation in reversed(matches):
            text = self._write(text, begin, end, translation)
        return text

    def _term_at(self, begin, text, terms):
        """Return the longest term that begins at an offset, or None."""
        for length in self._lengths if BEGIN.match(text, begin) else ():
            piece = text[begin : begin + length]
            if piece in terms and END.match(text, begin + len(piece)):
                return piece
        return None


def _in_place(text, begin, end, translation):
    return f"{text[:begin]}⟦{translation}⟧{text[end:]}"


def marking(path: str | None, description: Mapping[str, Any]) -> Callable[[str], str]:
    """Return a function that marks the terms of a glossary file, if any, in a text for a model."""
    if not path:
        return str
    return Glossary(read_terms(path), ProtectedSpans.in_description(description)).applied


def read_terms(path: str | os.PathLike) -> dict[str, str]:
    """Load a glossary: one term, a tab and its translation a line. Empty lines are skipped."""
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
                f"{path}, line {number}: {term!r} already has another translation. Keep one."
            )
    return terms


def _refuse(place, term, translation):
    entry = f"Received: {term!r}: {translation!r}."
    if not term.strip() or not translation.strip():
        raise ValueError(f"{place}: a term or its translation is empty. {entry} Leave it out.")
    if mark := MARKS.search(term + translation):
        raise ValueError(f"{place}: a term has the mark {mark[0]}. {entry} Remove it.")


def _capital(text):
    return text[0].upper() + text[1:]
