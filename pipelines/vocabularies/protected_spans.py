"""Which spans of a sentence must not be translated: placeholders, tags, links, numbers. A mark, one
piece of the vocabulary with the span's number in its sentence, replaces each span until it is put
back verbatim: in a graph by `span_marks`, without TensorFlow by `TextMarks`.
"""

import collections
import dataclasses
import functools
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
# These stand before a term, between it and its translation, and after the translation.
OF_TERMS = ("⟪", "⟹", "⟫")
TRANSLATION = "⟹[^⟫]*⟫"
# A term with its translation. `with_translation` moves the space before a term behind its mark.
TERM = "⟪( ?)[^⟪⟹]*⟹ ([^⟫]+)⟫"
AS_SPAN = r"\1⟦\2⟧"
# Spans that users protect by hand, and characters that would split the lines of files.
BY_HAND = "⟦[^⟧]*⟧"
ALWAYS = (BY_HAND, r"[\n\t]+")
# Up to three levels of braces, as those of ICU's plural forms; RE2 has no recursion.
BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
# RE2's white space, which differs from Python's.
WHITE = r"\t\n\f\r "
# RE2 expressions of each kind, in the order in which they are tried. In Python they take a time in
# proportion to the text: no two repetitions in a row take the same characters.
KINDS = {
    "urls": (
        rf"\]\([^(){WHITE}]+\)",
        rf"(?:https?://|www\.)[^{WHITE}<>\"`{{}}]*[^{WHITE}<>\"`{{}}.,;:!?)\]'*]",
    ),
    "emails": (r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",),
    "tags": (r"</?[A-Za-z][^<>]*>", r"<!--[^<>]*-->", r"&(?:#[0-9]+|#x[0-9A-Fa-f]+|[A-Za-z]+);"),
    "placeholders": (
        "`[^`]+`",
        r"\[%[^%\]]*%\]",
        r"\$t\([^()]*\)",
        r"\$?" + BRACES,
        r"%(?:[0-9]+\$)?[-+#0]*(?:[1-9][0-9]*)?(?:\.[0-9]+)?l{0,2}[sdiufFeEgGxXcr@]\b",
        r"%@",
        rf"%\([^(){WHITE}]*\)[-+#0]*(?:[1-9][0-9]*)?(?:\.[0-9]+)?[a-zA-Z]",
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
        "so that the model learns to use and inflect a glossary's translations. With 0, these are "
        "put in as they stand. Dinu et al. 2019 use 0.1.",
        at_least=0,
        at_most=1,
        on_tensorflow=True,
    )
    truecase: bool = option(
        False,
        "Read a text of five letters or more that is all in capitals, or all in lower case, as the "
        "training text would write it. The translation of a text in capitals is in capitals.",
    )
    # Words that the training text writes with capitals: see `casing`.
    cased_words: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    @property
    def are_any(self) -> bool:
        """Whether any option is set, so that texts change before they are read."""
        return bool(self.protect or self.protect_pattern or self.glossary_rate or self.truecase)

    @property
    def puts_terms_in(self) -> bool:
        """Whether a term missing from a translation can be put in, as a span with a mark."""
        return bool(self.glossary_rate and (self.protect or self.protect_pattern))

    @property
    def pieces(self) -> tuple[str, ...]:
        """The marks that a vocabulary needs as pieces."""
        return (*MARKS, *(OF_TERMS if self.glossary_rate else ()))

    def as_dict(self) -> dict[str, Any]:
        """Return the options for a run's description. Newer ones are left out unless set."""
        options = dataclasses.asdict(self)
        del options["cased_words"]
        return {name: value for name, value in options.items() if value or name not in NEWER}

    @property
    def expression(self) -> str:
        """The RE2 expression of all spans."""
        own = [f"(?:{self.protect_pattern})"] if self.protect_pattern else []
        kinds = [rule for kind, rules in KINDS.items() if kind in self.protect for rule in rules]
        return "|".join([*own, *ALWAYS, *kinds])

    @property
    def in_python(self) -> re.Pattern[str]:
        """The same expression, compiled by Python."""
        try:
            if named := re.search(r"\[:\^?[a-z]+:\]", self.protect_pattern):
                raise re.error(f"{named[0]} is no class there")
            if re.search(r"\(\?\w*i.*[^\0-\x7f]", self.protect_pattern):
                raise re.error("(?i) ignores the case of ASCII letters alone there")
            return re.compile(self.expression, re.ASCII)
        except re.error as error:
            raise ValueError(
                "a glossary, `split_sentences` and graphs without TensorFlow need a "
                "`protect_pattern` that is a regular expression of Python's too. Received: "
                f"{self.protect_pattern} ({error}). Do without them."
            ) from error

    def knowing(self, lines: Iterable[str]) -> "ProtectedSpans":
        """Return a copy with the words that lines write with capitals, if `truecase` is set."""
        return dataclasses.replace(self, cased_words=cased_words(lines) if self.truecase else ())

    def save(self, folder: pathlib.Path) -> None:
        """Write `FILE` beside the files of a vocabulary."""
        cased = {"cased_words": self.cased_words} if self.truecase else {}
        write_json(folder / FILE, self.as_dict() | cased)

    @classmethod
    def in_description(cls, description: Mapping[str, Any]) -> "ProtectedSpans | None":
        """Return the options in a run's description; None if it protects nothing."""
        options = description.get("protected")
        return cls.of(options) if options else None

    @classmethod
    def load(cls, folder: pathlib.Path) -> "ProtectedSpans | None":
        """Load what `save` wrote; None if there is no file, and the model beside it needs none."""
        path = folder / FILE
        if not path.exists():
            beside = folder / "model.json"
            if beside.exists() and read_object(beside, AGAIN).get("protected"):
                raise FileNotFoundError(f"{path} is missing, and the model protects spans. {AGAIN}")
            return None
        options = read_object(path, AGAIN)
        try:
            return cls(**options | {"cased_words": tuple(map(str, options.get("cased_words", ())))})
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error} {AGAIN}") from error


def with_translation(text: str, begin: int, end: int, translation: str) -> str:
    """Return a text in which the term from `begin` to `end` is followed by its translation. The
    space before the term moves behind the mark, so that the term is cut into its usual pieces.
    """
    opens, between, closes = OF_TERMS
    has_space = text[:begin].endswith(" ")
    space = " " if has_space or not begin else ""
    term = f"{opens}{space}{text[begin:end]}{between} {translation}{closes}"
    return f"{text[: begin - has_space]}{term}{text[end:]}"


class MarkedText(NamedTuple):
    """A text in which marks stand for spans, the spans, and whether it was all in capitals."""

    text: str
    spans: Sequence[str]
    is_capital: bool


class TextMarks:
    """What `span_marks.marks_of` does, for one text, with Python's regular expressions."""

    def __init__(self, protected: ProtectedSpans):
        self._expression = protected.in_python
        as_it_is = functools.partial(Cased, is_capital=False)
        self._cased = TextCasing(protected.cased_words) if protected.truecase else as_it_is

    def marked(self, text: str) -> MarkedText:
        """Return the text with marks in place of its spans."""
        spans: list[str] = []

        def mark(match):
            spans.append(match[0])
            return MARKS[(len(spans) - 1) % MOST]

        cased, is_capital = self._cased(self._expression.sub(mark, text))
        return MarkedText(cased, spans, is_capital)

    def marked_as(self, text: str, marked: MarkedText) -> str:
        """Return a translation with the marks that its spans have in the source."""
        places = collections.defaultdict(list)
        for place, span in reversed([*enumerate(marked.spans)]):
            places[span].append(place)

        def mark(match):
            return MARKS[places[match[0]].pop() % MOST] if places[match[0]] else match[0]

        written = self._expression.sub(mark, text)
        return self._cased(written).text if marked.is_capital else written

    @staticmethod
    def put_back(text: str, marked: MarkedText) -> str:
        """Return a translation with the spans of its source in place of its marks."""
        spans = marked.spans
        times = collections.Counter()

        def span(match):
            place = int(match[1]) - 1 + MOST * times[match[1]]
            times[match[1]] += 1
            return re.sub(r"^⟦([^⟧]*)⟧\Z", r"\1", spans[place]) if place < len(spans) else ""

        return re.sub(MARK, span, text.upper() if marked.is_capital else text)

    @staticmethod
    def openings(spans: Sequence[str]) -> list[int]:
        """Return for each mark the number of the mark whose tag it closes; -1 if none."""
        numbers = [-1] * MOST
        opened = collections.defaultdict(list)
        for place, span in enumerate(spans if len(spans) <= MOST else ()):
            tag = re.fullmatch(r"<(/?)([A-Za-z][\w:.-]*)([^<>]*)>", span, re.ASCII)
            if tag and not tag[1] and not tag[3].endswith("/"):
                opened[tag[2]].append(place)
            elif tag and tag[1] and opened[tag[2]]:
                numbers[place] = opened[tag[2]].pop()
        return numbers
