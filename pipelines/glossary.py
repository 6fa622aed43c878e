"""Terms with the translations that they must get: these stand behind them in their source, for a
model that learned it (see `pipelines.corpora.terms`); else each becomes a protected span whose text
is the given translation (see `pipelines.vocabularies.span_marks`).
"""

import functools
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


class Glossary:
    """Marks the terms of texts that a model with protected spans is to translate.

    The longest term comes first, and a term is whole words, if its language has spaces between
    them. One that is given in lower case is found with a capital too, which its translation gets
    then; in a text all in capitals each is found in capitals, as its translation is then. What is
    protected anyway stays as it is, such as a term in the name of a placeholder. `terms` are
    translations by term, the same text for what is not translated; none is empty or has a mark such
    as ⟦ or ⟫.
    """

    def __init__(self, terms: Mapping[str, str], protected: ProtectedSpans | None):
        if protected is None:
            raise ValueError(
                "a glossary needs a model that was trained with --protect or --glossary_rate. "
                "Received: one without protected spans. Leave it out."
            )
        for term, translation in terms.items():
            _refuse("a glossary", term, translation)
        forms = [(normalize(form, term), terms[term]) for form in ("NFD", "NFC") for term in terms]
        self._given = dict(forms) | dict(terms)
        self._write = with_translation if protected.glossary_rate else _in_place
        self._spans = protected.in_python.pattern

    def applied(self, text: str) -> str:
        """A text whose terms are marked with their translations."""
        words = re.sub(self._spans, "", text)
        terms, expression = self._in_capitals if words == words.upper() else self._in_sentences
        for match in reversed([*expression.finditer(text)]):
            if term := match["term"]:
                text = self._write(text, *match.span(), terms[term])
        return text

    @functools.cached_property
    def _in_sentences(self):
        lower = {term: one for term, one in self._given.items() if term[0].islower()}
        return self._found({_capital(term): _capital(one) for term, one in lower.items()})

    @functools.cached_property
    def _in_capitals(self):
        return self._found({term.upper(): one.upper() for term, one in self._given.items()})

    def _found(self, others):
        """Translation by term, of those that are given and others, and what finds the terms."""
        terms = others | self._given
        words = "|".join(map(re.escape, sorted(terms, key=len, reverse=True))) or r"(?!)"
        of_word = rf"[\w{accents()}]"
        # Where a term begins or ends with a letter, no other stands beside it.
        apart = rf"(?![{accents()}])(?:(?<=[{UNSPACED}])|(?=[{UNSPACED}]))"
        ends = rf"(?:(?!{of_word})|(?<!{of_word})|{apart})"
        whole = rf"(?:(?!\w)|(?<!{of_word})|{apart})(?:{words}){ends}"
        return terms, re.compile(f"(?P<term>{whole})|(?:{self._spans})")


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
