"""Which spans of a sentence must not be translated: placeholders, tags, links, numbers. Each
becomes a mark, one piece of the vocabulary with its number within the sentence, and is put back
verbatim: in a graph by `span_marks`, without TensorFlow by `TextMarks`.
"""

import collections
import dataclasses
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.json_files import read_object
from pipelines.options import FIXED, Options, option
from pipelines.vocabularies.casing import Cased, TextCasing, cased_words
from pipelines.whole_files import write_json

FILE = "protected_spans.json"
MOST = 32
MARKS = tuple(f"⟦{number + 1}⟧" for number in range(MOST))
MARK = "⟦([1-9]|[12][0-9]|3[0-2])⟧"
# Before a term, between it and the translation that is given for it, and behind.
OF_TERMS = ("⟪", "⟹", "⟫")
GIVEN = "⟹[^⟫]*⟫"
# A term with its translation; the space before it is behind its mark, see `with_translation`.
TERM = "⟪( ?)[^⟪⟹]*⟹ ([^⟫]+)⟫"
AS_SPAN = r"\1⟦\2⟧"
# What somebody protects in a text of their own; what would part lines of files.
BY_HAND = "⟦[^⟧]*⟧"
ALWAYS = (BY_HAND, r"[\n\t]+")
# Up to three levels of braces, as those of ICU's plural forms; RE2 has no recursion.
BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
# RE2's white space, which is not Python's.
WHITE = r"\t\n\f\r "
# Regular expressions of RE2 by the names of kinds, in the order in which they are tried.
KINDS = {
    "urls": (
        rf"\]\([^(){WHITE}]+\)",
        rf"(?:https?://|www\.)[^{WHITE}<>\"`{{}}]*[^{WHITE}<>\"`{{}}.,;:!?)\]'*]",
    ),
    "emails": (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",),
    "tags": (r"</?[A-Za-z][^<>]*>", r"<!--[^<>]*-->", r"&(?:#[0-9]+|#x[0-9A-Fa-f]+|[A-Za-z]+);"),
    "placeholders": (
        "`[^`]+`",
        r"\[%[^%\]]*%\]",
        r"\$t\([^()]*\)",
        r"\$?" + BRACES,
        r"%(?:[0-9]+\$)?[-+#0]*[0-9]*(?:\.[0-9]+)?l{0,2}[sdiufFeEgGxXcr@]\b",
        r"%@",
        rf"%\([^(){WHITE}]*\)[-+#0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z]",
    ),
    "numbers": (
        r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+Z?)?\b",
        r"\b[0-9]+(?:\.[0-9]+){2,}\b",
        r"\b[0-9]{4,}\b",
    ),
}

NEWER = ("glossary_rate", "truecase")
AGAIN = "Copy the file again from where the model was trained."


class ProtectedSpans(Options):
    """Protected spans."""

    resumed = FIXED

    protect: tuple[str, ...] = option(
        (),
        "Kinds of text that are put back as they stand instead of being translated: some choices, "
        "joined by commas. Pairs whose sides differ in them are left out. Default: none.",
        choices=tuple(KINDS),
    )
    protect_pattern: str = option(
        "", "Regular expression of RE2 for more text to put back as it stands. Default: none."
    )
    glossary_rate: float = option(
        0.0,
        "Share of the training sentences in which some words are followed by their translations, "
        "so that the model learns to use a glossary's translations, and to inflect them; 0: these "
        "are put in as they stand. Its authors take 0.1.",
        at_least=0,
        at_most=1,
        on_tensorflow=True,
    )
    truecase: bool = option(
        False,
        "Read a text of five letters or more that is all in capitals, or all in lower case, as the "
        "training text would write it. The translation of a text in capitals is in capitals.",
    )
    # Those that the training text writes with capitals: see `casing`.
    cased_words: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    @property
    def are_any(self) -> bool:
        """Whether texts are not read as they stand, or terms are marked."""
        return bool(self.protect or self.protect_pattern or self.glossary_rate or self.truecase)

    @property
    def puts_terms_in(self) -> bool:
        """Whether a term that does not come can be put in: marks of spans are learned too."""
        return bool(self.glossary_rate and (self.protect or self.protect_pattern))

    @property
    def pieces(self) -> tuple[str, ...]:
        """What a vocabulary needs."""
        return (*MARKS, *(OF_TERMS if self.glossary_rate else ()))

    def as_dict(self) -> dict[str, Any]:
        """What a run says of it. One without terms says nothing of them, as older ones."""
        said = dataclasses.asdict(self)
        del said["cased_words"]
        return {name: value for name, value in said.items() if value or name not in NEWER}

    @property
    def expression(self) -> str:
        """The regular expression of all spans."""
        own = [f"(?:{self.protect_pattern})"] if self.protect_pattern else []
        kinds = [one for kind, found in KINDS.items() if kind in self.protect for one in found]
        return "|".join([*own, *ALWAYS, *kinds])

    @property
    def in_python(self) -> re.Pattern[str]:
        """The same, as Python reads it."""
        try:
            if named := re.search(r"\[:\^?[a-z]+:\]", self.protect_pattern):
                raise re.error(f"{named[0]} is no class there")
            return re.compile(self.expression, re.ASCII)
        except re.error as error:
            raise ValueError(
                "a glossary, `split_sentences` and graphs without TensorFlow need a "
                "`protect_pattern` that is a regular expression of Python's too. Received: "
                f"{self.protect_pattern} ({error}). Do without them."
            ) from error

    def knowing(self, lines: Iterable[str]) -> "ProtectedSpans":
        """The same with the words that lines write with capitals, if they are asked for."""
        found = cased_words(lines) if self.truecase else ()
        return dataclasses.replace(self, cased_words=found)

    def save(self, folder: pathlib.Path) -> None:
        """Write a file beside those of a vocabulary."""
        cased = {"cased_words": self.cased_words} if self.truecase else {}
        write_json(folder / FILE, self.as_dict() | cased)

    @classmethod
    def in_description(cls, description: Mapping[str, Any]) -> "ProtectedSpans | None":
        """What a run's description says; None if it protects nothing."""
        said = description.get("protected")
        return cls.of(said) if said else None

    @classmethod
    def load(cls, folder: pathlib.Path) -> "ProtectedSpans | None":
        """Read what `save` wrote; None if there is nothing, and the model beside it has none."""
        path = folder / FILE
        if not path.exists():
            beside = folder / "model.json"
            if beside.exists() and read_object(beside, AGAIN).get("protected"):
                raise FileNotFoundError(f"{path} is missing, and the model protects spans. {AGAIN}")
            return None
        said = read_object(path, AGAIN)
        try:
            return cls(**said | {"cased_words": tuple(map(str, said.get("cased_words", ())))})
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error} {AGAIN}") from error


def with_translation(text: str, begin: int, end: int, translation: str) -> str:
    """A text in which a term at some place has its translation behind it. The space before the term
    moves behind the mark, so that the term is cut into the pieces that it has elsewhere.
    """
    opens, between, closes = OF_TERMS
    has_space = text[:begin].endswith(" ")
    space = " " if has_space or not begin else ""
    term = f"{opens}{space}{text[begin:end]}{between} {translation}{closes}"
    return f"{text[: begin - has_space]}{term}{text[end:]}"


class MarkedText(NamedTuple):
    """A text in which marks stand for spans, these, and whether it was all in capitals."""

    text: str
    spans: Sequence[str]
    is_capital: bool


class TextMarks:
    """What `span_marks.marks_of` does, of one text, by Python's regular expressions."""

    def __init__(self, protected: ProtectedSpans):
        self._expression = protected.in_python
        self._cased = TextCasing(protected.cased_words) if protected.truecase else _as_it_is

    def marked(self, text: str) -> MarkedText:
        """The text with marks in the place of its spans."""
        spans: list[str] = []

        def mark(match):
            spans.append(match[0])
            return MARKS[(len(spans) - 1) % MOST]

        cased, is_capital = self._cased(self._expression.sub(mark, text))
        return MarkedText(cased, spans, is_capital)

    def marked_as(self, text: str, marked: MarkedText) -> str:
        """A translation with the marks that the spans of its source have."""
        places = collections.defaultdict(list)
        for place, span in reversed([*enumerate(marked.spans)]):
            places[span].append(place)

        def mark(match):
            return MARKS[places[match[0]].pop() % MOST] if places[match[0]] else match[0]

        found = self._expression.sub(mark, text)
        return self._cased(found).text if marked.is_capital else found

    @staticmethod
    def put_back(text: str, marked: MarkedText) -> str:
        """A translation with the spans of its source in the places of its marks."""
        spans = marked.spans
        times = collections.Counter()

        def span(match):
            place = int(match[1]) - 1 + MOST * times[match[1]]
            times[match[1]] += 1
            return re.sub(r"^⟦([^⟧]*)⟧\Z", r"\1", spans[place]) if place < len(spans) else ""

        return re.sub(MARK, span, text.upper() if marked.is_capital else text)

    @staticmethod
    def openings(spans: Sequence[str]) -> list[int]:
        """For each mark the number of the mark whose tag it closes; -1 if it closes none."""
        found = [-1] * MOST
        opened = collections.defaultdict(list)
        for place, span in enumerate(spans if len(spans) <= MOST else ()):
            tag = re.fullmatch(r"<(/?)([A-Za-z][\w:.-]*)([^<>]*)>", span, re.ASCII)
            if tag and not tag[1] and not tag[3].endswith("/"):
                opened[tag[2]].append(place)
            elif tag and tag[1] and opened[tag[2]]:
                found[place] = opened[tag[2]].pop()
        return found


def _as_it_is(text):
    return Cased(text, False)
