"""Glossaries: terms and the translations that they must get. A model trained with --glossary_rate
reads each translation behind its term (`pipelines.corpora.terms`). For other models a term becomes
a protected span whose text is the translation (`pipelines.vocabularies.span_marks`).
"""

import bisect
import functools
import itertools
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
OF_WORD = rf"(?:\w|{accents()})"
APART = rf"(?:(?<=[{UNSPACED}])|(?=[{UNSPACED}]))(?!{accents()})"
BEGIN = re.compile(rf"(?!\w)|(?<!{OF_WORD})|{APART}")
END = re.compile(rf"(?!{OF_WORD})|(?<!{OF_WORD})|{APART}")
# Stands in a text wherever a term may end, and the character after it.
PART = "\0"
AFTER = "\1"


class _Terms:
    """Finds the longest term at a place of a text by one binary search, however many begin alike.

    A text is parted: `PART` stands wherever a term may end. In the order of strings, all parted
    texts that begin with a term lie between two bounds, the term with `PART` and with `AFTER`. A
    longer term that begins so has its bounds between these. So one term is the longest from each
    bound to the next.
    """

    def __init__(self, translations: Mapping[str, str]):
        terms = {PART.join(END.split(term)[1:]): term for term in translations}
        self._bounds = sorted([*terms, *(parted.removesuffix(PART) + AFTER for parted in terms)])
        self._most = max(map(len, terms), default=0)
        # The longest term before the first bound and from each on, with its translation.
        begun = [("", "")]
        self._longest_from = [*begun]
        for bound in self._bounds:
            if term := terms.get(bound):
                begun.append((term, translations[term]))
            else:
                begun.pop()
            self._longest_from.append(begun[-1])

    def at(self, begin: int, parted: str) -> tuple[str, str]:
        """Return the longest term at an offset of a parted text, and its translation; or ""s."""
        rest = parted[begin : begin + self._most]
        return self._longest_from[bisect.bisect_right(self._bounds, rest)]


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
        self._exact = dict(forms) | dict(terms)
        self._base = base
        self._write = with_translation if protected.glossary_rate else _in_place
        self._spans = protected.in_python
        self.protected = protected

    @functools.cached_property
    def _in_sentences(self):
        small = [term for term in self._exact if term[0].islower()]
        lower = {_capital(term): _capital(self._exact[term]) for term in small}
        return [_Terms(lower | self._exact), *(self._base._in_sentences if self._base else [])]

    @functools.cached_property
    def _in_capitals(self):
        upper = {term.upper(): translation.upper() for term, translation in self._exact.items()}
        return [_Terms(upper | self._exact), *(self._base._in_capitals if self._base else [])]

    def applied(self, text: str) -> str:
        """Return a text with its terms marked with their translations."""
        words = self._spans.sub("", text)
        tables = self._in_capitals if words == words.upper() else self._in_sentences
        parts = END.split(text)
        parted = PART.join(parts)
        ends = [*itertools.accumulate(map(len, parts))]
        matches = []
        place = 0
        while place < len(text):
            term = ""
            if BEGIN.match(text, place):
                begin = place + bisect.bisect_right(ends, place)
                for terms in tables:
                    candidate = terms.at(begin, parted)
                    if len(candidate[0]) > len(term):
                        term, translation = candidate
            if term:
                matches.append((place, place + len(term), translation))
                place += len(term)
            else:
                span = self._spans.match(text, place)
                place = max(place + 1, span.end() if span else 0)
        for begin, end, translation in reversed(matches):
            text = self._write(text, begin, end, translation)
        return text


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
