"""Terms with the translations that they must get: these stand behind them in their source, for a
model that learned it (see `pipelines.corpora.terms`); else each becomes a protected span whose text
is the given translation (see `pipelines.vocabularies.span_marks`).
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from pipelines import line_files
from pipelines.vocabularies.protected_spans import OF_TERMS, ProtectedSpans, with_translation

MARKS = re.compile(f"[⟦⟧{''.join(OF_TERMS)}]")


class Glossary:
    """Marks the terms of texts that a model with protected spans is to translate.

    The longest term comes first, and a term is whole words. One that is given in lower case is
    found with a capital too, which its translation gets then. What is protected anyway stays as it
    is, such as a term in the name of a placeholder.

    Args:
        terms: translation by term; the same text for what is not translated.
        protected: what the model protects.

    Raises:
        ValueError: a term that is empty or has a mark such as ⟦ or ⟫; or a model without protected
            spans.
    """

    def __init__(self, terms: Mapping[str, str], protected: ProtectedSpans | None):
        if protected is None:
            raise ValueError(
                "a glossary needs a model that was trained with --protect or --glossary_rate. "
                "Received: one without protected spans."
            )
        for term, translation in terms.items():
            if not term.strip() or not translation.strip():
                raise ValueError(
                    f"a glossary's terms and translations must not be empty. Received: {term!r}: "
                    f"{translation!r}."
                )
            if mark := MARKS.search(term + translation):
                raise ValueError(f"a glossary has no mark {mark[0]}. Received: {term!r}.")
        self._terms = dict(terms)
        self._write = with_translation if protected.glossary_rate else _in_place
        found = sorted(terms, key=len, reverse=True)
        words = "|".join(map(_pattern, found)) or r"(?!)"
        self._expression = re.compile(f"(?P<term>{words})|(?:{protected.expression})")

    def applied(self, text: str) -> str:
        """A text whose terms are marked with their translations."""
        for match in reversed([*self._expression.finditer(text)]):
            if term := match["term"]:
                text = self._write(text, *match.span(), self._translation(term))
        return text

    def _translation(self, term):
        if term in self._terms:
            return self._terms[term]
        translation = self._terms[term[0].lower() + term[1:]]
        return translation[0].upper() + translation[1:]


def _in_place(text, begin, end, translation):
    return f"{text[:begin]}⟦{translation}⟧{text[end:]}"


def marking(path: str | None, description: Mapping[str, Any]) -> Callable[[str], str]:
    """What marks the terms of a file in a text for a model of a description; None: no terms."""
    if not path:
        return str
    return Glossary(read_terms(path), ProtectedSpans.in_description(description)).applied


def read_terms(path: str | os.PathLike) -> dict[str, str]:
    """The terms of a file: a term, a tab and its translation a line.

    Raises:
        ValueError: naming the line that has not two columns, or a term that came before.
    """
    terms: dict[str, str] = {}
    for number, line in enumerate(line_files.read_lines(path), start=1):
        term, tab, translation = line.partition("\t")
        if not tab or "\t" in translation:
            raise ValueError(
                f"{path}, line {number}: a glossary has a term, a tab and its translation in each "
                f"line. Received: {line!r}."
            )
        if terms.setdefault(term, translation) != translation:
            raise ValueError(
                f"{path}, line {number}: {term!r} has another translation before. Name one."
            )
    return terms


def _pattern(term):
    first = re.escape(term[0])
    capital = term[0].upper()
    if term[0].islower() and len(capital) == 1:
        first = f"[{first}{capital}]"
    before = r"\b" if re.match(r"\w", term) else ""
    behind = r"\b" if re.search(r"\w$", term) else ""
    return f"{before}{first}{re.escape(term[1:])}{behind}"
